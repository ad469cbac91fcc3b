// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/explain"
	"github.com/bellwether-dev/bellwether/explain/doctor"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func deployment(component string, want, available int32) explain.Deployment {
	labels := map[string]string{"app.kubernetes.io/component": component}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-system", Name: "bellwether-" + component,
			Labels: map[string]string{"app.kubernetes.io/version": "0.4.0"}},
		Spec:   appsv1.DeploymentSpec{Replicas: &want, Selector: &metav1.LabelSelector{MatchLabels: labels}},
		Status: appsv1.DeploymentStatus{Replicas: want, AvailableReplicas: available},
	}
	return explain.Deployment{Name: d.Name, Want: &want, Deployment: d}
}

// healthy is an installation without findings.
func healthy() doctor.Observation {
	return doctor.Observation{
		Now: noon, ChartVersion: "0.4.0",
		Hub: doctor.Site{Name: "the hub", Namespace: "bellwether-system", Component: "hub",
			Deployments: []explain.Deployment{deployment("hub", 2, 2)}, Account: "bellwether-system/bellwether-hub",
			Ahead: ptr.To(time.Second)},
		Leader: lease("bellwether-system", "bellwether-hub", noon.Add(-5*time.Second), noon.Add(-5*time.Second),
			15),
		Clusters:   []v1alpha1.FleetCluster{cluster("prod-1"), cluster("prod-2")},
		Leases:     []coordinationv1.Lease{*lease("bellwether-prod-1", "bellwether-agent", noon, noon, 90)},
		Catalogs:   []v1alpha1.OperatorCatalog{catalog(condition(v1alpha1.ConditionReady, true, "Succeeded", ""))},
		Objectives: []v1alpha1.OperatorSLO{objective(condition(v1alpha1.ConditionRulesLoaded, true, "Succeeded", ""))},
		Paging:     []v1alpha1.PagingPolicy{paging(condition(v1alpha1.ConditionReady, true, "Succeeded", ""))},
	}
}

func lease(namespace, name string, renewed, received time.Time, seconds int32) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "other", Time: ptr.To(metav1.NewTime(noon.Add(-time.Hour))),
				FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{}}`)}},
			{Manager: "agent", Time: ptr.To(metav1.NewTime(received)),
				FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:renewTime":{}}}`)}},
		}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("pod-1"), LeaseDurationSeconds: &seconds,
			RenewTime: ptr.To(metav1.NewMicroTime(renewed))},
	}
}

func condition(kind string, is bool, reason, message string) metav1.Condition {
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func cluster(name string, conditions ...metav1.Condition) v1alpha1.FleetCluster {
	if len(conditions) == 0 {
		conditions = []metav1.Condition{condition(v1alpha1.ConditionOnline, true, "LeaseFresh", ""),
			condition(v1alpha1.ConditionAPIServerReachable, true, "APIServerReachable", ""),
			condition(v1alpha1.ConditionOLMAvailable, true, "Succeeded", ""),
			condition(v1alpha1.ConditionReady, true, "Succeeded", "")}
	}
	return v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1alpha1.FleetClusterStatus{
		Conditions: conditions, Versions: v1alpha1.ClusterVersions{Agent: "0.4.0"}}}
}

func offline(name string) v1alpha1.FleetCluster {
	return cluster(name, condition(v1alpha1.ConditionOnline, false, v1alpha1.ReasonLeaseExpired, "the Lease ended"),
		condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonAgentOffline, "the agent does not report"))
}

func catalog(c ...metav1.Condition) v1alpha1.OperatorCatalog {
	return v1alpha1.OperatorCatalog{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "main"},
		Status: v1alpha1.OperatorCatalogStatus{Conditions: c, Digest: "sha256:1"}}
}

func objective(c ...metav1.Condition) v1alpha1.OperatorSLO {
	return v1alpha1.OperatorSLO{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "echo"},
		Status: v1alpha1.OperatorSLOStatus{Conditions: c}}
}

func paging(c ...metav1.Condition) v1alpha1.PagingPolicy {
	return v1alpha1.PagingPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "sre"},
		Status: v1alpha1.PagingPolicyStatus{Conditions: c}}
}

// TestHealthyInstallation: nothing is found, and each check is named.
// unreconciled is what the hub reports of an object that it fails to reconcile.
func unreconciled() metav1.Condition {
	return condition(v1alpha1.ConditionReconcileFailing, true, v1alpha1.ReasonReconcileError, "webhook denied it")
}

