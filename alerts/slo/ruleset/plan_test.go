// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package ruleset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func operator(namespace, name string, age int) v1alpha1.ManagedOperator {
	return v1alpha1.ManagedOperator{ObjectMeta: metadata(namespace, name, age)}
}

func metadata(namespace, name string, age int) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name), Generation: 1,
		CreationTimestamp: metav1.NewTime(now.Add(-time.Duration(age) * time.Hour))}
}

// objectives is a person's object.
func objectives(name, of string, age int, edit ...func(*v1alpha1.OperatorSLO)) v1alpha1.OperatorSLO {
	s := v1alpha1.OperatorSLO{ObjectMeta: metadata("a", name, age),
		Spec: v1alpha1.OperatorSLOSpec{Operator: of, Profile: v1alpha1.ProfileDefault, Team: "t"}}
	for _, e := range edit {
		e(&s)
	}
	return s
}

// automaticSLO is the object that the plan creates for an operator.
func automaticSLO(o v1alpha1.ManagedOperator, age int) v1alpha1.OperatorSLO {
	s := *newAutomatic(&o, nil)
	s.CreationTimestamp, s.Generation = metav1.NewTime(now.Add(-time.Duration(age)*time.Hour)), 1
	return s
}

func target(sli, percent string) func(*v1alpha1.OperatorSLO) {
	return func(s *v1alpha1.OperatorSLO) {
		s.Spec.Objectives = append(s.Spec.Objectives, v1alpha1.SLOObjective{SLI: sli, Target: percent, Period: "30d"})
	}
}

