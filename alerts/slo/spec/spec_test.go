// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

func TestOperator(t *testing.T) {
	matcher := func(op, value string) []v1alpha1.LabelMatcher {
		return []v1alpha1.LabelMatcher{{Label: "code", Op: v1alpha1.MatchOp(op), Value: value}}
	}
	objective := func(sli, target, period string) []v1alpha1.SLOObjective {
		return []v1alpha1.SLOObjective{{SLI: sli, Target: target, Period: period}}
	}
	for name, test := range map[string]struct {
		spec v1alpha1.OperatorSLOSpec
		want slo.Operator
		err  string
	}{
		"default": {spec: v1alpha1.OperatorSLOSpec{Team: "t"},
			want: slo.Operator{Namespace: "fleet", Name: "echo", Team: "t"}},
		"none": {
			spec: v1alpha1.OperatorSLOSpec{Profile: v1alpha1.ProfileNone, Objectives: objective("csv", "99", "7d")},
			want: slo.Operator{Namespace: "fleet", Name: "echo",
				Objectives: []slo.Objective{{SLI: "csv", Target: 990_000,
					Period: 7 * 24 * 3600e9}}, Without: ProfileSLIs()},
		},
		"the default period": {
			spec: v1alpha1.OperatorSLOSpec{Objectives: objective("csv", "99", "30d")},
			want: slo.Operator{Namespace: "fleet", Name: "echo",
				Objectives: []slo.Objective{{SLI: "csv", Target: 990_000}}},
		},
		"own": {
			spec: v1alpha1.OperatorSLOSpec{
				Objectives: objective("requests", "99.9", ""),
				Own: []v1alpha1.OwnSLI{{Name: "requests", MinRequests: 5,
					RequestRatio: &v1alpha1.RequestRatio{Counter: "c", All: matcher("", "x"),
						Bad: matcher("=~", "5..")}}},
			},
			want: slo.Operator{Namespace: "fleet", Name: "echo",
				Objectives: []slo.Objective{{SLI: "requests", Target: 999_000}},
				Own: []slo.OwnSLI{{
					Name:  "requests",
					Bad:   `rate(c{code="x",operator_namespace=~"|fleet",operator=~"|echo",code=~"5.."}[5m])`,
					Total: `rate(c{code="x",operator_namespace=~"|fleet",operator=~"|echo"}[5m])`, MinRequests: 5,
				}}},
		},
		"thresholds, alerts, labels and annotations": {
			spec: v1alpha1.OperatorSLOSpec{
				Objectives: []v1alpha1.SLOObjective{
					{SLI: "latency", Target: "99", Alerts: v1alpha1.AlertsTickets,
						Thresholds: &v1alpha1.SLOThresholds{BadPercent: "2.5", Duration: seconds(30)}},
					{SLI: "queue", Target: "99", Alerts: v1alpha1.AlertsAll,
						Thresholds: &v1alpha1.SLOThresholds{Depth: 5}},
				},
				AlertLabels: map[string]string{"area": "x"}, AlertAnnotations: map[string]string{"contact": "y"},
			},
			want: slo.Operator{Namespace: "fleet", Name: "echo",
				Objectives: []slo.Objective{
					{SLI: "latency", Target: 990_000, Alerts: slo.AlertsTickets,
						Thresholds: slo.Thresholds{BadShare: 25_000, Duration: 30 * time.Second}},
					{SLI: "queue", Target: 990_000, Thresholds: slo.Thresholds{Depth: 5}},
				},
				Labels: map[string]string{"area": "x"}, Annotations: map[string]string{"contact": "y"}},
		},
		"a threshold of another SLI": {spec: v1alpha1.OperatorSLOSpec{Objectives: []v1alpha1.SLOObjective{{SLI: "csv",
			Target: "99", Thresholds: &v1alpha1.SLOThresholds{Depth: 5}}}}, err: "invalid threshold of csv"},
		"a gauge, and minutes": {
			spec: v1alpha1.OperatorSLOSpec{
				Objectives: append(objective("healthy", "99", ""), objective("slow", "99", "")...),
				Own: []v1alpha1.OwnSLI{
					{Name: "healthy", Gauge: &v1alpha1.BoolGauge{Metric: "up", All: matcher("!=", "x")}},
					{Name: "slow", BudgetingMethod: v1alpha1.BudgetingTimeslices, TimeSliceTarget: "100",
						Latency: &v1alpha1.LatencyThreshold{Histogram: "h", LE: "1"}},
				},
			},
			want: slo.Operator{Namespace: "fleet", Name: "echo",
				Objectives: []slo.Objective{{SLI: "healthy", Target: 990_000}, {SLI: "slow", Target: 990_000}},
				Own: []slo.OwnSLI{
					{Name: "healthy", Good: `up{code!="x",operator_namespace=~"|fleet",operator=~"|echo"}`},
					func() slo.OwnSLI {
						out := slo.LatencyThreshold("slow", "h", "1", slo.OfOperator(types.NamespacedName{
							Namespace: "fleet", Name: "echo"}, nil))
						out.Method, out.SliceTarget = slo.Timeslices, slo.One
						return out
					}(),
				}},
		},
		"own series with a label operator": {
			spec: v1alpha1.OperatorSLOSpec{
				Objectives: objective("requests", "99.9", ""),
				Own: []v1alpha1.OwnSLI{{Name: "requests",
					RequestRatio: &v1alpha1.RequestRatio{Counter: "c",
						All: []v1alpha1.LabelMatcher{{Label: "operator", Value: "plus"}}, Bad: matcher("=~", "5..")}}},
			},
			want: slo.Operator{Namespace: "fleet", Name: "echo",
				Objectives: []slo.Objective{{SLI: "requests", Target: 999_000}},
				Own: []slo.OwnSLI{{
					Name: "requests", Bad: `rate(c{operator="plus",operator_namespace=~"|fleet",code=~"5.."}[5m])`,
					Total: `rate(c{operator="plus",operator_namespace=~"|fleet"}[5m])`,
				}}},
		},
		"limits": {
			spec: v1alpha1.OperatorSLOSpec{CustomResources: []v1alpha1.CustomResourceLimit{
				{Kind: "Echo", Max: 10, MaxGrowthPerDay: 2}}},
			want: slo.Operator{Namespace: "fleet", Name: "echo",
				Limits: []slo.Limit{{Kind: "Echo", Max: 10, PerDay: 2}}},
		},
		"a limit of nothing": {spec: v1alpha1.OperatorSLOSpec{CustomResources: []v1alpha1.CustomResourceLimit{
			{Kind: "Echo"}}}, err: "kind Echo: set a maximum"},
		"two limits of a kind": {spec: v1alpha1.OperatorSLOSpec{CustomResources: []v1alpha1.CustomResourceLimit{
			{Kind: "Echo", Max: 1}, {Kind: "Echo", Max: 2}}}, err: "kind Echo is listed twice"},
		"a comma": {spec: v1alpha1.OperatorSLOSpec{Objectives: objective("csv", "99,9", "")},
			err: `csv: invalid target "99,9"`},
		"an unknown SLI": {spec: v1alpha1.OperatorSLOSpec{Objectives: objective("csw", "99", "")},
			err: "did you mean csv?"},
		"ten years": {spec: v1alpha1.OperatorSLOSpec{Objectives: objective("csv", "99", "520w")},
			err: "invalid period"},
		"no regexp": {spec: v1alpha1.OperatorSLOSpec{Own: []v1alpha1.OwnSLI{{Name: "o",
			RequestRatio: &v1alpha1.RequestRatio{Counter: "c", Bad: matcher("=~", "(")}}}}, err: "label code"},
		"no kind of own": {spec: v1alpha1.OperatorSLOSpec{Own: []v1alpha1.OwnSLI{{Name: "o"}}},
			err: "own SLI o: give it one of requestRatio, latency and gauge"},
		"minutes without a target": {spec: v1alpha1.OperatorSLOSpec{Objectives: objective("o", "99", ""),
			Own: []v1alpha1.OwnSLI{{Name: "o", BudgetingMethod: v1alpha1.BudgetingTimeslices,
				RequestRatio: &v1alpha1.RequestRatio{Counter: "c", Bad: matcher("=", "5")}}}},
			err: "a slice needs a target"},
		"a gauge with a minimum": {spec: v1alpha1.OperatorSLOSpec{Objectives: objective("o", "99", ""),
			Own: []v1alpha1.OwnSLI{{Name: "o", MinRequests: 3, Gauge: &v1alpha1.BoolGauge{Metric: "up"}}}},
			err: "it has a gauge, so it cannot have"},
		"no metric": {spec: v1alpha1.OperatorSLOSpec{Own: []v1alpha1.OwnSLI{{Name: "o",
			RequestRatio: &v1alpha1.RequestRatio{Counter: "c{}", Bad: matcher("=", "5")}}}},
			err: `"c{}" is no name of a metric`},
		"no operator": {spec: v1alpha1.OperatorSLOSpec{Own: []v1alpha1.OwnSLI{{Name: "o",
			RequestRatio: &v1alpha1.RequestRatio{Counter: "c", Bad: matcher("==", "5")}}}}, err: `op "==" is none of`},
		"no histogram": {spec: v1alpha1.OperatorSLOSpec{Own: []v1alpha1.OwnSLI{{Name: "o",
			Latency: &v1alpha1.LatencyThreshold{Histogram: "h h"}}}}, err: `"h h" is no name of a metric`},
		"without one probe": {spec: v1alpha1.OperatorSLOSpec{Without: []string{"probe:x"}}, err: `write "probe:"`},
	} {
		t.Run(name, func(t *testing.T) {
			test.spec.Operator = "echo"
			got, err := Operator("fleet", test.spec)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want %q in it", err, test.err)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("error %v; -want +got:\n%s", err, diff)
			}
		})
	}
}

