// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/prometheus"
	"github.com/bellwether-dev/bellwether/alerts/slo/spec"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/hub/slo"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// rule is what there is of a rule both in a file and in Prometheus's answer.
type rule struct {
	Record string            `json:"record,omitempty"`
	Alert  string            `json:"alert,omitempty"`
	Expr   string            `json:"expr"`
	Labels map[string]string `json:"labels,omitempty"`
}

type ruleGroup struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

// prometheusAPI answers as Prometheus does about the rules that it was told to load.
type prometheusAPI struct {
	*httptest.Server

	mu     sync.Mutex
	files  map[string][]ruleGroup
	broken string // the error that each rule gives
	status int
}

func newPrometheus(t *testing.T) *prometheusAPI {
	t.Helper()
	p := &prometheusAPI{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if r.URL.Path != "/api/v1/rules" || p.status != 0 {
			http.Error(w, "{}", max(p.status, http.StatusNotFound))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"groups": p.groups()}})
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *prometheusAPI) groups() []any {
	out := []any{}
	for file, groups := range p.files {
		for _, g := range groups {
			var rules []any
			for _, r := range g.Rules {
				one := map[string]any{"name": r.Record + r.Alert, "query": "f(" + r.Expr + ")", "labels": r.Labels,
					"health": "ok", "type": "recording"}
				if r.Alert != "" {
					one["type"], one["alerts"], one["state"] = "alerting", []any{}, "inactive"
				}
				if p.broken != "" {
					one["health"], one["lastError"] = "err", p.broken
				}
				rules = append(rules, one)
			}
			out = append(out, map[string]any{"name": g.Name, "file": file, "interval": 60, "rules": rules})
		}
	}
	return out
}

// load makes Prometheus evaluate what the hub has written.
func (w *sloWorld) load() {
	w.t.Helper()
	files := w.files()
	w.set(func() { w.prometheus.files = files })
}

// set changes what Prometheus answers, and has the hub look now and not in a
// while: an edit of an operator that no rule depends on does.
func (w *sloWorld) set(change func()) {
	w.t.Helper()
	w.prometheus.mu.Lock()
	change()
	w.prometheus.mu.Unlock()
	w.looks++
	echo := &v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "echo"}}
	w.change(w.t, echo, func() { echo.Spec.HistoryLimit = &w.looks })
}

// sloWorld is a hub with a Prometheus.
type sloWorld struct {
	*harness
	t          *testing.T
	prometheus *prometheusAPI
	namespace  string
	looks      int32
}

func newSLOWorld(t *testing.T) *sloWorld {
	t.Helper()
	p := newPrometheus(t)
	h := &harness{scheme: runtime.NewScheme(), whole: true, slo: slo.Options{
		Namespace: hubNamespace, Labels: map[string]string{"release": "prometheus"},
		Prometheus: prometheus.Endpoint{URL: p.URL},
	}}
	h.prepare(t, testenv.Cluster(t, cluster.Options{}))
	h.startHub(t)
	t.Cleanup(func() { h.stop() })
	return &sloWorld{harness: h, t: t, prometheus: p, namespace: testenv.Namespace(t, h.cluster.RESTConfig(), "team"),
		looks: 5}
}

func (w *sloWorld) operator(name string) *v1alpha1.ManagedOperator {
	w.t.Helper()
	o := parse(w.t, goodOperator, w.namespace)
	o.SetName(name)
	must(w.t, w.Create(w.t.Context(), o))
	return &v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
}

