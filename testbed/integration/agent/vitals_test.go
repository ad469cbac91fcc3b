// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crcluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/controllers/agent/vitals"
	"github.com/bellwether-dev/bellwether/engines/olmv0"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/loopback"
	"github.com/bellwether-dev/bellwether/testbed/platform"
	testprometheus "github.com/bellwether-dev/bellwether/testbed/prometheus"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// TestVitals goes through the life of an operator as its metrics tell it, from
// an agent that has the chart's permissions and no more. Each step starts from
// where the one before it ended.
func TestVitals(t *testing.T) {
	t.Parallel()
	c := quiet(t)
	k := clientOf(t, c)
	const user, operator = "vitals-agent", "vital"
	permit(t, k, user)
	kubeconfig, err := c.WriteKubeconfig(user, user)
	if err != nil {
		t.Fatal(err)
	}
	var address string
	if err := loopback.OnFreePorts(t.Context(), 1,
		func(ports []int) error { address = loopback.Address(ports[0]); return nil }); err != nil {
		t.Fatal(err)
	}
	h := start(t, c, "vitals", "--kubeconfig", kubeconfig, "--metrics-bind-address", address, "--count-operands-every",
		"1s",
		"--monitor-labels", "release=prometheus").of(t, operator)
	pin := h.pin(bundle{version: "1.0.0", change: withStatus},
		bundle{version: "1.1.0", replaces: "1.0.0",
			change: func(csv, crd object) { withStatus(csv, crd); deadWebhooks(csv, crd) }},
		bundle{version: "1.2.0", replaces: "1.1.0",
			change: func(csv, crd object) { withStatus(csv, crd); neverReady(600)(csv, crd) }})
	is := func(name, more string, value any) string {
		return fmt.Sprintf("bellwether_operator_%s{cluster=\"vitals\",%soperator=\"vital\","+
			"operator_namespace=\"fleet\"} %v\n", name, more, value)
	}
	outcome := func(outcome string, n int) string {
		return fmt.Sprintf("bellwether_operator_install_total{cluster=\"vitals\",operator=\"vital\","+
			"operator_namespace=\"fleet\",outcome=%q} %d\n",
			outcome, n)
	}
	info := func(version string) string {
		oi := &v1alpha1.OperatorInstall{}
		h.must(h.Get(t.Context(), h.key(), oi))
		return fmt.Sprintf("bellwether_operator_info{cluster=\"vitals\",csv=\"vital.v%s\",namespace=\"vital\","+
			"operator=\"vital\",operator_namespace=\"fleet\",release=%q,version=%q} 1\n", version,
			series.ShortHash(oi.Spec.Admission.Hash), version)
	}
	scraped := func() string { return scrape(t, address) }

	h.to(pin, "1.0.0")
	h.runs()
	h.shows("an operator that runs", scraped, []string{
		is("expected", "", 1), is("csv_succeeded", "", 1), is("upgrading", "", 0), is("catalog_ready", "", 1),
		info("1.0.0"),
		is("deployment_replicas_desired", `deployment="vital",`, 1),
		is("deployment_replicas_available", `deployment="vital",`, 1),
		outcome("succeeded", 1), outcome("failed", 0),
		`bellwether_operator_install_duration_seconds_count{cluster="vitals",operator="vital",` +
			`operator_namespace="fleet",outcome="succeeded"} 1`,
	}, nil)

	condition := &operatorsv2.OperatorCondition{}
	key := client.ObjectKey{Namespace: operator, Name: csvName(operator, "1.0.0")}
	h.eventually("OLM makes the OperatorCondition", func() bool { return h.Get(t.Context(), key, condition) == nil })
	patch := client.MergeFrom(condition.DeepCopy())
	condition.Spec.Conditions = []metav1.Condition{{Type: "Upgradeable", Status: metav1.ConditionTrue, Reason: "Fine",
		Message: "fine", LastTransitionTime: metav1.Now()}}
	h.must(h.Patch(t.Context(), condition, patch))
	h.shows("what the operator says of itself", scraped, []string{
		`bellwether_operator_condition{cluster="vitals",operator="vital",operator_namespace="fleet",` +
			`type="Upgradeable"} 1`,
	}, nil)

	h.restartsAreCounted(t, scraped)

	h.to(pin, "1.1.0")
	h.runs()
	h.shows("an upgrade", scraped, []string{info("1.1.0"), is("csv_succeeded", "", 1), is("upgrading", "", 0),
		outcome("succeeded", 2)}, []string{`csv="vital.v1.0.0"`})

	h.agent.Stop(t.Context())
	h.startAgent()
	h.shows("an agent that was restarted counts nothing again", scraped,
		[]string{info("1.1.0"), is("csv_succeeded", "", 1), outcome("succeeded", 0)}, nil)

	later := h.later(t, c, user)
	h.operandsAreCounted(t, later)
	server := h.prometheus(t, address, apiServerOf(t, c))
	h.rulesFindThem(server)
	h.deadWebhooksAreBad(server, scraped)
	h.monitorsComeAndGo(t)

	h.to(pin, "1.2.0")
	h.shows("an upgrade that does not come up is excused", scraped,
		[]string{is("csv_succeeded", "", 0), is("upgrading", "", 1), is("expected", "", 1)}, nil)
	h.shows("and an hour later it is not", later, []string{is("csv_succeeded", "", 0), is("upgrading", "", 0)}, nil)

	h.uninstall(v1alpha1.RemovalUninstall)
	h.shows("nothing is left of an operator that was removed", scraped, []string{"controller_runtime_reconcile_total"},
		[]string{`operator="vital"`})
}

