// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/registry"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
	"github.com/bellwether-dev/bellwether/catalogs/view"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// TestAway takes something away from the agent for a while: the agent itself,
// its hub, its registry, OLM.
func TestAway(t *testing.T) {
	t.Parallel()
	c := quiet(t)
	scenarios := map[string]func(*testing.T, *cluster.Cluster){
		"a plan for an older version is deleted": outdatedPlan,
		"a changed plan is deleted":              changedPlan,
		"the hub":                                hubAway,
		"the registry":                           registryAway,
		"OLM":                                    olmAway,
		"templates of the user":                  userTemplates,
		"the word of a person":                   frozen,
	}
	for name, scenario := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario(t, c)
		})
	}
}

// packages lists what a catalog view serves.
func packages(ctx context.Context, address string) ([]string, error) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	stream, err := api.NewRegistryClient(conn).ListPackages(ctx, &api.ListPackageRequest{})
	if err != nil {
		return nil, err
	}
	var names []string
	for {
		p, err := stream.Recv()
		if err != nil {
			if len(names) == 0 {
				return nil, err
			}
			return names, nil
		}
		names = append(names, p.GetName())
	}
}

func (h *harness) serves(address string) {
	h.t.Helper()
	h.eventually("the view is served at "+address, func() bool {
		names, err := packages(h.t.Context(), address)
		return err == nil && len(names) == 1 && names[0] == h.operator
	})
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// outdatedPlan has OLM make a plan while the agent is away, as if it had died
// before approving it, and then a newer admission. The agent takes the same
// port again, deletes the plan, and never installs what it was for.
func outdatedPlan(t *testing.T, c *cluster.Cluster) {
	h := start(t, c, "away-agent").of(t, "outdated")
	bundles := append(line("1.0.0", "1.1.0"), bundle{version: "1.2.0", replaces: "1.1.0", skipRange: ">=1.0.0 <1.2.0"})
	pin := h.pin(bundles...)
	address, _ := h.planWithoutAgent(pin)
	h.to(pin, "1.2.0")
	h.startAgent()
	oi := h.runs()
	if oi.Status.OLMDetails().ViewAddress != address {
		t.Errorf("the view moved from %s to %s", address, oi.Status.OLMDetails().ViewAddress)
	}
	for _, p := range h.plans() {
		for _, name := range p.Spec.ClusterServiceVersionNames {
			if name == csvName(h.operator, "1.1.0") {
				t.Errorf("InstallPlan %s for 1.1.0 is there, approved: %t", p.Name, p.Spec.Approved)
			}
		}
	}
}

// changedPlan has somebody change a plan of OLM while the agent is away. The agent does not approve it, and has OLM
// make another one.
func changedPlan(t *testing.T, c *cluster.Cluster) {
	h := start(t, c, "away-changed").of(t, "changed")
	pin := h.pin(line("1.0.0", "1.1.0")...)
	_, p := h.planWithoutAgent(pin)
	h.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error { // OLM writes it too
		if err := h.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		for _, step := range p.Status.Plan {
			if step.Resource.Kind != operatorsv1alpha1.ClusterServiceVersionKind {
				continue
			}
			csv := &operatorsv1alpha1.ClusterServiceVersion{}
			h.must(json.Unmarshal([]byte(step.Resource.Manifest), csv))
			metav1.SetMetaDataAnnotation(&csv.ObjectMeta, "example.com/changed", "yes")
			text, err := json.Marshal(csv)
			h.must(err)
			step.Resource.Manifest = string(text)
		}
		return h.Status().Update(t.Context(), p)
	}))

	h.to(pin, "1.1.0")
	h.startAgent()
	h.runs()
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	h.must(h.Get(t.Context(), client.ObjectKey{Namespace: h.operator, Name: csvName(h.operator, "1.1.0")}, csv))
	if csv.Annotations["example.com/changed"] != "" {
		t.Error("OLM installed what somebody had put into the InstallPlan")
	}
	if err := h.Get(t.Context(), client.ObjectKeyFromObject(p), p); !apierrors.IsNotFound(err) {
		t.Errorf("the changed InstallPlan is there, approved: %t, %v", p.Spec.Approved, err)
	}
}