func (w *sloWorld) slo(name string) *v1alpha1.OperatorSLO {
	return &v1alpha1.OperatorSLO{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
}

// files are the rules that the hub has written, from whatever objects there are.
func (w *sloWorld) files() map[string][]ruleGroup {
	w.t.Helper()
	out := map[string][]ruleGroup{}
	var maps corev1.ConfigMapList
	must(w.t, w.List(w.t.Context(), &maps, client.InNamespace(hubNamespace),
		client.MatchingLabels{v1alpha1.LabelRules: "true"}))
	for _, m := range maps.Items {
		for name, text := range m.Data {
			if !strings.HasSuffix(name, ".rules.yaml") {
				w.t.Fatalf("ConfigMap %s has a key %s", m.Name, name)
			}
			var file struct{ Groups []ruleGroup }
			must(w.t, yaml.Unmarshal([]byte(text), &file))
			out["ConfigMap/"+name] = file.Groups
		}
	}
	rules := &unstructured.UnstructuredList{}
	rules.SetAPIVersion("monitoring.coreos.com/v1")
	rules.SetKind("PrometheusRuleList")
	err := w.List(w.t.Context(), rules, client.MatchingLabels{v1alpha1.LabelRules: "true", "release": "prometheus"})
	if err != nil && !meta.IsNoMatchError(err) && client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	for _, o := range rules.Items {
		var file struct{ Spec struct{ Groups []ruleGroup } }
		text, err := yaml.Marshal(o.Object)
		must(w.t, err)
		must(w.t, yaml.Unmarshal(text, &file))
		out["PrometheusRule/"+o.GetName()] = file.Spec.Groups
	}
	return out
}

func (w *sloWorld) written(want ...string) {
	w.t.Helper()
	eventually(w.t, func() error {
		var got []string
		for name := range w.files() {
			got = append(got, name)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("rule files (-want +got):\n%s", diff)
		}
		return nil
	})
}

// hasObjective tells whether the rules give an operator this target for an SLI.
func (w *sloWorld) hasObjective(operator, sli, ratio string) error {
	w.t.Helper()
	want := fmt.Sprintf("%s * bellwether:operator:known{operator_namespace=%q,operator=~%q}", ratio, w.namespace,
		operator)
	for _, groups := range w.files() {
		for _, g := range groups {
			for _, r := range g.Rules {
				if r.Record == "bellwether:slo_objective:ratio" && r.Labels["sli"] == sli &&
					strings.Contains(r.Expr, want) {
					return nil
				}
			}
		}
	}
	return fmt.Errorf("no rule for %s of %s has %s", sli, operator, want)
}

// condition waits for a condition's status and reason, and words in its message.
func (w *sloWorld) condition(name, kind, want string, contains ...string) *v1alpha1.OperatorSLO {
	w.t.Helper()
	s := w.slo(name)
	eventually(w.t, func() error {
		if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
			return err
		}
		c := conditions.Get(s.Status.Conditions, kind)
		if got := string(c.Status) + " " + c.Reason; got != want || c.ObservedGeneration != s.Generation {
			return fmt.Errorf("%s of %s is %q (%s), want %q", kind, name, got, c.Message, want)
		}
		for _, part := range contains {
			if !strings.Contains(c.Message, part) {
				return fmt.Errorf("%s of %s says %q, want %q in it", kind, name, c.Message, part)
			}
		}
		return nil
	})
	return s
}