// restartsAreCounted reports, as a kubelet would, that the operator's container
// needed more memory than its limit.
func (h *harness) restartsAreCounted(t *testing.T, scraped func() string) {
	t.Helper()
	restarts := func(n int) string {
		return fmt.Sprintf("bellwether_operator_container_restarts_total{cluster=\"vitals\",operator=\"vital\","+
			"operator_namespace=\"fleet\",reason=\"oom_killed\"} %d\n", n)
	}
	const notPending = `bellwether_operator_pods_pending{cluster="vitals",operator="vital",` +
		`operator_namespace="fleet"} 0`
	h.shows("pods without a restart", scraped, []string{restarts(0), notPending}, nil)
	pods := &corev1.PodList{}
	h.must(h.List(t.Context(), pods, client.InNamespace("vital")))
	if len(pods.Items) != 1 {
		t.Fatalf("%d pods in namespace vital, want 1", len(pods.Items))
	}
	pod := &pods.Items[0]
	patch := client.MergeFrom(pod.DeepCopy())
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, RestartCount: 1,
		Ready: true, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "OOMKilled", ExitCode: 137}}}}
	h.must(h.Status().Patch(t.Context(), pod, patch))
	h.shows("a container that was killed for its memory", scraped, []string{restarts(1), notPending}, nil)
}

// operandsAreCounted looks with a clock that is ahead, so that resources just
// made are not young. The agent may not list them at first.
func (h *harness) operandsAreCounted(t *testing.T, metrics func() string) {
	t.Helper()
	for i, ready := range []string{"True", "True", "False", ""} {
		thing := h.thing(fmt.Sprintf("thing-%d", i))
		if ready != "" {
			thing.Object["status"] = object{"conditions": []any{object{"type": "Ready", "status": ready}}}
		}
		h.must(h.Create(t.Context(), thing))
	}
	const uncounted = `bellwether_operator_operands_uncounted{cluster="vitals",kind="Thing",operator="vital",` +
		`operator_namespace="fleet",reason="forbidden"} 1`
	counted := []string{
		`bellwether_operator_operands{cluster="vitals",kind="Thing",operator="vital",operator_namespace="fleet",` +
			`ready="true"} 2`,
		`bellwether_operator_operands{cluster="vitals",kind="Thing",operator="vital",operator_namespace="fleet",` +
			`ready="false"} 1`,
		`bellwether_operator_operands{cluster="vitals",kind="Thing",operator="vital",operator_namespace="fleet",` +
			`ready="unknown"} 1`,
	}
	h.shows("resources that the agent may not list", metrics, []string{uncounted}, counted)
	h.must(h.Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "things-of-vital",
			Labels: map[string]string{"bellwether.dev/aggregate-to-agent": "true"}},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{group("vital")}, Resources: []string{"things"},
			Verbs: []string{"list"}}},
	}))
	h.shows("resources that it was allowed to list", metrics, counted, []string{uncounted})
	h.must(h.Delete(t.Context(), h.thing("thing-2")))
	h.shows("one resource less", metrics, []string{strings.Replace(counted[1], "} 1", "} 0", 1)}, nil)
	for _, name := range []string{"thing-0", "thing-1", "thing-3"} {
		h.must(h.Delete(t.Context(), h.thing(name)))
	}
}

