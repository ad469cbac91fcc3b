// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/prometheus/promql/parser"

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

// rulesOf returns the rules of groups, sorted, without the selectors of the slices that a part makes.
func rulesOf(groups []monitoringv1.RuleGroup) []string {
	var out []string
	for _, g := range groups {
		for _, r := range g.Rules {
			expr := r.Expr.String()
			if r.Record == series.SLIBadVersion {
				expr = strings.ReplaceAll(expr, agentSlices, "")
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

// TestPartsAreTheWhole compares the rules of both parts with the rules of the whole: they
// must be equal, except that each part selects the bad slices among the slices that it makes.
func TestPartsAreTheWhole(t *testing.T) {
	for name, set := range sets() {
		edge, hub := buildPart(t, set, Edge), buildPart(t, set, Hub)
		// The rule for bad slices differs in each part, see TestBadSlicesOfParts.
		bad := func(rule string) bool { return strings.HasPrefix(rule, series.SLIBadSlice+"{}") }
		forProbes := func(rule string) bool { return strings.HasPrefix(rule, series.SLIBadVersion+"{}") }
		both := slices.Concat(rulesOf(edge.All()), slices.DeleteFunc(rulesOf(hub.All()), forProbes))
		slices.Sort(both)
		if diff := gocmp.Diff(slices.DeleteFunc(rulesOf(build(t, set).All()), bad),
			slices.DeleteFunc(both, bad)); diff != "" {
			t.Errorf("%s (-whole +parts):\n%s", name, diff)
		}
		if len(hub.Own) > 0 {
			t.Errorf("%s: the hub part has own SLIs of %v, whose metrics are on the clusters", name,
				hub.Own[0].Operator)
		}
	}
}

// TestBadSlicesOfParts checks which SLIs each part reads bad slices
// of, and which parts of the expression contain the covered SLIs.
func TestBadSlicesOfParts(t *testing.T) {
	const cover, outside = `sli=~"oom|restarts|pending"} > 0`, `sli=~"probe:.+:.+"} > 0`
	for part, want := range map[Part]struct {
		begins         string
		cover, outside bool
	}{
		Whole: {`bellwether:sli_bad:bool{sli!~"memory|oom|pending|redundancy|restarts|probe:.+:.+"} > 0`, true, true},
		Edge:  {`bellwether:sli_bad:bool{sli!~"memory|oom|pending|redundancy|restarts|probe:.+"} > 0`, true, false},
		Hub:   {`bellwether:sli_bad:bool{sli=~"probe:[^:]+"} > 0`, false, true},
	} {
		s := sets()["mixed"]
		expr := s.selectBadSlices(part)
		if !strings.HasPrefix(expr, want.begins) || strings.Contains(expr, cover) != want.cover ||
			strings.Contains(expr, outside) != want.outside {
			t.Errorf("part %q: %s", part, expr)
		}
	}
}

// TestHubPartIsDelayed reports groups that do not wait for samples
// in transit, or that read samples of other groups too early.
func TestHubPartIsDelayed(t *testing.T) {
	for _, g := range buildPart(t, sets()["critical"], Hub).All() {
		if g.QueryOffset == nil || *g.QueryOffset != "30s" {
			t.Errorf("group %s has the query offset %v", g.Name, g.QueryOffset)
		}
	}
	for _, part := range []Part{Whole, Edge} {
		for _, g := range buildPart(t, sets()["critical"], part).All() {
			if g.QueryOffset != nil {
				t.Errorf("group %s of part %q has a query offset", g.Name, part)
			}
		}
	}
}

// TestHubPartReadsOnlyWhatTravels reports series that the Prometheus of the hub does not have.
func TestHubPartReadsOnlyWhatTravels(t *testing.T) {
	hub := buildPart(t, sets()["critical"], Hub)
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
			for _, query := range queriesOf(t, r) {
				for _, name := range metricsOf(t, query) {
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

// TestEdgePartKeepsClustersApart reports aggregations and joins over
// clusters: in the Prometheus of each cluster they would have another result.
func TestEdgePartKeepsClustersApart(t *testing.T) {
	apart := func(t *testing.T, labels []string, without bool, expr parser.Expr) {
		t.Helper()
		if slices.Contains(labels, series.Cluster) == without {
			t.Errorf("this is not by cluster: %s", expr)
		}
	}
	for _, g := range buildPart(t, sets()["critical"], Edge).All() {
		for _, r := range g.Rules {
			if r.Alert != "" {
				t.Errorf("the edge part has the alert %s", r.Alert)
			}
			parser.Inspect(parse(t, r.Expr.String()), func(node parser.Node, _ []parser.Node) error {
				switch e := node.(type) {
				case *parser.AggregateExpr:
					apart(t, e.Grouping, e.Without, e)
				case *parser.BinaryExpr:
					if m := e.VectorMatching; m != nil {
						apart(t, m.MatchingLabels, !m.On, e)
					}
				}
				return nil
			})
		}
	}
}

func parse(t *testing.T, expr string) parser.Expr {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// metricsOf are the names of metrics in PromQL.
func metricsOf(t *testing.T, expr string) []string {
	t.Helper()
	var out []string
	parser.Inspect(parse(t, expr), func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			out = append(out, s.Name)
		}
		return nil
	})
	return out
}

// queries finds the queries in the templates of annotations. Their values of labels are left open.
var queries = regexp.MustCompile(`printf ("(?:\\.|[^"\\])*")`)

// values are the places of the values of labels in a query.
var values = regexp.MustCompile(`%(\[\d\])?q`)

// queriesOf are the queries of a rule and of its annotations.
func queriesOf(t *testing.T, r monitoringv1.Rule) []string {
	t.Helper()
	out := []string{r.Expr.String()}
	for _, template := range r.Annotations {
		for _, found := range queries.FindAllStringSubmatch(template, -1) {
			query, err := strconv.Unquote(found[1])
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(query, series.Cluster+"=") || strings.Contains(query, series.Operator+"=") {
				out = append(out, values.ReplaceAllString(query, `"x"`))
			}
		}
	}
	return out
}

// TestDelayIsShort compares the delay with how long a sample counts.
func TestDelayIsShort(t *testing.T) {
	if QueryOffset <= 0 || QueryOffset+Step >= lateAfter || QueryOffset%time.Second != 0 {
		t.Errorf("the hub part is evaluated %s behind", QueryOffset)
	}
}
