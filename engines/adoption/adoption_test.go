// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/engines/adoption"
)

// situation is an ordinary operator that can be taken over, for a case to change.
type situation struct {
	found *v1alpha1.FoundOperator
	sub   *v1alpha1.FoundSubscription
	csv   *v1alpha1.FoundCSV
	scan  *v1alpha1.OperatorScanStatus
	adoption.Input
}

func newSituation() *situation {
	s := &situation{
		sub: &v1alpha1.FoundSubscription{Name: "echo", Package: "echo-operator", Channel: "stable", Source: "community",
			SourceNamespace: "olm", Approval: "Manual", InstalledCSV: "echo-operator.v1.0.0",
			CurrentCSV: "echo-operator.v1.0.0", Writers: []string{"kubectl-client-side-apply"}},
		csv: &v1alpha1.FoundCSV{Name: "echo-operator.v1.0.0", Version: "1.0.0", Phase: "Succeeded",
			Owned: []v1alpha1.FoundDefinition{{Name: "echoservers.example.com", Version: "v1",
				Kind: "EchoServer"}},
			Deployments: []v1alpha1.FoundDeployment{{Name: "echo", Replicas: 1, Ready: 1, Bundle: 1}}},
	}
	s.found = &v1alpha1.FoundOperator{Namespace: "echo", Subscription: s.sub, CSV: s.csv}
	s.scan = &v1alpha1.OperatorScanStatus{
		Namespaces: []v1alpha1.FoundNamespace{{Name: "echo",
			OperatorGroups: []v1alpha1.FoundOperatorGroup{{Name: "echo"}}}},
		CatalogSources: []v1alpha1.FoundCatalogSource{{Namespace: "olm", Name: "community", State: "READY",
			Image: "example.com/community:latest"}},
	}
	s.Known.Packages = []adoption.Package{{Catalog: "team/main", Name: "echo-operator", Complete: true,
		Channels: []adoption.Channel{{Name: "candidate", Head: "1.2.0"}, {Name: "stable", Head: "1.1.0"}},
		Bundles: []adoption.Bundle{{Name: "echo-operator.v1.0.0", Version: "1.0.0"},
			{Name: "echo-operator.v1.1.0", Version: "1.1.0"}, {Name: "echo-operator.v1.2.0", Version: "1.2.0"}}}}
	return s
}

// another adds an operator of another package to the cluster.
func (s *situation) another(namespace, pkg string) *v1alpha1.FoundOperator {
	s.scan.Operators = append(s.scan.Operators, v1alpha1.FoundOperator{Namespace: namespace,
		Subscription: &v1alpha1.FoundSubscription{Name: pkg, Package: pkg},
		CSV:          &v1alpha1.FoundCSV{Name: pkg + ".v1.0.0", Version: "1.0.0", Phase: "Succeeded"}})
	if namespace != "echo" {
		s.scan.Namespaces = append(s.scan.Namespaces, v1alpha1.FoundNamespace{Name: namespace,
			OperatorGroups: []v1alpha1.FoundOperatorGroup{{Name: "all"}}})
	}
	return &s.scan.Operators[len(s.scan.Operators)-1]
}

func (s *situation) group() *v1alpha1.FoundOperatorGroup {
	return &s.scan.Namespaces[0].OperatorGroups[0]
}

func (s *situation) plan(p v1alpha1.FoundInstallPlan) {
	s.scan.Namespaces[0].InstallPlans = append(s.scan.Namespaces[0].InstallPlans, p)
}

// wanted adds a ManagedOperator that selects the cluster.
func (s *situation) wanted(namespace string, all bool) *adoption.Operator {
	s.Known.Operators = append(s.Known.Operators, adoption.Operator{Catalog: "team/main", Claim: engines.Claim{
		Key: types.NamespacedName{Namespace: "team", Name: "echo"}, Package: "echo-operator", Namespace: namespace,
		AllNamespaces: all}})
	return &s.Known.Operators[len(s.Known.Operators)-1]
}