func TestHealthyInstallation(t *testing.T) {
	t.Parallel()
	got := doctor.Examine(healthy())
	want := doctor.Report{APIVersion: doctor.APIVersion, Kind: doctor.Kind, Findings: []doctor.Finding{},
		NotChecked: []doctor.Gap{}, Passed: doctor.Checks()}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if got.Worst() != "" {
		t.Errorf("the worst is %q", got.Worst())
	}
}

// finding has the fields of a Finding that tests compare.
type finding struct {
	severity doctor.Severity
	check    doctor.Check
	text     string // a part of it
	command  string // of one of the remedies
}

func TestFindings(t *testing.T) {
	t.Parallel()
	dead := doctor.Webhook{Kind: "ValidatingWebhookConfiguration", Configuration: "guard", Name: "guard.example.com",
		Service: "guard/guard", Missing: true, Fails: true, Groups: []string{"bellwether.dev"}}
	for name, test := range map[string]struct {
		broken func(*doctor.Observation)
		want   finding
	}{
		"no hub": {func(in *doctor.Observation) { in.Hub.Deployments = nil },
			finding{doctor.Critical, doctor.CheckHub,
				"there is no Deployment of the hub in namespace bellwether-system",
				"bellwether install hub"}},
		"no replica available": {func(in *doctor.Observation) {
			d := deployment("hub", 2, 0)
			d.Pods = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}},
				ContainerStatuses: []corev1.ContainerStatus{{Name: "hub", State: corev1.ContainerState{
					Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}}}}
			in.Hub.Deployments = []explain.Deployment{d}
		}, finding{doctor.Critical, doctor.CheckHub, "has 0 of 2 replicas available: container hub waits: " +
			"ImagePullBackOff: no such image",
			"kubectl -n bellwether-system describe pods -l app.kubernetes.io/component=hub"}},
		"one replica of two": {func(in *doctor.Observation) {
			in.Hub.Deployments = []explain.Deployment{deployment("hub", 2, 1)}
		}, finding{doctor.Warning, doctor.CheckHub, "has 1 of 2 replicas available",
			"kubectl -n bellwether-system logs deployment/bellwether-hub --previous"}},
		"scaled to zero": {func(in *doctor.Observation) {
			in.Hub.Deployments = []explain.Deployment{deployment("hub", 0, 0)}
		}, finding{doctor.Critical, doctor.CheckHub, "scaled to 0 replicas",
			"kubectl -n bellwether-system scale deployment bellwether-hub --replicas=1"}},
		"no leader yet": {func(in *doctor.Observation) { in.Leader = nil },
			finding{doctor.Critical, doctor.CheckHub, "no replica of the hub has ever led",
				"kubectl -n bellwether-system logs deployment/bellwether-hub --tail=50"}},
		"nobody holds the Lease": {func(in *doctor.Observation) { in.Leader.Spec.HolderIdentity = ptr.To("") },
			finding{doctor.Critical, doctor.CheckHub, "no replica of the hub leads: no replica holds", ""}},
		"the leader is silent": {func(in *doctor.Observation) {
			in.Leader.Spec.RenewTime = ptr.To(metav1.NewMicroTime(noon.Add(-time.Hour)))
		}, finding{doctor.Critical, doctor.CheckHub,
			"no replica of the hub has led since 2026-01-01T11:00:15Z: pod-1",
			"kubectl -n bellwether-system rollout restart deployment bellwether-hub"}},
		"an agent is offline": {func(in *doctor.Observation) { in.Clusters[0] = offline("prod-1") },
			finding{doctor.Critical, doctor.CheckAgents, "cluster prod-1 is offline: the Lease ended",
				"kubectl -n bellwether-system logs deploy/bellwether-agent"}},
		"agents are offline": {func(in *doctor.Observation) {
			in.Clusters = []v1alpha1.FleetCluster{offline("a"), offline("b"), offline("c"), offline("d"), offline("e"),
				offline("f"), offline("g")}
		}, finding{doctor.Critical, doctor.CheckAgents,
			"7 clusters have the reason LeaseExpired: a, b, c, d, e and 2 more",
			"bellwether fleet join CLUSTER --cluster-kubeconfig FILE"}},
		"never joined": {func(in *doctor.Observation) {
			in.Clusters[0] = cluster("prod-1", condition(v1alpha1.ConditionOnline, false, v1alpha1.ReasonNeverJoined,
				"none"))
		}, finding{doctor.Warning, doctor.CheckAgents, "cluster prod-1 is offline",
			"bellwether fleet join prod-1 --cluster-kubeconfig FILE"}},
		"no OLM": {func(in *doctor.Observation) {
			in.Clusters[0] = cluster("prod-1", condition(v1alpha1.ConditionOnline, true, "LeaseFresh", ""),
				condition(v1alpha1.ConditionAPIServerReachable, true, "APIServerReachable", ""),
				condition(v1alpha1.ConditionOLMAvailable, false, v1alpha1.ReasonOLMMissing, "OLM is not installed"))
		}, finding{doctor.Critical, doctor.CheckOLM, "cluster prod-1 has no OLM", ""}},
		"OLM does not run": {func(in *doctor.Observation) {
			in.Fleet = &doctor.Site{Name: "the fleet cluster", Flags: "--kubeconfig prod-1", Component: "agent",
				Deployments: []explain.Deployment{deployment("agent", 1, 1)},
				OLM:         []explain.Deployment{deployment("olm-operator", 1, 0)}}
		}, finding{doctor.Critical, doctor.CheckOLM, "on the fleet cluster has 0 of 1 replicas available",
			"kubectl --kubeconfig prod-1 -n bellwether-system logs deployment/bellwether-olm-operator --previous"}},
		"no agent on the cluster": {func(in *doctor.Observation) {
			in.Fleet = &doctor.Site{Name: "the fleet cluster", Namespace: "bellwether-system", Component: "agent",
				OLM: []explain.Deployment{deployment("olm-operator", 1, 1)}}
		}, finding{doctor.Critical, doctor.CheckAgents,
			"there is no Deployment of the agent in namespace bellwether-system on the fleet cluster",
			"bellwether fleet join CLUSTER --cluster-kubeconfig FILE"}},
		"an agent is newer": {func(in *doctor.Observation) { in.Clusters[0].Status.Versions.Agent = "v0.6.0" },
			finding{doctor.Warning, doctor.CheckVersions,
				"more than one minor version newer than the hub, which is 0.4.0: prod-1 (v0.6.0)",
				"bellwether install hub"}},
		"an agent is old": {func(in *doctor.Observation) { in.Clusters[0].Status.Versions.Agent = "v0.2.9" },
			finding{doctor.Warning, doctor.CheckVersions, "more than one minor version older than the hub",
				"bellwether fleet join CLUSTER --cluster-kubeconfig FILE"}},
		"a CRD is missing": {
			func(in *doctor.Observation) { in.CRDs = []doctor.CRD{{Name: "x.bellwether.dev", Missing: true}} },
			finding{doctor.Critical, doctor.CheckVersions, "the hub does not have 1 CRD: x.bellwether.dev",
				"bellwether install hub"},
		},
		"a CRD is old": {func(in *doctor.Observation) { in.CRDs = []doctor.CRD{{Name: "x.bellwether.dev"}} },
			finding{doctor.Warning, doctor.CheckVersions, "CRDs on the hub are not those of its version, 0.4.0, as " +
				"after a `helm upgrade` with crds.enabled=false: x.bellwether.dev",
				"bellwether install hub"}},
		"a permission is missing": {func(in *doctor.Observation) {
			in.Hub.Denied = []authorizationv1.ResourceAttributes{{Verb: "list", Resource: "leases"},
				{Verb: "get", Resource: "x"}}
		},
			finding{doctor.Critical, doctor.CheckPermissions, "ServiceAccount bellwether-system/bellwether-hub lacks " +
				"permissions on the hub: list leases; get x", "bellwether install hub"}},
		"the clock of the hub": {func(in *doctor.Observation) { in.Hub.Ahead = ptr.To(-2 * time.Minute) },
			finding{doctor.Warning, doctor.CheckClocks,
				"the clock of the API server of the hub is 2m0s behind the clock of this machine",
				"timedatectl status"}},
		"the clock of a cluster": {func(in *doctor.Observation) {
			in.Leases[0] = *lease("bellwether-prod-1", "bellwether-agent", noon.Add(10*time.Minute), noon, 90)
		}, finding{doctor.Warning, doctor.CheckClocks, "prod-1 (10m0s ahead of the hub's)", "timedatectl status"}},
		"a webhook without a Service": {func(in *doctor.Observation) { in.Hub.Webhooks = []doctor.Webhook{dead} },
			finding{doctor.Critical, doctor.CheckWebhooks,
				"leads to Service guard/guard, which does not exist: requests " +
					"fail that it is asked about, those of Bellwether among them",
				"kubectl delete validatingwebhookconfiguration guard"}},
		"a webhook of others without endpoints": {func(in *doctor.Observation) {
			w := dead
			w.Missing, w.Groups = false, []string{"example.com"}
			in.Hub.Webhooks = []doctor.Webhook{w}
		}, finding{doctor.Warning, doctor.CheckWebhooks, "has no ready endpoint: requests fail that it is asked about",
			"kubectl -n guard get service,endpointslices,pods"}},
		"a webhook that may fail": {func(in *doctor.Observation) {
			w := dead
			w.Fails = false
			in.Hub.Webhooks = []doctor.Webhook{w}
		}, finding{doctor.Warning, doctor.CheckWebhooks, "it is skipped, and each request waits for it in vain", ""}},
		"a registry that does not answer": {func(in *doctor.Observation) {
			in.Catalogs[0] = catalog(condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonCatalogUnreachable,
				"refused"),
				condition(v1alpha1.ConditionStalled, true, v1alpha1.ReasonCatalogUnreachable, "connection refused"))
		}, finding{doctor.Warning, doctor.CheckCatalogs, "catalog fleet/main cannot be used: ", ""}},
		"rules that Prometheus does not evaluate": {func(in *doctor.Observation) {
			in.Objectives[0] = objective(condition(v1alpha1.ConditionRulesLoaded, false, v1alpha1.ReasonRulesMissing,
				"Prometheus has none of the rules"))
		}, finding{doctor.Warning, doctor.CheckAlerts, "OperatorSLO fleet/echo: Prometheus has none of the rules", ""}},
		"a cluster that the hub cannot reconcile": {func(in *doctor.Observation) {
			in.Clusters[0].Status.Conditions = append(in.Clusters[0].Status.Conditions, unreconciled())
		}, finding{doctor.Warning, doctor.CheckAgents, "FleetCluster prod-1 cannot be reconciled: webhook denied it",
			""}},
		"a catalog that the hub cannot reconcile": {func(in *doctor.Observation) {
			in.Catalogs[0].Status.Conditions = append(in.Catalogs[0].Status.Conditions, unreconciled())
		}, finding{doctor.Warning, doctor.CheckCatalogs,
			"OperatorCatalog fleet/main cannot be reconciled: webhook denied it", ""}},
		"objectives that the hub cannot reconcile": {func(in *doctor.Observation) {
			in.Objectives[0].Status.Conditions = append(in.Objectives[0].Status.Conditions, unreconciled())
		}, finding{doctor.Warning, doctor.CheckAlerts, "OperatorSLO fleet/echo: webhook denied it", ""}},
		"a policy that the hub cannot reconcile": {func(in *doctor.Observation) {
			in.Paging[0].Status.Conditions = append(in.Paging[0].Status.Conditions, unreconciled())
		}, finding{doctor.Warning, doctor.CheckAlerts, "PagingPolicy fleet/sre: webhook denied it", ""}},
		"a policy that pages nobody": {func(in *doctor.Observation) {
			in.Paging[0] = paging(condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonSecretUnavailable,
				"no Secret key"))
		}, finding{doctor.Critical, doctor.CheckAlerts, "PagingPolicy fleet/sre: no Secret key", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := healthy()
			test.broken(&in)
			r := doctor.Examine(in)
			if len(r.Findings) != 1 {
				t.Fatalf("%d findings, want 1: %+v", len(r.Findings), r.Findings)
			}
			checkFinding(t, r.Findings[0], test.want)
			if slices.Contains(r.Passed, test.want.check) {
				t.Errorf("check %s has a finding and is said to be passed", test.want.check)
			}
			if r.Worst() != test.want.severity {
				t.Errorf("the worst is %s", r.Worst())
			}
		})
	}
}

