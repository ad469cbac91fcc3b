// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
	"github.com/bellwether-dev/bellwether/engines/adoption"
	"github.com/bellwether-dev/bellwether/fleet"
)

// scanned is what the agent of a cluster reports.
func scanned(cluster string, change func(*v1alpha1.OperatorScanStatus),
	operators ...v1alpha1.FoundOperator) *v1alpha1.OperatorScan {
	at := metav1.NewTime(fixture.Noon.Add(-2 * time.Hour))
	s := &v1alpha1.OperatorScan{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ClusterNamespace(cluster),
		Name: v1alpha1.ScanName, Labels: map[string]string{v1alpha1.LabelCluster: cluster}},
		Status: v1alpha1.OperatorScanStatus{OLM: v1alpha1.OLMServed, ObservedAt: &at, Operators: operators,
			CatalogSources: []v1alpha1.FoundCatalogSource{{Namespace: "olm", Name: "community", State: "READY",
				Image: "registry.example.com/community:v1"}}}}
	for _, o := range operators {
		s.Status.Namespaces = append(s.Status.Namespaces, v1alpha1.FoundNamespace{Name: o.Namespace,
			OperatorGroups: []v1alpha1.FoundOperatorGroup{{Name: "group"}}})
	}
	if change != nil {
		change(&s.Status)
	}
	return s
}

// running is an operator by an ordinary Subscription.
func running(pkg, version string, change func(*v1alpha1.FoundOperator)) v1alpha1.FoundOperator {
	csv := pkg + ".v" + version
	o := v1alpha1.FoundOperator{Namespace: pkg,
		Subscription: &v1alpha1.FoundSubscription{Name: pkg, Package: pkg, Channel: "stable", Source: "community",
			SourceNamespace: "olm", Approval: "Automatic", InstalledCSV: csv, CurrentCSV: csv,
			Writers: []string{"kubectl-create"}},
		CSV: &v1alpha1.FoundCSV{Name: csv, Version: version, Phase: "Succeeded",
			Deployments: []v1alpha1.FoundDeployment{{Name: pkg, Replicas: 1, Ready: 1, Bundle: 1}}}}
	if change != nil {
		change(&o)
	}
	return o
}

// scannedFleet has a cluster in each state, and an operator of each class.
func scannedFleet(t *testing.T) *clitest.Hub {
	t.Helper()
	dir := supportedUpTo(t)
	catalog := &v1alpha1.OperatorCatalog{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "main"},
		Spec: v1alpha1.OperatorCatalogSpec{Source: v1alpha1.CatalogSource{Directory: dir}}}
	catalog.Status.Digest = clitest.MustResolve(t, oci.Source{Directory: dir})
	catalog.Status.Packages = []v1alpha1.CatalogPackage{{Name: "echo-operator",
		Channels: []v1alpha1.CatalogChannel{{Name: "stable", Head: "1.2.0", Versions: 3}}}}
	managed := clitest.Operator("echo", "1.2.0")
	managed.Spec.ClusterSelector.MatchLabels = map[string]string{"env": "prod"}
	managed.Spec.Package = "echo-operator"
	silent, old := clitest.Cluster("silent", nil), clitest.Cluster("old-agent", nil)
	since := metav1.NewTime(fixture.Noon.Add(-3 * time.Hour))
	silent.Status.StaleSince, silent.Status.Versions.Agent = &since, "0.2.0"
	old.Status.Versions.Agent = "0.1.0"
	reader := clitest.Cluster("reader", nil)
	reader.Status.Veto = &v1alpha1.ClusterVeto{ReadOnly: true}
	objects := []client.Object{catalog, managed, silent, old, reader, clitest.Cluster("bare", nil),
		clitest.Cluster("edge-1", nil), clitest.Cluster("edge-2", nil),
		clitest.Cluster("prod-1", map[string]string{"env": "prod"}),
		scanned("bare", func(s *v1alpha1.OperatorScanStatus) {
			*s = v1alpha1.OperatorScanStatus{OLM: v1alpha1.OLMNotServed, ObservedAt: s.ObservedAt}
		}),
		scanned("edge-1", nil, running("echo-operator", "1.0.0", nil), running("cert-manager", "1.14.0", nil)),
		scanned("edge-2", func(s *v1alpha1.OperatorScanStatus) {
			s.Namespaces[0].OperatorGroups = append(s.Namespaces[0].OperatorGroups,
				v1alpha1.FoundOperatorGroup{Name: "second"})
			s.Truncated = &v1alpha1.ScanTruncation{Details: 2}
			s.OwnerlessDefinitions = []string{"tenants.example.com"}
		}, running("echo-operator", "1.1.0", nil), running("cert-manager", "1.14.0", nil)),
		scanned("prod-1", nil, running("echo-operator", "1.2.0", func(o *v1alpha1.FoundOperator) {
			o.Managed, o.Operator = true, &v1alpha1.OperatorReference{Namespace: "default", Name: "echo"}
		}), running("db", "2.0.0", func(o *v1alpha1.FoundOperator) { o.CSV.Phase = "Installing" })),
		scanned("reader", func(s *v1alpha1.OperatorScanStatus) {
			s.NotRead = "list *v1.DeploymentList: forbidden\x1b[31m"
		}, running("echo-operator", "1.9.0", func(o *v1alpha1.FoundOperator) {
			o.Subscription.GitOps = "Argo CD (`team`|x)"
		})),
		scanned("silent", func(s *v1alpha1.OperatorScanStatus) { s.Truncated = &v1alpha1.ScanTruncation{Operators: 3} },
			running("echo-operator", "1.0.0", nil)),
	}
	return clitest.NewHub(objects...)
}