// prometheus is a real one that scrapes the agent and the cluster's API server.
func (h *harness) prometheus(t *testing.T, agent, apiServer string) *testprometheus.Server {
	t.Helper()
	binaries, err := build.Ensure(t.Context(), t.Output(), build.Prometheus)
	h.must(err)
	server, err := testprometheus.Start(t.Context(), testprometheus.Options{
		Dir: t.TempDir(), Binary: binaries[build.Prometheus], Interval: time.Second,
		Jobs: []testprometheus.Job{
			{Name: "agents", Targets: []string{agent}},
			// An API server has so many metrics that it may take seconds to hand them out.
			{Name: "apiservers", Targets: []string{apiServer}, Labels: map[string]string{series.Cluster: "vitals"},
				Interval: 15 * time.Second},
		},
	})
	h.must(err)
	t.Cleanup(func() { server.Stop(context.Background()) })
	return server
}

// apiServerOf hands out the metrics of a cluster's API server to those who do
// not log in, and returns the address.
func apiServerOf(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	k, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := k.RESTClient().Get().AbsPath("/metrics").DoRaw(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write(text)
	}))
	t.Cleanup(front.Close)
	return strings.TrimPrefix(front.URL, "http://")
}

// slice asks a Prometheus what the rule of an SLI asks. The error says that
// there is no slice, or one that is not of this operator.
func (h *harness) slice(server *testprometheus.Server, sli string) (float64, error) {
	h.t.Helper()
	rules, err := slo.Build(slo.Set{Default: slo.DefaultProfile()})
	h.must(err)
	for _, g := range rules.All() {
		for _, rule := range g.Rules {
			if rule.Record != series.SLIBad || rule.Labels[series.SLI] != sli {
				continue
			}
			found, err := server.Query(h.t.Context(), rule.Expr.String(), time.Time{})
			if err != nil {
				return 0, err
			}
			if len(found) != 1 || found[0].Metric[series.Cluster] != "vitals" ||
				found[0].Metric[series.Operator] != "vital" {
				return 0, fmt.Errorf("%s: %v", sli, found)
			}
			return float64(found[0].Value), nil
		}
	}
	return 0, fmt.Errorf("no rule records %s", sli)
}

// rulesFindThem: each SLI that is expected has a slice, and a good one.
func (h *harness) rulesFindThem(server *testprometheus.Server) {
	h.t.Helper()
	for _, sli := range []string{"csv", "available", "catalog", "operands"} {
		h.becomes(server, sli, 0)
	}
}

// deadWebhooksAreBad asks for what both of the operator's webhooks want to see.
// Nothing answers for either: one request is refused, the other passes.
func (h *harness) deadWebhooksAreBad(server *testprometheus.Server, scraped func() string) {
	h.t.Helper()
	for _, way := range []string{"closed", "open"} {
		h.shows("a webhook of the CSV", scraped, []string{
			fmt.Sprintf("bellwether_operator_webhook{cluster=\"vitals\",name=\"%s.vital.example.com\","+
				"operator=\"vital\",operator_namespace=\"fleet\"} 1", way)}, nil)
	}
	if bad, err := h.slice(server, "webhook"); err == nil {
		h.t.Errorf("nobody called a webhook, and its slice is %v", bad)
	}
	h.cannotCall(server, "closed", series.AdmissionRejectionCount)
	h.cannotCall(server, "open", series.AdmissionFailOpenCount)
	h.becomes(server, "webhook", 1)
}