func checkFinding(t *testing.T, got doctor.Finding, want finding) {
	t.Helper()
	if got.Severity != want.severity || got.Check != want.check || !strings.Contains(got.Text, want.text) {
		t.Errorf("got %s %s %q, want %s %s with %q", got.Severity, got.Check, got.Text, want.severity, want.check,
			want.text)
	}
	var commands []string
	for _, a := range got.Remedies {
		commands = append(commands, a.Command)
	}
	if len(got.Remedies) == 0 || want.command != "" && !slices.Contains(commands, want.command) {
		t.Errorf("the commands are %q, want %q among them", commands, want.command)
	}
}

// TestNotCheckedIsNotHealthy: what could not be read is neither a finding nor passed.
func TestNotCheckedIsNotHealthy(t *testing.T) {
	t.Parallel()
	in := healthy()
	in.Hub.Deployments, in.Leader = nil, nil
	in.Gaps = []doctor.Gap{{Check: doctor.CheckHub, What: "Deployments", Why: "forbidden"}}
	r := doctor.Examine(in)
	if len(r.Findings) != 0 || len(r.NotChecked) != 1 || slices.Contains(r.Passed, doctor.CheckHub) {
		t.Errorf("report %+v", r)
	}
	in = healthy()
	in.ChartVersion, in.CRDs = "0.5.0", []doctor.CRD{{Name: "x.bellwether.dev"}}
	r = doctor.Examine(in)
	if len(r.Findings) != 0 || len(r.NotChecked) != 1 || r.NotChecked[0].Check != doctor.CheckVersions {
		t.Errorf("CRDs of another version are compared: %+v", r)
	}
}