func next(t *testing.T, in Input) Decision {
	t.Helper()
	in.Now, in.Kind, in.Namespace = now, KindPrometheusRule, "rules"
	out, err := Next(in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func ready(s v1alpha1.OperatorSLOStatus) string {
	c := conditions.Get(s.Conditions, v1alpha1.ConditionReady)
	return string(c.Status) + " " + c.Reason
}

// TestWhoSpeaks checks for each object whether it is in force, and which objects are created or withdrawn.
func TestWhoSpeaks(t *testing.T) {
	echo := operator("a", "echo", 9)
	gone := operator("a", "echo", 9)
	gone.DeletionTimestamp = &metav1.Time{Time: now}
	tests := map[string]struct {
		operators []v1alpha1.ManagedOperator
		slos      []v1alpha1.OperatorSLO
		want      map[string]string // object to its Ready condition
		create    []string
		withdraw  []string
	}{
		"nothing":               {},
		"no object":             {operators: []v1alpha1.ManagedOperator{echo}, create: []string{"a/echo"}},
		"an operator that goes": {operators: []v1alpha1.ManagedOperator{gone}},
		"an automatic one": {operators: []v1alpha1.ManagedOperator{echo},
			slos: []v1alpha1.OperatorSLO{automaticSLO(echo, 8)},
			want: map[string]string{"a/echo": "True Succeeded"}},
		"its name is taken by another's": {
			operators: []v1alpha1.ManagedOperator{echo, operator("a", "other", 8)},
			slos:      []v1alpha1.OperatorSLO{objectives("echo", "other", 7)},
			want:      map[string]string{"a/echo": "True Succeeded"}, create: []string{"a/echo-slo"}},
		"a person's beside it": {operators: []v1alpha1.ManagedOperator{echo},
			slos: []v1alpha1.OperatorSLO{automaticSLO(echo, 8), objectives("mine", "echo", 1)},
			want: map[string]string{"a/mine": "True Succeeded"}, withdraw: []string{"a/echo"}},
		"a person's beside an edited one": {operators: []v1alpha1.ManagedOperator{echo},
			slos: []v1alpha1.OperatorSLO{func() v1alpha1.OperatorSLO {
				s := automaticSLO(echo,
					8)
				s.Spec.Team = "x"
				return s
			}(), objectives("mine", "echo", 1)},
			want: map[string]string{"a/echo": "True Succeeded", "a/mine": "False Duplicate"}},
		"two of a person": {operators: []v1alpha1.ManagedOperator{echo},
			slos: []v1alpha1.OperatorSLO{objectives("newest", "echo", 1), objectives("oldest", "echo", 2)},
			want: map[string]string{"a/oldest": "True Succeeded", "a/newest": "False Duplicate"}},
		"of nobody": {slos: []v1alpha1.OperatorSLO{objectives("mine", "echo", 1)},
			want: map[string]string{"a/mine": "False OperatorNotFound"}},
		"one name in two namespaces": {operators: []v1alpha1.ManagedOperator{operator("b", "echo", 1), echo},
			slos: []v1alpha1.OperatorSLO{automaticSLO(operator("b", "echo", 1), 1), automaticSLO(echo, 8)},
			want: map[string]string{"a/echo": "True Succeeded", "b/echo": "True Succeeded"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			out := next(t, Input{Operators: test.operators, SLOs: test.slos})
			got := map[string]string{}
			for k, s := range out.Statuses {
				got[k.String()] = ready(s)
			}
			if diff := cmp.Diff(test.want, got, cmp.FilterValues(func(a,
				b map[string]string) bool {
				return len(a)+len(b) == 0
			}, cmp.Ignore())); diff != "" {
				t.Errorf("Ready (-want +got):\n%s", diff)
			}
			var create, withdraw []string
			for _, s := range out.Create {
				create = append(create, s.Namespace+"/"+s.Name)
			}
			for _, k := range out.Withdraw {
				withdraw = append(withdraw, k.String())
			}
			if diff := cmp.Diff([][]string{test.create, test.withdraw}, [][]string{create, withdraw}); diff != "" {
				t.Errorf("created, withdrawn (-want +got):\n%s", diff)
			}
			// An operator whose objectives will be created has rules now, and an alert reports a missing operator.
			readies := slices.Collect(values(test.want))
			if wantRules := len(test.create) > 0 || slices.Contains(readies, "True Succeeded") ||
				slices.Contains(readies, "False OperatorNotFound"); wantRules != (len(out.Files) > 0) {
				t.Errorf("%d files", len(out.Files))
			}
		})
	}
}

func values(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}

func fleet(slos ...v1alpha1.OperatorSLO) Input {
	in := Input{SLOs: slos}
	seen := map[string]bool{}
	for _, s := range slos {
		if !seen[s.Spec.Operator] {
			in.Operators = append(in.Operators, operator("a", s.Spec.Operator, 9))
		}
		seen[s.Spec.Operator] = true
	}
	return in
}

// TestOneMistakeIsAlone leaves the rules as if the mistake was not there.
func TestOneMistakeIsAlone(t *testing.T) {
	good := objectives("good", "good", 1, target("csv", "99"))
	for name, edit := range map[string]func(*v1alpha1.OperatorSLO){
		"unknown SLI":   target("csvv", "99"),
		"target":        target("csv", "100"),
		"twice":         func(s *v1alpha1.OperatorSLO) { target("csv", "99")(s); target("csv", "98")(s) },
		"without":       func(s *v1alpha1.OperatorSLO) { s.Spec.Without = []string{"nonsense"} },
		"without probe": func(s *v1alpha1.OperatorSLO) { s.Spec.Without = []string{"probe:echo"} },
		"expression": func(s *v1alpha1.OperatorSLO) {
			target("http", "99")(s)
			s.Spec.Own = []v1alpha1.OwnSLI{{Name: "http", RequestRatio: &v1alpha1.RequestRatio{Counter: "c",
				Bad: []v1alpha1.LabelMatcher{{Label: "code", Op: "=~", Value: "5(.."}}}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bad := objectives("bad", "bad", 1)
			// The objectives that were in force before: available is 98 %, all others are from the profile.
			before := next(t, fleet(objectives("bad", "bad", 1, target("available", "98"))))
			bad.Status = before.Statuses[toKey(&bad)]
			want := next(t, fleet(good, objectives("bad", "bad", 1, target("available", "98"))))
			edit(&bad)
			got := next(t, fleet(good, bad))
			if diff := cmp.Diff(want.Files, got.Files); diff != "" {
				t.Errorf("the mistake changed the rules (-without +with):\n%s", diff)
			}
			if state := ready(got.Statuses[toKey(&bad)]); state != "False InvalidSpec" {
				t.Errorf("the mistake is %s", state)
			}
			if state := ready(got.Statuses[toKey(&good)]); state != "True Succeeded" {
				t.Errorf("the other one is %s", state)
			}
			if len(got.Events) != 0 {
				t.Errorf("budgets did not jump: %v", got.Events)
			}
		})
	}
}

func TestEditsAreTold(t *testing.T) {
	s := objectives("echo", "echo", 1, target("csv", "99"))
	s.Status = next(t, fleet(s)).Statuses[toKey(&s)]
	if again := next(t, fleet(s)); len(again.Events) != 0 || again.Statuses[toKey(&s)].Edited != nil {
		t.Errorf("nothing was edited: %v", again.Events)
	}
	s.Spec.Objectives[0].Target, s.Spec.Objectives[0].Period = "98", "28d"
	s.Spec.Without = []string{"catalog"}
	s.Spec.Services = []v1alpha1.ProbedService{{Name: "web", Port: 80}}
	out := next(t, fleet(s))
	want := "probe:web is new: 99.9 % over 30d; csv was 99 % over 30d and is 98 % over 28d; catalog is left out"
	if len(out.Events) != 1 || out.Events[0].Message != want {
		t.Errorf("%v, want %q", out.Events, want)
	}
	if e := out.Statuses[toKey(&s)].Edited; e == nil || e.Message != want || !e.At.Time.Equal(now) {
		t.Errorf("status: %+v", e)
	}
}

// loadedFrom is a Prometheus that evaluates the files.
func loadedFrom(files []File) Prometheus {
	var p Prometheus
	for _, f := range files {
		for _, g := range f.Groups {
			group := Group{Name: g.Name, File: "/rules/" + f.Name, Rules: len(g.Rules)}
			for _, r := range g.Rules {
				if r.Record == series.SLORulesInfo {
					group.Hash = r.Labels[series.Hash]
					group.Operator = types.NamespacedName{Namespace: r.Labels[series.OperatorNamespace],
						Name: r.Labels[series.Operator]}
				}
			}
			p.Groups = append(p.Groups, group)
		}
	}
	return p
}

func TestRulesLoaded(t *testing.T) {
	own := objectives("echo", "echo", 1, target("http", "99"), func(s *v1alpha1.OperatorSLO) {
		s.Spec.Own = []v1alpha1.OwnSLI{{Name: "http", Latency: &v1alpha1.LatencyThreshold{Histogram: "h", LE: "0.5"}}}
	})
	in := fleet(own, objectives("plain", "plain", 1))
	files := next(t, in).Files
	tests := map[string]struct {
		change      func(*Prometheus)
		echo, plain string
	}{
		"all is well": {func(*Prometheus) {}, "True Succeeded", "True Succeeded"},
		"nobody to ask": {func(p *Prometheus) { p.Trouble = &Trouble{"NoPrometheus", "m"} }, "Unknown NoPrometheus",
			"Unknown NoPrometheus"},
		"nothing there": {func(p *Prometheus) { p.Groups = nil }, "False RulesMissing", "False RulesMissing"},
		"others only": {func(p *Prometheus) { p.Groups = []Group{{Name: "bellwether-agents", Rules: 1}} },
			"False RulesMissing", "False RulesMissing"},
		"own rules refused": {func(p *Prometheus) { p.Groups = p.Groups[:len(p.Groups)-1] }, "False RulesMissing",
			"True Succeeded"},
		"own rules fail": {func(p *Prometheus) { p.Groups[len(p.Groups)-1].Error = "x" }, "False RulesFailing",
			"True Succeeded"},
		"older rules": {func(p *Prometheus) {
			for i := range p.Groups {
				if p.Groups[i].Hash != "" && p.Groups[i].Operator.Name == "" {
					p.Groups[i].Hash = "older"
				}
			}
		}, "False RulesOutdated", "False RulesOutdated"},
		"a group is lost": {func(p *Prometheus) { p.Groups = p.Groups[1:] }, "False RulesOutdated",
			"False RulesOutdated"},
		"a rule is lost": {func(p *Prometheus) { p.Groups[0].Rules-- }, "False RulesOutdated", "False RulesOutdated"},
		"a copy too many": {func(p *Prometheus) {
			for _, g := range loadedFrom(files).Groups {
				g.File = "/old" + g.File
				p.Groups = append(p.Groups, g)
			}
		}, "False RulesOutdated", "False RulesOutdated"},
		"a file of the command line beside": {func(p *Prometheus) {
			p.Groups = append([]Group{{Name: "bellwether-sli", File: "/rules/mine.yaml", Rules: 12}}, p.Groups...)
		}, "False RulesOutdated", "False RulesOutdated"},
		"one rule fails": {func(p *Prometheus) { p.Groups[2].Error = "r: many-to-many" }, "False RulesFailing",
			"False RulesFailing"},
		"not evaluated yet": {func(p *Prometheus) { p.Groups[2].Waiting = 1 }, "Unknown Waiting", "Unknown Waiting"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in.Prometheus = loadedFrom(files)
			test.change(&in.Prometheus)
			out := next(t, in)
			for name, want := range map[string]string{"echo": test.echo, "plain": test.plain} {
				c := conditions.Get(out.Statuses[types.NamespacedName{Namespace: "a", Name: name}].Conditions,
					v1alpha1.ConditionRulesLoaded)
				if got := string(c.Status) + " " + c.Reason; got != want {
					t.Errorf("%s is %s (%s), want %s", name, got, c.Message, want)
				}
			}
			if soon := out.RecheckAfter == recheckSoon; soon != (test.echo != "True Succeeded" &&
				in.Prometheus.Trouble == nil) {
				t.Errorf("looks again after %s", out.RecheckAfter)
			}
		})
	}
}

// TestRulesAreTheSame checks that the rules do not depend on the
// order of the inputs: otherwise they would be written repeatedly.
func TestRulesAreTheSame(t *testing.T) {
	var slos []v1alpha1.OperatorSLO
	for i := range 5 {
		slos = append(slos, objectives(fmt.Sprintf("o%d", i), fmt.Sprintf("o%d", i), i,
			target("csv", fmt.Sprintf("9%d", i)), func(s *v1alpha1.OperatorSLO) {
				s.Spec.RunbookURL = fmt.Sprintf("https://runbooks.example.com/o%d", i)
				target("http", "99")(s)
				s.Spec.Own = []v1alpha1.OwnSLI{{Name: "http",
					Latency: &v1alpha1.LatencyThreshold{Histogram: "h", LE: "0.5"}}}
			}))
	}
	linked := fleet(slos...)
	linked.RunbookURL = "https://runbooks.example.com/all"
	want := next(t, linked).Files
	slices.Reverse(slos)
	other := fleet(slos...)
	other.RunbookURL = linked.RunbookURL
	for i := range other.Operators {
		// They were created in another order.
		other.Operators[i].CreationTimestamp = metav1.NewTime(now.Add(time.Duration(i) * time.Hour))
	}
	if diff := cmp.Diff(want, next(t, other).Files); diff != "" {
		t.Error(diff)
	}
	found := 0
	for _, g := range want[0].Groups {
		for _, r := range g.Rules {
			if scope := r.Labels[series.Scope]; scope == series.ScopeOperator || scope == series.ScopeRelease {
				found++
				link := r.Annotations[slo.AnnotationRunbook]
				if !strings.HasPrefix(link,
					`{{ if and (eq $labels.operator_namespace "a") (eq $labels.operator "o0") }}`+
						`https://runbooks.example.com/o0#`) ||
					!strings.Contains(link, "{{ else }}https://runbooks.example.com/all/"+r.Alert+".md") ||
					!strings.HasSuffix(link, "{{ end }}") {
					t.Errorf("%s links to %s", r.Alert, link)
				}
			}
		}
	}
	if found != 13 {
		t.Errorf("%d alerts", found)
	}
}

func TestInstallChanges(t *testing.T) {
	s := objectives("echo", "echo", 1, func(s *v1alpha1.OperatorSLO) {
		s.Spec.Services = []v1alpha1.ProbedService{{Name: "web", Port: 80}}
		s.Spec.Monitor = &v1alpha1.PodMetrics{Port: "metrics"}
	})
	install := func(cluster string, services []v1alpha1.ProbedService,
		monitor *v1alpha1.PodMetrics) v1alpha1.OperatorInstall {
		return v1alpha1.OperatorInstall{ObjectMeta: metadata(cluster, "a.echo", 1), Spec: v1alpha1.OperatorInstallSpec{
			Cluster: cluster, Operator: v1alpha1.OperatorReference{Namespace: "a", Name: "echo"}, Services: services,
			Monitor: monitor}}
	}
	in := fleet(s)
	in.Installs = []v1alpha1.OperatorInstall{
		install("new", nil, nil), install("told", s.Spec.Services, s.Spec.Monitor),
		install("other", []v1alpha1.ProbedService{{Name: "web", Port: 81}}, s.Spec.Monitor),
	}
	var got []string
	for _, change := range next(t, in).Installs {
		got = append(got, change.Install.Namespace)
	}
	if diff := cmp.Diff([]string{"new", "other"}, got); diff != "" {
		t.Error(diff)
	}
	in.SLOs[0].Spec.Objectives = []v1alpha1.SLOObjective{{SLI: "nonsense", Target: "99"}}
	if got := next(t, in).Installs; len(got) != 0 {
		t.Errorf("a spec that cannot be used was passed on: %v", got)
	}
}