func (s *situation) judge() adoption.Verdict {
	in := s.Input
	s.scan.Operators = append(s.scan.Operators, *s.found)
	in.Found, in.Scan = s.found, s.scan
	return adoption.Judge(in)
}

// TestSituations has a case for each state that a fleet can be found in. The guide has each reason.
func TestSituations(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/add-a-cluster.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change   func(*situation)
		class    adoption.Class
		reason   string
		contains string
	}{
		"as it should be": {func(*situation) {}, adoption.Eligible, "Eligible",
			"runs version 1.0.0, which OperatorCatalog team/main has"},
		"managed": {func(s *situation) {
			s.found.Managed, s.found.Operator = true, &v1alpha1.OperatorReference{Namespace: "team", Name: "echo"}
			s.wanted("echo", true)
		}, adoption.Managed, "Managed", "ManagedOperator team/echo manages it"},
		"managed, and labels do not say by whom": {func(s *situation) { s.found.Managed = true }, adoption.Managed,
			"Managed", ""},
		"its ManagedOperator is gone": {func(s *situation) {
			s.found.Managed, s.found.Operator = true, &v1alpha1.OperatorReference{Namespace: "team", Name: "echo"}
		}, adoption.NeedsDecision, "NotManagedAnyMore", "does not exist on this hub"},
		"its ManagedOperator does not select the cluster": {func(s *situation) {
			s.found.Managed, s.found.Operator = true, &v1alpha1.OperatorReference{Namespace: "team", Name: "echo"}
			s.Known.All = []types.NamespacedName{{Namespace: "team", Name: "echo"}}
		}, adoption.NeedsDecision, "NotManagedAnyMore", "does not select this cluster"},

		"no catalog has the package": {func(s *situation) { s.Known.Packages = nil }, adoption.NeedsDecision,
			"PackageNotInCatalog", "--from example.com/community:latest"},
		"an image that would be more than an argument": {func(s *situation) {
			s.Known.Packages, s.scan.CatalogSources[0].Image = nil, "x; rm -rf ~"
		}, adoption.NeedsDecision, "PackageNotInCatalog", "--package echo-operator --from CATALOG`"},
		"package renamed, same bundle": {func(s *situation) { s.Known.Packages[0].Name = "echo" },
			adoption.NeedsDecision, "PackageRenamed", "Package echo in OperatorCatalog team/main has the bundle"},
		"package renamed, and a ManagedOperator has the new name": {func(s *situation) {
			s.Known.Packages[0].Name = "echo"
			s.wanted("echo", true).Package = "echo"
		}, adoption.NeedsDecision, "PackageRenamed", "Package echo in OperatorCatalog team/main has the bundle"},
		"package renamed, same APIs": {func(s *situation) {
			s.Known.Packages = nil
			o := s.wanted("echo", true)
			o.Package, o.Provides = "echo", []string{"EchoServer.v1.example.com"}
		}, adoption.NeedsDecision, "PackageRenamed", "ManagedOperator team/echo installs package echo"},
		"channel gone": {func(s *situation) { s.sub.Channel = "fast" }, adoption.NeedsDecision, "ChannelNotInCatalog",
			"candidate (1.2.0), stable (1.1.0)"},
		"no channel": {func(s *situation) { s.sub.Channel = "" }, adoption.Eligible, "Eligible", ""},
		"version not in the catalog": {func(s *situation) { s.csv.Name, s.csv.Version = "echo-operator.v1.0.5", "1.0.5" },
			adoption.NeedsDecision, "VersionNotInCatalog", "catalog add"},
		"version newer than the head": {func(s *situation) { s.csv.Name, s.csv.Version = "echo-operator.v2.0.0", "2.0.0" },
			adoption.NeedsDecision, "NewerThanCatalog", "newer than every version"},
		"same version, another bundle": {func(s *situation) { s.csv.Name = "echo.v1.0.0" }, adoption.NeedsDecision,
			"OtherBundle", "as bundle echo-operator.v1.0.0"},
		"a version that is blocked": {func(s *situation) { s.Known.Packages[0].Bundles[0].Blocked = "loses data." },
			adoption.Eligible, "Eligible", "is blocked in OperatorCatalog team/main: loses data."},
		"only heads are known, and it is one": {func(s *situation) {
			s.Known.Packages[0].Bundles, s.Known.Packages[0].Complete = nil, false
			s.csv.Version = "1.1.0"
		}, adoption.Eligible, "Eligible", ""},
		"only heads are known, and it is none": {func(s *situation) {
			s.Known.Packages[0].Bundles, s.Known.Packages[0].Complete = nil, false
		}, adoption.Unknown, "VersionsNotRead", ""},
		"the catalog cannot be read": {func(s *situation) {
			s.Known.Packages, s.Known.NotRead = nil, []string{"team/main: the registry does not answer"}
		}, adoption.Unknown, "CatalogNotRead", "the registry does not answer"},
		"the catalog of the ManagedOperator counts": {func(s *situation) {
			s.wanted("echo", true).Catalog = "team/other"
			s.Known.Packages = append(s.Known.Packages, adoption.Package{Catalog: "team/other", Name: "echo-operator",
				Complete: true, Channels: []adoption.Channel{{Name: "stable", Head: "0.9.0"}}})
		}, adoption.NeedsDecision, "NewerThanCatalog", "OperatorCatalog team/other"},

		"two OperatorGroups": {func(s *situation) {
			s.scan.Namespaces[0].OperatorGroups = append(s.scan.Namespaces[0].OperatorGroups,
				v1alpha1.FoundOperatorGroup{Name: "second"})
		}, adoption.Conflict, "ManyOperatorGroups", "2 OperatorGroups (echo, second)"},
		"no OperatorGroup": {func(s *situation) { s.scan.Namespaces[0].OperatorGroups = nil }, adoption.Conflict,
			"NoOperatorGroup", ""},
		"OperatorGroup of its own namespace": {func(s *situation) { s.group().Targets = []string{"echo"} },
			adoption.Eligible, "Eligible", ""},
		"OperatorGroup of other namespaces": {func(s *situation) { s.group().Targets = []string{"a", "b"} },
			adoption.NeedsDecision, "OtherInstallMode", "names a, b"},
		"OperatorGroup with a selector": {func(s *situation) { s.group().Selector = true }, adoption.NeedsDecision,
			"OtherInstallMode", "by their labels"},
		"the ManagedOperator has another install mode": {func(s *situation) {
			s.group().Targets = []string{"echo"}
			s.wanted("echo", true)
		}, adoption.NeedsDecision, "OtherInstallMode", "Set spec.install.mode of the ManagedOperator to OwnNamespace"},
		"OperatorGroup with a ServiceAccount": {func(s *situation) { s.group().ServiceAccount = "limited" },
			adoption.Eligible, "Eligible", "rights of ServiceAccount limited"},

		"InstallPlan pending": {func(s *situation) {
			s.sub.CurrentCSV = "echo-operator.v1.1.0"
			s.plan(v1alpha1.FoundInstallPlan{Name: "install-a", Phase: "RequiresApproval",
				CSVs: []string{"echo-operator.v1.1.0"}})
		}, adoption.NeedsDecision, "PlanPending", "install-a for echo-operator.v1.1.0 waits for approval"},
		"InstallPlan running": {func(s *situation) {
			s.plan(v1alpha1.FoundInstallPlan{Name: "install-a", Phase: "Installing", Approved: true,
				CSVs: []string{"echo-operator.v1.0.0"}})
		}, adoption.Unknown, "UnderWay", "is being carried out"},
		"InstallPlan failed": {func(s *situation) {
			s.sub.InstallPlan = "install-a"
			s.plan(v1alpha1.FoundInstallPlan{Name: "install-a", Phase: "Failed"})
		}, adoption.NeedsDecision, "PlanFailed", ""},
		"InstallPlan of another operator": {func(s *situation) {
			s.plan(v1alpha1.FoundInstallPlan{Name: "install-a", Phase: "RequiresApproval", CSVs: []string{"other.v1"}})
		}, adoption.Eligible, "Eligible", ""},
		"automatic approval": {func(s *situation) { s.sub.Approval = "Automatic" }, adoption.Eligible, "Eligible",
			"Approval is automatic"},
		"CSV edited by hand": {func(s *situation) { s.csv.EditedBy = []string{"kubectl-edit"} }, adoption.NeedsDecision,
			"CSVEdited", "edited by kubectl-edit"},
		"CSV failed": {func(s *situation) {
			s.csv.Phase, s.csv.Message = "Failed", "install strategy failed: no such image."
		}, adoption.NeedsDecision, "CSVFailed", "has failed: install strategy failed: no such image."},
		"CSV replacing": {func(s *situation) { s.csv.Phase = "Replacing" }, adoption.Unknown, "UnderWay", ""},
		"CSV installing": {func(s *situation) { s.csv.Phase = "InstallReady" }, adoption.Unknown, "UnderWay",
			"is in phase InstallReady: OLM is at work"},
		"CSV pending, and its operator says why": {func(s *situation) {
			s.csv.Phase, s.csv.Message = "Pending", "operator is not upgradeable: migrating."
		}, adoption.Unknown, "UnderWay",
			"is in phase Pending (operator is not upgradeable: migrating): OLM is at work"},
		"CSV replaced and not gone": {func(s *situation) {
			s.found.Others = []v1alpha1.FoundVersion{{Name: "echo-operator.v0.9.0", Phase: "Replacing"}}
		}, adoption.Unknown, "UnderWay", "echo-operator.v0.9.0 of the same upgrade is still there"},
		"CSV replaced and kept by a finalizer": {func(s *situation) {
			s.found.Others = []v1alpha1.FoundVersion{{Name: "echo-operator.v0.9.0", Phase: "Deleting"}}
		}, adoption.Unknown, "UnderWay", "its metadata.finalizers name the finalizer"},
		"CSV and Subscription deleted": {func(s *situation) {
			s.sub.Deleting, s.sub.Finalizers = true, []string{"example.com/keep"}
		}, adoption.Conflict, "Deleting", "waits for the finalizer example.com/keep"},
		"Subscription without a CSV": {func(s *situation) {
			s.found.CSV, s.sub.InstalledCSV, s.sub.NotResolved = nil, "", "no operators found in package echo-operator."
		}, adoption.NeedsDecision, "NotInstalled",
			"has installed nothing: no operators found in package echo-operator."},
		"Subscription that was just made": {func(s *situation) { s.found.CSV, s.sub.InstalledCSV = nil, "" },
			adoption.Unknown, "UnderWay", "Subscription echo/echo has installed nothing yet: OLM is at work"},
		"Subscription whose CSV was deleted": {func(s *situation) { s.found.CSV = nil }, adoption.NeedsDecision,
			"NotInstalled", "The CSV echo-operator.v1.0.0 that Subscription echo/echo has installed was deleted"},
		"CSV without a Subscription, in the catalog": {func(s *situation) { s.found.Subscription = nil },
			adoption.Eligible, "Eligible", "makes a Subscription that adopts it"},
		"CSV without a Subscription, in no catalog": {func(s *situation) {
			s.found.Subscription, s.Known.Packages = nil, nil
		}, adoption.NeedsDecision, "NoSubscription", "No OperatorCatalog is known to have the bundle"},

		"a namespace that it shares": {func(s *situation) { s.another("echo", "other") }, adoption.NeedsDecision,
			"SharedNamespace", "has other operators too: other"},
		"a dependency in the namespace": {func(s *situation) { s.another("echo", "db").Subscription.Dependency = true },
			adoption.Eligible, "Eligible", ""},
		"it came as a dependency": {func(s *situation) {
			s.sub.Dependency = true
			s.another("echo", "shop").CSV.Required = []string{"echoservers.example.com"}
		}, adoption.NeedsDecision, "Dependency", "because shop.v1.0.0 needs it"},
		"another operator uses it": {func(s *situation) {
			s.another("shop", "shop").CSV.Required = []string{"echoservers.example.com"}
		}, adoption.Eligible, "Eligible", "shop.v1.0.0 needs its APIs"},
		"config that can be expressed": {func(s *situation) { s.sub.Config = []string{"env", "resources"} },
			adoption.Eligible, "Eligible", "spec.config.env, spec.config.resources"},
		"config that cannot be expressed": {func(s *situation) {
			s.sub.Config = []string{"affinity", "env", "volumes"}
			s.sub.ConfigNotSupported = []string{"affinity", "volumes"}
		}, adoption.NeedsDecision, "ConfigNotSupported", "sets spec.config.affinity, spec.config.volumes, which"},
		"startingCSV": {func(s *situation) { s.sub.StartingCSV = "echo-operator.v0.1.0" }, adoption.Eligible, "Eligible",
			"began with echo-operator.v0.1.0"},
		"CatalogSource in another namespace": {func(*situation) {}, adoption.Eligible, "Eligible",
			"CatalogSource is in namespace olm"},
		"CatalogSource gone": {func(s *situation) { s.scan.CatalogSources = nil }, adoption.Eligible, "Eligible",
			"CatalogSource olm/community no longer exists"},
		"CatalogSource does not answer": {func(s *situation) { s.scan.CatalogSources[0].State = "TRANSIENT_FAILURE" },
			adoption.Eligible, "Eligible", "in state TRANSIENT_FAILURE"},
		"two Subscriptions for the package": {func(s *situation) {
			s.another("echo", "echo-operator").Subscription.Name = "echo-again"
		}, adoption.Conflict, "TwoSubscriptions", "echo, echo-again"},
		"GitOps writes it back": {func(s *situation) { s.sub.GitOps = "Argo CD (team/echo)" }, adoption.NeedsDecision,
			"GitOps", "Argo CD (team/echo) writes Subscription echo/echo"},
		"another controller wrote it": {func(s *situation) { s.sub.Writers = []string{"platform-controller"} },
			adoption.Eligible, "Eligible", "written by platform-controller"},
		"finalizers": {func(s *situation) { s.sub.Finalizers = []string{"example.com/keep"} }, adoption.Eligible,
			"Eligible", "finalizer example.com/keep"},
		"a definition is missing": {func(s *situation) { s.csv.Missing = []string{"echoservers.example.com"} },
			adoption.NeedsDecision, "DefinitionMissing", ""},
		"and the CSV has failed because of that": {func(s *situation) {
			s.csv.Missing, s.csv.Phase = []string{"echoservers.example.com"}, "Failed"
		}, adoption.NeedsDecision, "DefinitionMissing", "Create the definitions again"},
		"Deployment scaled by hand": {func(s *situation) { s.csv.Deployments[0].Replicas = 3 }, adoption.Eligible,
			"Eligible", "scaled to 3, and the bundle asks for 1"},
		"Deployment scaled to zero": {func(s *situation) { s.csv.Deployments[0].Replicas = 0 }, adoption.NeedsDecision,
			"ScaledToZero", "Scale it to 1 again"},
		"Deployment not available": {func(s *situation) { s.csv.Deployments[0].Ready = 0 }, adoption.Eligible, "Eligible",
			"0 of 1 replicas available"},
		"the cluster's owner refuses changes": {func(s *situation) {
			s.Refusal = &adoption.Refusal{Message: "the owner of the cluster refuses changes: audit"}
		}, adoption.NeedsDecision, "Vetoed", "The owner of the cluster refuses changes: audit."},
		"an agent that may only read": {func(s *situation) {
			s.Refusal = &adoption.Refusal{Message: "the agent may only read the cluster", ReadOnly: true}
		}, adoption.Eligible, "Eligible", "The agent may only read the cluster."},

		"a ManagedOperator for it": {func(s *situation) { s.wanted("echo", true) }, adoption.Eligible, "Eligible", ""},
		"a ManagedOperator for another namespace": {func(s *situation) { s.wanted("elsewhere", true) }, adoption.Conflict,
			"InstalledElsewhere", "set its spec.install.namespace to echo"},
		"a ManagedOperator for the namespace": {func(s *situation) { s.wanted("echo", true).Package = "other" },
			adoption.Conflict, "NamespaceConflict", "installs into namespace echo as well"},
		"installed in two namespaces": {func(s *situation) { s.another("elsewhere", "echo-operator") }, adoption.Conflict,
			"InstalledElsewhere", "Subscription echo-operator in namespace elsewhere"},
		"another operator elsewhere": {func(s *situation) { s.another("elsewhere", "other") }, adoption.Eligible,
			"Eligible", ""},
		"the report leaves out its namespace": {func(s *situation) { s.scan.Namespaces = nil }, adoption.Unknown,
			"NotReported", ""},
		"the report leaves out neighbours": {func(s *situation) {
			s.scan.Truncated = &v1alpha1.ScanTruncation{Operators: 3}
		}, adoption.Unknown, "NotReported", "leaves out 3 operators"},
		"the most severe finding counts": {func(s *situation) {
			s.csv.Phase, s.sub.GitOps = "Replacing", "Flux"
			s.scan.Namespaces[0].OperatorGroups = nil
		}, adoption.Conflict, "NoOperatorGroup", "Flux writes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSituation()
			test.change(s)
			v := s.judge()
			if v.Class != test.class || v.Findings[0].Reason != test.reason || v.Findings[0].Class != test.class {
				t.Errorf("%s (%s), want %s (%s); findings: %+v", v.Class, v.Findings[0].Reason, test.class, test.reason,
					v.Findings)
			}
			var text strings.Builder
			for _, f := range v.Findings {
				text.WriteString(f.Message + " " + strings.Join(f.Choices, " ") + "\n")
				if !strings.HasSuffix(f.Message, ".") || strings.Contains(f.Message, "..") {
					t.Errorf("no sentence: %q", f.Message)
				}
				if !bytes.Contains(guide, []byte("`"+f.Reason+"`")) {
					t.Errorf("the guide does not have the reason %s", f.Reason)
				}
				if f.Class != adoption.Eligible && f.Class != adoption.Managed && f.Reason != "NotReported" &&
					len(f.Choices) == 0 {
					t.Errorf("%s says nothing that a person can do", f.Reason)
				}
			}
			if !strings.Contains(text.String(), test.contains) {
				t.Errorf("findings do not contain %q:\n%s", test.contains, text.String())
			}
			checkAdmitted(t, test.change)
			if !slices.IsSortedFunc(v.Findings, func(a, b adoption.Finding) int {
				return slices.Index(adoption.Classes(), a.Class) - slices.Index(adoption.Classes(), b.Class)
			}) {
				t.Errorf("findings are not in the order of their classes: %+v", v.Findings)
			}
		})
	}
}