// TestPeopleChoseIt: what a person decided is no finding.
func TestPeopleChoseIt(t *testing.T) {
	t.Parallel()
	in := healthy()
	in.Clusters[0].Spec.Paused = true
	in.Clusters[1] = cluster("prod-2", condition(v1alpha1.ConditionOnline, false, v1alpha1.ReasonHibernating,
		"stopped"))
	leaving := offline("old")
	leaving.DeletionTimestamp = ptr.To(metav1.NewTime(noon))
	in.Clusters = append(in.Clusters, leaving)
	in.Hub.Deployments[0].Deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager",
		Args: []string{"--leader-election-kubeconfig=/etc/bellwether/lock/kubeconfig"}}}
	in.Leader = nil
	if r := doctor.Examine(in); len(r.Findings) != 0 {
		t.Errorf("findings: %+v", r.Findings)
	}
}

// TestMostUrgentFirst: a reader who stops after one finding has read the worst one.
func TestMostUrgentFirst(t *testing.T) {
	t.Parallel()
	in := healthy()
	in.Hub.Deployments = []explain.Deployment{deployment("hub", 2, 1)}
	in.Hub.Denied = []authorizationv1.ResourceAttributes{{Verb: "list", Resource: "leases"}}
	r := doctor.Examine(in)
	if len(r.Findings) != 2 || r.Findings[0].Severity != doctor.Critical {
		t.Errorf("findings: %+v", r.Findings)
	}
	data, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(data), `"severity":"Critical"`) {
		t.Errorf("as data: %s, %v", data, err)
	}
}