// TestWritten reads back the written form of an objective.
func TestWritten(t *testing.T) {
	for _, o := range []slo.Objective{
		{SLI: "csv", Target: 995_000},
		{SLI: "csv", Target: 999_999, Period: 7 * 24 * time.Hour, Alerts: slo.AlertsNone},
		{SLI: "latency", Target: 990_000, Thresholds: slo.Thresholds{BadShare: 1, Duration: 5 * time.Millisecond}},
		{SLI: "queue", Target: 990_000, Thresholds: slo.Thresholds{Duration: time.Hour, Depth: 7}},
	} {
		got, err := Objective(ToAPI(o))
		if diff := cmp.Diff(o, got); err != nil || diff != "" {
			t.Errorf("error %v; -want +got:\n%s", err, diff)
		}
	}
}

func seconds(n int) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n) * time.Second}
}

func TestEffective(t *testing.T) {
	objectives := func(slis ...string) []v1alpha1.SLOObjective {
		var out []v1alpha1.SLOObjective
		for _, sli := range slis {
			name, target, _ := strings.Cut(sli, " ")
			out = append(out, v1alpha1.SLOObjective{SLI: name, Target: target})
		}
		return out
	}
	service := func(name string, port int32) v1alpha1.ProbedService {
		return v1alpha1.ProbedService{Name: name, Port: port}
	}
	profile := v1alpha1.OperatorSLOSpec{
		Objectives: objectives("csv 90", "requests 95"), Without: []string{"webhook", "leader"},
		Own:      []v1alpha1.OwnSLI{{Name: "requests"}},
		Services: []v1alpha1.ProbedService{service("a", 1), service("b", 1)},
		Monitor:  &v1alpha1.PodMetrics{Port: "metrics"},
	}
	for name, test := range map[string]struct{ spec, want v1alpha1.OperatorSLOSpec }{
		"as the bundle says": {want: profile},
		"none": {spec: v1alpha1.OperatorSLOSpec{Profile: v1alpha1.ProfileNone},
			want: v1alpha1.OperatorSLOSpec{Profile: v1alpha1.ProfileNone}},
		"what people say counts": {
			spec: v1alpha1.OperatorSLOSpec{
				Team: "t", Objectives: objectives("csv 99", "leader 98"),
				Services: []v1alpha1.ProbedService{service("a", 2)}, Monitor: &v1alpha1.PodMetrics{Port: "other"},
			},
			want: v1alpha1.OperatorSLOSpec{
				Team: "t", Objectives: objectives("csv 99", "leader 98", "requests 95"), Without: []string{"webhook"},
				Own:      profile.Own,
				Services: []v1alpha1.ProbedService{service("a", 2), service("b", 1)},
				Monitor:  &v1alpha1.PodMetrics{Port: "other"},
			},
		},
		"what people leave out": {
			spec: v1alpha1.OperatorSLOSpec{Without: []string{"csv", "requests", "probe:b"}},
			want: v1alpha1.OperatorSLOSpec{
				Without: []string{"csv", "webhook", "leader"}, Objectives: []v1alpha1.SLOObjective{},
				Services: profile.Services[:1], Monitor: profile.Monitor,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Effective(test.spec, profile), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestProfile(t *testing.T) {
	for name, test := range map[string]struct {
		value string
		want  v1alpha1.OperatorSLOSpec
		err   string
	}{
		"nothing": {value: `{}`},
		"all": {
			value: `{"objectives":[{"sli":"leader","target":"99"}],"without":["webhook"],"services":[{"name":"s","port":80,"path":"/healthz"}],"monitor":{"port":"metrics"}}`,
			want: v1alpha1.OperatorSLOSpec{
				Objectives: []v1alpha1.SLOObjective{{SLI: "leader", Target: "99"}},
				Without:    []string{"webhook"},
				Services: []v1alpha1.ProbedService{{Name: "s", Port: 80, Scheme: "http", Path: "/healthz",
					Interval: seconds(30), Timeout: seconds(5)}},
				Monitor: &v1alpha1.PodMetrics{Port: "metrics", Scheme: "http", Interval: seconds(30)},
			},
		},
		"no JSON":          {value: `{`, err: "decode"},
		"an unknown field": {value: `{"service":[]}`, err: `unknown field "service"`},
		"twice":            {value: `{"without":[],"without":["csv"]}`, err: "duplicate field"},
		"a bad target":     {value: `{"objectives":[{"sli":"csv","target":"100"}]}`, err: "invalid target"},
		"no Service":       {value: `{"services":[{"name":"S","port":80}]}`, err: `service "S": its name`},
		"no port":          {value: `{"services":[{"name":"s","port":0}]}`, err: "0 is no port"},
		"no scheme":        {value: `{"services":[{"name":"s","port":1,"scheme":"ftp"}]}`, err: `scheme "ftp"`},
		"a path of tcp": {value: `{"services":[{"name":"s","port":1,"scheme":"tcp","path":"/"}]}`,
			err: "path must begin"},
		"no path": {value: `{"services":[{"name":"s","port":1,"path":"x"}]}`, err: "path must begin"},
		"seldom":  {value: `{"services":[{"name":"s","port":1,"interval":"1h"}]}`, err: "interval must be"},
		"a long timeout": {value: `{"services":[{"name":"s","port":1,"interval":"5s","timeout":"6s"}]}`,
			err: "timeout"},
		"no port's name": {value: `{"monitor":{"port":"8080:x"}}`, err: "monitor: "},
		"an operator":    {value: `{"operator":"echo"}`, err: "a bundle cannot set"},
		"a profile":      {value: `{"profile":"None"}`, err: "a bundle cannot set"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Profile([]byte(test.value))
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want %q in it", err, test.err)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("error %v; -want +got:\n%s", err, diff)
			}
		})
	}
}