// planWithoutAgent installs 1.0.0 and has OLM plan 1.1.0 while the agent is away, as if it had died before it approved
// the plan. It returns the address of the view, and the plan.
func (h *harness) planWithoutAgent(pin v1alpha1.CatalogPin) (string, *operatorsv1alpha1.InstallPlan) {
	h.t.Helper()
	h.to(pin, "1.0.0")
	address := h.runs().Status.OLMDetails().ViewAddress
	h.agent.Kill()

	files, err := oci.NewClient(oci.Options{}).Open(h.t.Context(), oci.Source{Directory: pin.Source.Directory},
		pin.Digest)
	h.must(err)
	pkg, err := catalogs.ReadPackage(files, h.operator)
	h.must(err)
	next, err := view.Build(view.Input{Package: pkg,
		Installed: catalogs.Installed{Name: csvName(h.operator, "1.0.0"), Version: "1.0.0"},
		Next:      csvName(h.operator, "1.1.0")})
	h.must(err)
	server := serve.New(serve.Options{})
	defer server.Close()
	if at, _, err := server.Set(h.operator, next, portOf(h.t, address)); err != nil || at != address {
		h.t.Fatalf("the test serves at %s, the agent did at %s: %v", at, address, err)
	}
	var waiting *operatorsv1alpha1.InstallPlan
	h.eventually("OLM plans 1.1.0", func() bool {
		for _, p := range h.plans() {
			if p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseRequiresApproval &&
				p.Spec.ClusterServiceVersionNames[0] == csvName(h.operator, "1.1.0") {
				waiting = &p
				return true
			}
		}
		return false
	})
	return address, waiting
}

// hubAway has a hub of its own that dies: the view stays, what was made stays
// as it is, and the agent goes on when the hub is back.
func hubAway(t *testing.T, c *cluster.Cluster) {
	hub := testenv.Cluster(t, cluster.Options{APIServerOnly: true})
	testenv.InstallCRDs(t, hub)
	h := startOn(t, hub, c, "away-hub").of(t, "hubless")
	fleet := clientOf(t, c)
	pin := h.pin(line("1.0.0", "1.1.0")...)
	h.to(pin, "1.0.0")
	address := h.runs().Status.OLMDetails().ViewAddress
	hub.KillAPIServer()
	h.serves(address)
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	h.must(fleet.Get(t.Context(), client.ObjectKey{Namespace: h.operator, Name: csvName(h.operator, "1.0.0")}, csv))
	if csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
		t.Errorf("without a hub the CSV is %s", csv.Status.Phase)
	}
	h.must(hub.RestartAPIServer(t.Context()))
	h.to(pin, "1.1.0")
	if oi := h.runs(); oi.Status.OLMDetails().ViewAddress != address {
		t.Errorf("the view moved from %s to %s", address, oi.Status.OLMDetails().ViewAddress)
	}
}

// registryAway restarts the agent while the registry is down, with its cache
// and without.
func registryAway(t *testing.T, c *cluster.Cluster) {
	h := start(t, c, "away-registry").of(t, "cached")
	ctx, stop := context.WithCancel(t.Context())
	ready, stopped := make(chan string, 1), make(chan error, 1)
	go func() { stopped <- registry.Serve(ctx, registry.Options{Ready: func(addr string) { ready <- addr }}) }()
	ref := <-ready + "/catalogs/cached:latest"
	written := h.pin(line("1.0.0", "1.1.0")...)
	digest, err := oci.NewClient(oci.Options{}).Push(t.Context(), written.Source.Directory, ref,
		oci.Access{Insecure: true})
	h.must(err)
	pin := v1alpha1.CatalogPin{Source: v1alpha1.CatalogSource{Image: ref, Insecure: true}, Digest: digest}
	h.to(pin, "1.0.0")
	address := h.runs().Status.OLMDetails().ViewAddress
	stop()
	h.must(<-stopped)

	h.agent.Kill()
	h.startAgent()
	h.serves(address)
	h.to(pin, "1.1.0")
	h.runs()

	h.agent.Kill()
	h.cache = t.TempDir()
	h.startAgent()
	h.until("it runs, and says that its catalog is gone", func(oi *v1alpha1.OperatorInstall) bool {
		served := conditions.Get(oi.Status.Conditions, v1alpha1.ConditionCatalogServed)
		return served.Reason == v1alpha1.ReasonCatalogUnreachable &&
			conditions.IsTrue(oi.Status.Conditions, v1alpha1.ConditionReady)
	})
	h.says("runs. ", "registry")
}