// TestSLOs plays the life of objectives: they come by themselves, are edited,
// broken and put right; Prometheus loads the rules or not.
func TestSLOs(t *testing.T) {
	t.Parallel()
	w := newSLOWorld(t)
	echo := w.operator("echo")
	w.operator("other")

	// Nobody wrote anything but the operators.
	made := w.condition("echo", v1alpha1.ConditionReady, "True Succeeded",
		"objectives are in the rules of ConfigMap/bellwether-system/bellwether-slo")
	must(t, w.Get(t.Context(), client.ObjectKeyFromObject(echo), echo))
	withoutProbes := len(spec.ProfileSLIs()) - 1
	if !metav1.IsControlledBy(made, echo) || made.Spec.Profile != v1alpha1.ProfileDefault ||
		len(made.Status.Objectives) != withoutProbes {
		t.Errorf("%+v", made)
	}
	w.condition("other", v1alpha1.ConditionFeasible, "True Succeeded")
	w.written("ConfigMap/bellwether-slo.rules.yaml")
	w.condition("echo", v1alpha1.ConditionRulesLoaded, "False RulesMissing",
		"Prometheus does not have the rules of ConfigMap bellwether-system/bellwether-slo")

	w.load()
	w.condition("echo", v1alpha1.ConditionRulesLoaded, "True Succeeded", "without error")

	// An edit reaches the rules, is noted, and Prometheus is behind until it reloads.
	w.change(t, made, func() {
		made.Spec.Objectives = []v1alpha1.SLOObjective{{SLI: "available", Target: "99.5", Period: "28d"}}
	})
	eventually(t, func() error { return w.hasObjective("echo", "available", "0.995") })
	edited := w.condition("echo", v1alpha1.ConditionRulesLoaded, "False RulesOutdated",
		"has not taken over the newest rules")
	if edited.Status.Edited == nil ||
		edited.Status.Edited.Message != "available was 99.9 % over 30d and is 99.5 % over 28d" {
		t.Errorf("edited: %+v", edited.Status.Edited)
	}
	w.load()
	w.condition("echo", v1alpha1.ConditionRulesLoaded, "True Succeeded")

	// A mistake is told, and changes nothing: neither for this operator nor for others.
	before := w.files()
	w.change(t, edited, func() {
		edited.Spec.Objectives = append(edited.Spec.Objectives, v1alpha1.SLOObjective{SLI: "reconsile", Target: "99"})
	})
	w.condition("echo", v1alpha1.ConditionReady, "False InvalidSpec", "did you mean reconcile?",
		"the objectives before are in force")
	if diff := cmp.Diff(before, w.files()); diff != "" {
		t.Errorf("a mistake changed the rules:\n%s", diff)
	}
	w.condition("other", v1alpha1.ConditionReady, "True Succeeded")
	w.change(t, edited, func() {
		edited.Spec.Objectives = []v1alpha1.SLOObjective{{SLI: "available", Target: "99.9999", Period: "3d"}}
	})
	w.condition("echo", v1alpha1.ConditionFeasible, "False Infeasible", "the budget is always gone first")

	// Prometheus fails in each way that it has.
	w.load()
	w.condition("echo", v1alpha1.ConditionRulesLoaded, "True Succeeded")
	w.set(func() { w.prometheus.broken = "many-to-many matching not allowed" })
	w.condition("echo", v1alpha1.ConditionRulesLoaded, "False RulesFailing", "many-to-many matching not allowed")
	w.set(func() { w.prometheus.broken, w.prometheus.status = "", http.StatusServiceUnavailable })
	w.condition("echo", v1alpha1.ConditionRulesLoaded, "Unknown PrometheusUnreachable", w.prometheus.URL)
}

