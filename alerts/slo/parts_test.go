// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

func buildPart(t *testing.T, s Set, part Part) *Rules {
	t.Helper()
	r, err := BuildPart(s, part)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// rulesOf are the rules of groups in an order of their own. Which slices a part makes is left out.
func rulesOf(groups []monitoringv1.RuleGroup) []string {
	var out []string
	for _, g := range groups {
		for _, r := range g.Rules {
			expr := strings.NewReplacer(ofAgents+" > 0", " > 0").Replace(r.Expr.String())
			if r.Record == series.SLIBadVersion {
				expr = strings.ReplaceAll(expr, ofAgents, "")
			}
			labels := slices.Sorted(maps.Keys(r.Labels))
			for i, name := range labels {
				labels[i] = name + "=" + r.Labels[name]
			}
			out = append(out, cmp.Or(r.Record, r.Alert)+"{"+strings.Join(labels, ",")+"} "+expr)
		}
	}
	slices.Sort(out)
	return out
}

// TestPartsAreTheWhole compares the rules of both parts with those of the whole: they are the same, but that each part
// tells bad slices from good ones among those that it makes.
func TestPartsAreTheWhole(t *testing.T) {
	for name, set := range sets() {
		edge, hub := buildPart(t, set, Edge), buildPart(t, set, Hub)
		forProbes := func(rule string) bool {
			return strings.HasPrefix(rule, series.SLIBadSlice+"{}") ||
				strings.HasPrefix(rule, series.SLIBadVersion+"{}")
		}
		both := slices.Concat(rulesOf(edge.All()), slices.DeleteFunc(rulesOf(hub.All()), forProbes))
		slices.Sort(both)
		if diff := gocmp.Diff(rulesOf(build(t, set).All()), both); diff != "" {
			t.Errorf("%s (-whole +parts):\n%s", name, diff)
		}
		if len(hub.Own) > 0 {
			t.Errorf("%s: the hub part has own SLIs of %v, whose metrics are on the clusters", name,
				hub.Own[0].Operator)
		}
	}
}

// TestHubPartIsDelayed looks for groups that would not wait for samples that are on their way, or see other groups'
// samples too early.
func TestHubPartIsDelayed(t *testing.T) {
	for _, g := range buildPart(t, sets()["mixed"], Hub).All() {
		if g.QueryOffset == nil || *g.QueryOffset != "30s" {
			t.Errorf("group %s has the query offset %v", g.Name, g.QueryOffset)
		}
	}
	for _, part := range []Part{Whole, Edge} {
		for _, g := range buildPart(t, sets()["mixed"], part).All() {
			if g.QueryOffset != nil {
				t.Errorf("group %s of part %q has a query offset", g.Name, part)
			}
		}
	}
}

// TestHubPartReadsOnlyWhatTravels looks for series that the Prometheus of the hub would not have.
func TestHubPartReadsOnlyWhatTravels(t *testing.T) {
	hub := buildPart(t, sets()["mixed"], Hub)
	there := map[string]bool{"ALERTS": true}
	for _, name := range series.Travelling() {
		there[name] = true
	}
	for _, s := range series.Hub() {
		there[s.Name] = true
	}
	read := map[string]bool{}
	for _, g := range hub.All() {
		for _, r := range g.Rules {
			there[r.Record] = true
			for _, name := range metricsOf(r.Expr.String()) {
				read[name] = true
			}
			for _, template := range r.Annotations {
				for _, name := range ourSeries.FindAllString(template, -1) {
					read[name] = true
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(read)) {
		if !there[name] {
			t.Errorf("the hub part reads %s: add it to series.Travelling, or make it in the edge part", name)
		}
	}
	for _, name := range series.Travelling() {
		if !read[name] {
			t.Errorf("%s travels, and no rule of the hub part reads it", name)
		}
	}
}

// TestEdgePartKeepsClustersApart looks for an aggregation or a join over clusters: evaluated in the Prometheus of each
// cluster, its result would be another one.
func TestEdgePartKeepsClustersApart(t *testing.T) {
	for _, g := range buildPart(t, sets()["mixed"], Edge).All() {
		for _, r := range g.Rules {
			if r.Alert != "" {
				t.Errorf("the edge part has the alert %s", r.Alert)
			}
			for _, labels := range grouping.FindAllStringSubmatch(r.Expr.String(), -1) {
				if !slices.Contains(strings.Split(labels[2], ", "), series.Cluster) {
					t.Errorf("%s: %s is not by cluster", r.Record, labels[0])
				}
			}
		}
	}
}

var (
	ourSeries = regexp.MustCompile(`\bbellwether(_[a-z_]+|:[a-z0-9_]+:[a-z0-9]+)`)
	grouping  = regexp.MustCompile(`\b(by|without|on|ignoring) ?\(([a-z_, ]*)\)`)
	text      = regexp.MustCompile(`"(\\.|[^"\\])*"`)
	noMetric  = regexp.MustCompile(`\{[^}]*\}|\[[^\]]*\]|` +
		`\b(by|without|on|ignoring|group_left|group_right) ?\([a-z_, ]*\)|\boffset [0-9a-z]+`)
	word     = regexp.MustCompile(`[A-Za-z_:][A-Za-z0-9_:]*(\s*\()?`)
	keywords = []string{"and", "or", "unless", "bool"}
)

// metricsOf are the names of metrics in PromQL as the rules have it: the words that are neither functions nor keywords,
// outside of strings, selectors and lists of labels.
func metricsOf(expr string) []string {
	var out []string
	expr = text.ReplaceAllString(expr, "")
	for _, w := range word.FindAllString(noMetric.ReplaceAllString(expr, " "), -1) {
		if !strings.HasSuffix(w, "(") && !slices.Contains(keywords, w) {
			out = append(out, w)
		}
	}
	return out
}

func TestMetricsOf(t *testing.T) {
	got := metricsOf(`sum by (cluster, sli) (rate(a_total{x="}b(",y=~"c"}[5m])) * on (cluster) group_left (team) d:e:f
		unless (g offset 5m) > bool 13 or label_replace(ALERTS, "sli", "probe:$1", "probe", "(.+)")`)
	if diff := gocmp.Diff([]string{"a_total", "d:e:f", "g", "ALERTS"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDelayIsShort compares the delay with how long a sample counts.
func TestDelayIsShort(t *testing.T) {
	if QueryOffset <= 0 || QueryOffset+Step >= lateAfter || QueryOffset%time.Second != 0 {
		t.Errorf("the hub part is evaluated %s behind", QueryOffset)
	}
}