// TestAlertmanagerIsNeeded has hubs with and without the address of an Alertmanager.
func TestAlertmanagerIsNeeded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		container corev1.Container
		want      int
	}{
		"with an address": {
			corev1.Container{Name: "hub", Args: []string{"--v=1", "--alertmanager-url=http://am:9093"}}, 0},
		"in two arguments": {
			corev1.Container{Name: "hub", Args: []string{"--alertmanager-url", "http://am:9093"}}, 0},
		"in the command": {
			corev1.Container{Name: "hub", Command: []string{"hub", "--alertmanager-url=http://am:9093"}}, 0},
		"without an address": {corev1.Container{Name: "hub", Args: []string{"--v=1"}}, 1},
		"an empty address":   {corev1.Container{Name: "hub", Args: []string{"--alertmanager-url="}}, 1},
		"not the hub":        {corev1.Container{Name: "proxy"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := healthy()
			in.Hub.Deployments[0].Deployment.Spec.Template.Spec.Containers = []corev1.Container{test.container}
			var got []doctor.Finding
			for _, f := range doctor.Examine(in).Findings {
				if f.Reason == v1alpha1.ReasonNoAlertmanager {
					got = append(got, f)
				}
			}
			if len(got) != test.want {
				t.Fatalf("%d findings, want %d: %+v", len(got), test.want, got)
			}
			if test.want > 0 && (got[0].Severity != doctor.Warning || got[0].Check != doctor.CheckAlerts ||
				!strings.Contains(got[0].Text, "the hub knows no Alertmanager") || len(got[0].Remedies) == 0) {
				t.Errorf("finding %+v", got[0])
			}
		})
	}
}