// TestSLOObjects plays what the hub does about objects: one operator with two of
// them or none, Services to probe, an own SLI, prometheus-operator that comes and goes.
func TestSLOObjects(t *testing.T) {
	t.Parallel()
	w := newSLOWorld(t)
	echo := w.operator("echo")
	w.condition("echo", v1alpha1.ConditionReady, "True Succeeded")
	install := &v1alpha1.OperatorInstall{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.namespace + ".echo"},
		Spec: v1alpha1.OperatorInstallSpec{Cluster: "one",
			Operator: v1alpha1.OperatorReference{Namespace: w.namespace, Name: "echo"}},
	}
	must(t, w.Create(t.Context(), install))
	if got := w.scrape("bellwether_operator_expected"); got != "" {
		t.Errorf("an operator that was not admitted is expected: %s", got)
	}
	w.changeStatus(t, install, func() { install.Status.Installed = &v1alpha1.InstalledVersion{Bundle: "echo.v1.0.0"} })
	eventually(t, func() error {
		if got := w.scrape("bellwether_operator_expected"); got != "cluster=one operator=echo operator_namespace="+
			w.namespace+" 1" {
			return fmt.Errorf("expected: %q", got)
		}
		return nil
	})

	// What a person writes takes the place of what came by itself.
	own := w.slo("mine")
	own.Spec = v1alpha1.OperatorSLOSpec{
		Operator: "echo", Profile: v1alpha1.ProfileNone, Team: "messaging",
		Objectives: []v1alpha1.SLOObjective{{SLI: "http", Target: "99"}},
		Own: []v1alpha1.OwnSLI{{Name: "http", RequestRatio: &v1alpha1.RequestRatio{
			Counter: "http_requests_total", Bad: []v1alpha1.LabelMatcher{{Label: "code", Op: "=~", Value: "5.."}}}}},
		Services: []v1alpha1.ProbedService{{Name: "echo", Port: 8080}},
		Monitor:  &v1alpha1.PodMetrics{Port: "metrics"},
	}
	must(t, w.Create(t.Context(), own))
	w.gone(t, w.slo("echo"))
	w.condition("mine", v1alpha1.ConditionReady, "True Succeeded", "1 objectives")
	ownRules := "bellwether-slo-" + w.namespace + ".echo"
	w.written("ConfigMap/"+ownRules+".rules.yaml", "ConfigMap/bellwether-slo.rules.yaml")
	eventually(t, func() error {
		must(t, w.Get(t.Context(), client.ObjectKeyFromObject(install), install))
		if len(install.Spec.Services) != 1 || install.Spec.Services[0].Port != 8080 ||
			install.Spec.Services[0].Interval == nil ||
			install.Spec.Monitor == nil || install.Spec.Monitor.Port != "metrics" {
			return fmt.Errorf("the agent was told %+v", install.Spec)
		}
		return nil
	})

	second := w.slo("second")
	second.Spec.Operator = "echo"
	must(t, w.Create(t.Context(), second))
	w.condition("second", v1alpha1.ConditionReady, "False Duplicate", "OperatorSLO mine is older")
	nobody := w.slo("nobody")
	nobody.Spec.Operator = "nobody"
	must(t, w.Create(t.Context(), nobody))
	w.condition("nobody", v1alpha1.ConditionReady, "False OperatorNotFound", `there is no ManagedOperator "nobody"`)

	// prometheus-operator comes and goes; there is never a copy too many.
	crd := prometheusRuleCRD()
	must(t, w.Create(t.Context(), crd))
	w.written("PrometheusRule/bellwether-slo", "PrometheusRule/"+ownRules)
	w.condition("mine", v1alpha1.ConditionReady, "True Succeeded",
		"PrometheusRule/bellwether-system/"+ownRules)
	w.load()
	w.condition("mine", v1alpha1.ConditionRulesLoaded, "True Succeeded")
	w.change(t, own, func() { own.Spec.Own, own.Spec.Objectives, own.Spec.Services = nil, nil, nil })
	w.written("PrometheusRule/bellwether-slo")
	eventually(t, func() error {
		must(t, w.Get(t.Context(), client.ObjectKeyFromObject(install), install))
		if install.Spec.Services != nil {
			return fmt.Errorf("the agent still probes %+v", install.Spec.Services)
		}
		return nil
	})
	must(t, w.Delete(t.Context(), crd))
	w.gone(t, crd)
	w.change(t, own, func() { own.Spec.Team = "platform" })
	w.written("ConfigMap/bellwether-slo.rules.yaml")

	// Without a person's object there is the default again. The rules stay as long as an object names an operator,
	// also one that does not exist: an alert says so.
	must(t, w.Delete(t.Context(), own))
	must(t, w.Delete(t.Context(), second))
	w.condition("echo", v1alpha1.ConditionReady, "True Succeeded")
	must(t, w.Delete(t.Context(), install))
	must(t, w.Delete(t.Context(), echo))
	w.gone(t, w.slo("echo"))
	w.condition("nobody", v1alpha1.ConditionReady, "False OperatorNotFound")
	w.written("ConfigMap/bellwether-slo.rules.yaml")
	must(t, w.Delete(t.Context(), nobody))
	w.written()
}

func prometheusRuleCRD() *unstructured.Unstructured {
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("prometheusrules.monitoring.coreos.com")
	crd.Object["spec"] = map[string]any{
		"group": "monitoring.coreos.com", "scope": "Namespaced",
		"names": map[string]any{"kind": "PrometheusRule", "plural": "prometheusrules", "singular": "prometheusrule",
			"listKind": "PrometheusRuleList"},
		"versions": []any{map[string]any{
			"name": "v1", "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object",
				"x-kubernetes-preserve-unknown-fields": true}},
		}},
	}
	return crd
}

// scrape are the series of one metric of the hub, with their labels.
func (w *sloWorld) scrape(name string) string {
	w.t.Helper()
	families, err := w.metrics.Gather()
	must(w.t, err)
	var out []string
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			line := ""
			for _, l := range m.GetLabel() {
				line += l.GetName() + "=" + l.GetValue() + " "
			}
			out = append(out, line+fmt.Sprint(m.GetGauge().GetValue()))
		}
	}
	return strings.Join(out, "\n")
}