// cannotCall makes requests that a webhook is about, until API servers count that they
// cannot call it.
func (h *harness) cannotCall(server *testprometheus.Server, webhook, counter string) {
	h.t.Helper()
	var err error
	defer func() {
		if h.t.Failed() {
			h.t.Logf("the last request that the webhook %s is about: %v", webhook, err)
		}
	}()
	h.eventually("API servers cannot call the webhook "+webhook, func() bool {
		err = h.Create(h.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: h.operator, GenerateName: "checked-", Labels: map[string]string{"checked": webhook},
		}}, client.DryRunAll)
		if webhook == "closed" && !apierrors.IsInternalError(err) || webhook == "open" && err != nil {
			return false // also where the API server has no time for it
		}
		failed, err := server.Query(h.t.Context(),
			fmt.Sprintf(`rate(%s{cluster="vitals",name="%s.vital.example.com"}[5m]) > 0`, counter, webhook),
			time.Time{})
		return err == nil && len(failed) > 0
	})
}

// becomes waits until the slice of an SLI is 1, which is bad, or 0.
func (h *harness) becomes(server *testprometheus.Server, sli string, bad float64) {
	h.t.Helper()
	var is float64
	var err error
	defer func() {
		if h.t.Failed() {
			h.t.Logf("slice of %s: %v, %v", sli, is, err)
		}
	}()
	h.eventually(fmt.Sprintf("the slice of %s is %v", sli, bad), func() bool {
		is, err = h.slice(server, sli)
		return err == nil && is == bad
	})
}

func (h *harness) thing(name string) *unstructured.Unstructured {
	return unstructuredOf(object{"apiVersion": group(h.operator) + "/v1", "kind": "Thing",
		"metadata": object{"namespace": h.operator, "name": name}})
}

// later are the metrics that an agent an hour ahead would have.
func (h *harness) later(t *testing.T, c *cluster.Cluster, user string) func() string {
	t.Helper()
	scheme := platform.Scheme()
	utilruntime.Must(operatorsv1.AddToScheme(scheme))
	utilruntime.Must(operatorsv1alpha1.AddToScheme(scheme))
	utilruntime.Must(operatorsv2.AddToScheme(scheme))
	ctrl.SetLogger(logr.Discard())
	hub, err := ctrl.NewManager(c.RESTConfig(), ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{h.namespace: {}}},
	})
	h.must(err)
	config, err := c.UserConfig(user)
	h.must(err)
	local, err := crcluster.New(config, func(o *crcluster.Options) {
		o.Scheme, o.MapperProvider, o.Cache = scheme, olmv0.Mapper, olmv0.LocalCache()
	})
	h.must(err)
	h.must(hub.Add(local))
	registry := prometheus.NewPedanticRegistry()
	h.must(vitals.Add(hub, local, registry, vitals.Options{
		Cluster: "vitals", OLM: func() (bool, bool) { return true, true }, CountEvery: 200 * time.Millisecond,
		Engine: vitals.Engine{BundleOf: olmv0.BundleOf, IsConnected: olmv0.IsConnected},
		Now:    func() time.Time { return time.Now().Add(time.Hour) },
	}))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- hub.Start(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return func() string {
		families, err := registry.Gather()
		h.must(err)
		var b strings.Builder
		for _, family := range families {
			_, err := expfmt.MetricFamilyToText(&b, family)
			h.must(err)
		}
		return b.String()
	}
}

// monitorsComeAndGo asks for a PodMonitor before and after the cluster has that
// kind, and then no more.
func (h *harness) monitorsComeAndGo(t *testing.T) {
	t.Helper()
	h.monitor(&v1alpha1.PodMetrics{Port: "metrics"})
	h.eventually("an Event says that there are no PodMonitors", func() bool {
		var events corev1.EventList
		h.must(h.List(t.Context(), &events, client.InNamespace(h.namespace)))
		return slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == "NoPodMonitors" })
	})
	crd := unstructuredOf(catalogtest.CRD("monitoring.coreos.com", 0))
	crd.SetName("podmonitors.monitoring.coreos.com")
	h.must(unstructured.SetNestedMap(crd.Object,
		object{"kind": "PodMonitor", "plural": "podmonitors", "singular": "podmonitor", "listKind": "PodMonitorList"},
		"spec", "names"))
	withStatus(nil, crd.Object)
	h.create(crd)
	served := &unstructured.UnstructuredList{Object: object{"apiVersion": "monitoring.coreos.com/v1",
		"kind": "PodMonitorList"}}
	h.eventually("the cluster serves PodMonitors", func() bool { return h.List(t.Context(), served) == nil })
	h.monitor(&v1alpha1.PodMetrics{Port: "metrics", Path: "/other"})
	monitor := unstructuredOf(object{"apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor"})
	key := client.ObjectKey{Namespace: h.operator, Name: "bellwether-" + h.operator}
	h.eventually("there is a PodMonitor", func() bool { return h.Get(t.Context(), key, monitor) == nil })
	selector, _, _ := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	if monitor.GetLabels()["release"] != "prometheus" || len(selector) == 0 || len(monitor.GetOwnerReferences()) != 1 {
		t.Errorf("the PodMonitor is not as asked: %v", monitor.Object)
	}
	theirs := unstructuredOf(object{"apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor",
		"metadata": object{"namespace": h.operator, "name": "theirs"}})
	h.create(theirs)
	h.monitor(nil)
	h.gone(monitor)
	h.must(h.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs))
	h.delete(theirs)
}