func TestScan(t *testing.T) {
	h := scannedFleet(t)
	for name, args := range map[string][]string{
		"scan": nil, "scan-wide": {"-o", "wide"}, "scan-markdown": {"-o", "markdown"},
		"scan-yaml":    {"-o", "yaml", "edge-1"},
		"scan-package": {"--package", "echo-operator", "-l", "env=prod"},
	} {
		t.Run(name, func(t *testing.T) {
			got := h.Run(t, append([]string{"fleet", "scan"}, args...)...)
			if got.Code != 0 {
				t.Fatalf("exit code %d: %s", got.Code, got.Err)
			}
			if strings.ContainsRune(got.Out, '\x1b') {
				t.Error("what an agent wrote reaches the terminal as it is")
			}
			fixture.AssertGolden(t, name, got.Out)
		})
	}
}

// TestScanOfANewFleet checks that a hub without catalogs shows the operators, and the advice once for all packages.
func TestScanOfANewFleet(t *testing.T) {
	h := clitest.NewHub(clitest.Cluster("prod-1", nil), scanned("prod-1", nil, running("cert-manager", "1.14.0", nil),
		running("db", "2.0.0", nil), running("echo-operator", "1.0.0", nil), running("logging", "6.1.0", nil)))
	fixture.AssertGolden(t, "scan-new-fleet", h.MustRun(t, "fleet", "scan").Out)
}

func TestScanAsData(t *testing.T) {
	h := scannedFleet(t)
	var report fleet.ScanReport
	if err := json.Unmarshal([]byte(h.MustRun(t, "fleet", "scan", "-o", "json").Out), &report); err != nil {
		t.Fatal(err)
	}
	classes := map[adoption.Class]int{}
	for _, v := range report.Packages {
		for class, n := range v.Classes {
			classes[class] += n
		}
	}
	for class, want := range map[adoption.Class]int{adoption.Managed: 1, adoption.Eligible: 1,
		adoption.NeedsDecision: 4, adoption.Conflict: 1, adoption.Unknown: 1} {
		if classes[class] != want {
			t.Errorf("%d operators are of class %q, want %d (all: %v)", classes[class], class, want, classes)
		}
	}
}

func TestScanOfNothing(t *testing.T) {
	h := clitest.NewHub()
	if got := h.Run(t, "fleet", "scan"); got.Code != 0 || !strings.Contains(got.Err, "No clusters found") {
		t.Errorf("exit code %d: %s%s", got.Code, got.Out, got.Err)
	}
	if got := h.Run(t, "fleet", "scan", "none"); got.Code == 0 || !strings.Contains(got.Err, `no cluster "none"`) {
		t.Errorf("exit code %d: %s%s", got.Code, got.Out, got.Err)
	}
	if got := h.Run(t, "fleet", "scan", "-o", "name"); got.Code == 0 {
		t.Error("the output name is accepted")
	}
}