// checkAdmitted checks that what is read from an image or a directory is not called an OperatorCatalog.
func checkAdmitted(t *testing.T, change func(*situation)) {
	t.Helper()
	s := newSituation()
	change(s)
	for i := range s.Known.Packages {
		s.Known.Packages[i].Admitted = true
	}
	for _, f := range s.judge().Findings {
		if text := f.Message + " " + strings.Join(f.Choices, " "); strings.Contains(text, "OperatorCatalog team/") {
			t.Errorf("a catalog of an admission is called an OperatorCatalog: %s", text)
		}
	}
}

// TestNothingIsTakenForGranted checks reports with any content, including empty reports.
func TestNothingIsTakenForGranted(t *testing.T) {
	t.Parallel()
	for _, found := range []*v1alpha1.FoundOperator{
		{}, {Subscription: &v1alpha1.FoundSubscription{}}, {CSV: &v1alpha1.FoundCSV{}},
		{CSV: &v1alpha1.FoundCSV{Owned: []v1alpha1.FoundDefinition{{}}, Deployments: []v1alpha1.FoundDeployment{{}}},
			Subscription: &v1alpha1.FoundSubscription{Deleting: true}, Others: []v1alpha1.FoundVersion{{}}},
		{Managed: true},
	} {
		v := adoption.Judge(adoption.Input{Found: found, Scan: &v1alpha1.OperatorScanStatus{}})
		if len(v.Findings) == 0 {
			t.Errorf("%+v: no finding", found)
		}
	}
}