// monitor plays the hub's slo controller.
func (h *harness) monitor(asked *v1alpha1.PodMetrics) {
	h.t.Helper()
	oi := &v1alpha1.OperatorInstall{}
	h.must(h.Get(h.t.Context(), h.key(), oi))
	patch := client.MergeFrom(oi.DeepCopy())
	oi.Spec.Monitor = asked
	h.must(h.Patch(h.t.Context(), oi, patch))
}

// shows polls metrics until they have all of some lines and none of others.
func (h *harness) shows(what string, metrics func() string, has, lacks []string) {
	h.t.Helper()
	var text string
	var wrong []string
	defer func() {
		if len(wrong) > 0 {
			h.t.Logf("%s:\n%s\nin\n%s", what, strings.Join(wrong, "\n"), ours(text))
		}
	}()
	h.eventually(what, func() bool {
		text, wrong = metrics(), nil
		for _, line := range has {
			if !strings.Contains(text, line) {
				wrong = append(wrong, "lacks "+line)
			}
		}
		for _, line := range lacks {
			if strings.Contains(text, line) {
				wrong = append(wrong, "has "+line)
			}
		}
		return len(wrong) == 0
	})
}

func ours(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "bellwether_operator_") && !strings.Contains(line, "_bucket") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// scrape returns nothing while the agent is not there.
func scrape(t *testing.T, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("scrape: %s, %v\n%s", response.Status, err, text)
	}
	return string(text)
}

// permit gives a user what the chart gives to the agent's ServiceAccount on its
// cluster: its own rules, and the aggregated role. The role view is left out.
func permit(t *testing.T, k client.Client, user string) {
	t.Helper()
	root, err := build.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "charts", "bellwether", "files", "agent-rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(text, &role); err != nil {
		t.Fatal(err)
	}
	role.Name = user
	operands := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: user + "-operands"},
		AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{
			MatchLabels: map[string]string{"bellwether.dev/aggregate-to-agent": "true"},
		}}},
	}
	for _, r := range []*rbacv1.ClusterRole{&role, operands} {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: r.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}
		testenv.Grant(t, k, r, binding)
	}
}

// deadWebhooks has a CSV define two webhooks, for ConfigMaps that ask for it by
// label. Nothing listens for them; one lets requests pass then.
func deadWebhooks(csv, _ object) {
	var definitions []any
	for way, policy := range map[string]string{"closed": "Fail", "open": "Ignore"} {
		definitions = append(definitions, object{
			"type": "ValidatingAdmissionWebhook", "generateName": way + ".vital.example.com",
			"deploymentName": deploymentOf(csv)["name"],
			"containerPort":  443, "targetPort": 9443, "webhookPath": "/" + way, "failurePolicy": policy,
			"timeoutSeconds": 1,
			"sideEffects":    "None", "admissionReviewVersions": []any{"v1"},
			"objectSelector": object{"matchLabels": object{"checked": way}},
			"rules": []any{object{"apiGroups": []any{""}, "apiVersions": []any{"v1"},
				"operations": []any{"CREATE"}, "resources": []any{"configmaps"}}},
		})
	}
	csv["spec"].(object)["webhookdefinitions"] = definitions
}

// withStatus lets a CRD's resources have any fields.
func withStatus(_, crd object) {
	for _, version := range crd["spec"].(object)["versions"].([]any) {
		version.(object)["schema"] = object{"openAPIV3Schema": object{"type": "object",
			"x-kubernetes-preserve-unknown-fields": true}}
	}
}