// frozen freezes the cluster before an upgrade, and before a removal. No hub runs: the agent reads that by itself.
func frozen(t *testing.T, c *cluster.Cluster) {
	h := start(t, c, "away-frozen").of(t, "frozen")
	pin := h.pin(line("1.0.0", "1.1.0")...)
	h.to(pin, "1.0.0")
	h.runs()
	freeze := func() *v1alpha1.FleetFreeze {
		f := &v1alpha1.FleetFreeze{ObjectMeta: metav1.ObjectMeta{GenerateName: "away-"},
			Spec: v1alpha1.FleetFreezeSpec{Clusters: []string{"away-frozen", "nobody-*"}, Reason: "incident"}}
		return h.create(f).(*v1alpha1.FleetFreeze)
	}
	isFrozen := func(oi *v1alpha1.OperatorInstall) bool {
		ready := conditions.Get(oi.Status.Conditions, v1alpha1.ConditionReady)
		return ready.Reason == v1alpha1.ReasonFrozen && strings.Contains(ready.Message, "incident")
	}
	first := freeze()
	h.to(pin, "1.1.0")
	oi := h.until("it is frozen", isFrozen)
	if oi.Status.Installed.Version != "1.0.0" {
		t.Errorf("it runs %s", oi.Status.Installed.Version)
	}
	h.delete(first)
	h.runs()
	second := freeze()
	h.must(h.Delete(t.Context(), oi))
	h.until("its removal is frozen", isFrozen)
	subscription := &operatorsv1alpha1.Subscription{}
	h.must(h.Get(t.Context(), client.ObjectKey{Namespace: h.operator, Name: h.operator}, subscription))
	h.delete(second)
	h.gone(oi)
}

// olmAway is a cluster without OLM, onto which its API comes later. Nothing
// serves that API here, so OLM never connects to the view.
func olmAway(t *testing.T, _ *cluster.Cluster) {
	c := testenv.Cluster(t, cluster.Options{APIServerOnly: true})
	testenv.InstallCRDs(t, c)
	h := start(t, c, "away-olm").of(t, "olmless")
	h.to(h.pin(line("1.0.0")...), "1.0.0")
	h.stalls(v1alpha1.ReasonOLMMissing, "operators.coreos.com", "Install")
	paths, err := build.Ensure(t.Context(), t.Output(), build.OLMCRDs)
	h.must(err)
	h.must(c.InstallCRDs(paths[build.OLMCRDs]))
	h.until("it goes on", func(oi *v1alpha1.OperatorInstall) bool {
		return conditions.Get(oi.Status.Conditions,
			v1alpha1.ConditionCatalogServed).Reason == v1alpha1.ReasonCatalogNotReady
	})
	h.says("not made yet", "catalog-operator")
	source := &operatorsv1alpha1.CatalogSource{}
	h.must(h.Get(t.Context(), client.ObjectKey{Namespace: h.operator, Name: "bellwether-olmless"}, source))
	h.uninstall(v1alpha1.RemovalOrphan)
}

const subscriptionTemplate = `apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata:
  name: {{ quote .Package }}
  namespace: {{ quote .Namespace }}
  labels:
    team: {{ %s }}
spec:
  name: {{ quote .Package }}
  channel: {{ quote .Channel }}
  source: {{ quote "bellwether-" .Package }}
  sourceNamespace: {{ quote .Namespace }}
  installPlanApproval: Manual
`

// userTemplates has a template with a label of the user's, and then one that
// does not render.
func userTemplates(t *testing.T, c *cluster.Cluster) {
	dir := t.TempDir()
	write := func(label string) {
		if err := os.WriteFile(filepath.Join(dir, "subscription.yaml"), fmt.Appendf(nil, subscriptionTemplate, label),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`quote "platform-" .Cluster`)
	h := start(t, c, "away-template", "--templates", dir).of(t, "templated")
	pin := h.pin(line("1.0.0", "1.1.0")...)
	h.to(pin, "1.0.0")
	h.runs()
	sub := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: h.operator, Name: h.operator}}
	h.must(h.Get(t.Context(), client.ObjectKeyFromObject(sub), sub))
	if got := sub.Labels["team"]; got != "platform-test" {
		t.Errorf("the Subscription's label team is %q", got)
	}

	restart := func() {
		h.agent.Stop(t.Context())
		h.startAgent()
	}
	write(`.Config.Team`)
	restart()
	h.to(pin, "1.1.0")
	h.stalls(v1alpha1.ReasonTemplateInvalid, "subscription.yaml", "Correct the agent's template")
	write(`"platform"`)
	restart()
	h.runs()
}
