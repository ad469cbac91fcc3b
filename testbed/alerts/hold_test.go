// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// wholeMinute has a result at whole minutes only.
const wholeMinute = "(vector(time()) % 60 == 0)"

// windows are windows over series that rules record.
var windows = regexp.MustCompile(`([a-z_]+:[a-z_]+:[a-z0-9]+)(\{[^{}]*\})?\[([0-9]+[smhd])\]`)

// hold changes rules so that promtool can play groups of 60 s and of 15 s together: promtool evaluates all groups at
// one interval, which has to be 15 s then. Rules of slower groups keep between whole minutes what they recorded at the
// last one, as a query of Prometheus finds it, and windows over what they alone record have one sample a minute.
func hold(groups []monitoringv1.RuleGroup) []monitoringv1.RuleGroup {
	recorders, often := map[string][]monitoringv1.Rule{}, map[string]bool{}
	for _, g := range groups {
		for _, r := range g.Rules {
			if isCritical(g) {
				often[r.Record] = true
			} else if r.Record != "" {
				recorders[r.Record] = append(recorders[r.Record], r)
			}
		}
	}
	out := slices.Clone(groups)
	for i, g := range groups {
		out[i].Rules = slices.Clone(g.Rules)
		for j := range g.Rules {
			r := &out[i].Rules[j]
			expr := windows.ReplaceAllStringFunc(r.Expr.String(), func(found string) string {
				name := windows.FindStringSubmatch(found)[1]
				if recorders[name] == nil || often[name] {
					return found
				}
				return strings.TrimSuffix(found, "]") + ":1m]"
			})
			if !isCritical(g) && r.Record != "" {
				expr = held(*r, expr, recorders[r.Record])
			}
			r.Expr = intstr.FromString(expr)
		}
	}
	return out
}

func isCritical(g monitoringv1.RuleGroup) bool { return *g.Interval == "15s" }

// held records an expression at whole minutes, and what the rule recorded before at other times.
func held(r monitoringv1.Rule, expr string, recorders []monitoringv1.Rule) string {
	if expr == "time()" {
		expr = "vector(time())"
	}
	return fmt.Sprintf("((%s) and on () %s) or (%s%s unless on () %[2]s)", expr, wholeMinute, r.Record,
		ofRule(r, recorders))
}

// ofRule selects what one of several rules records that record series of one name.
func ofRule(r monitoringv1.Rule, recorders []monitoringv1.Rule) string {
	matchers := map[string]string{}
	for _, other := range recorders {
		for name, value := range other.Labels {
			if _, ok := r.Labels[name]; !ok {
				matchers[name] = strings.TrimPrefix(matchers[name]+"|"+value, "|")
			}
		}
	}
	var all []string
	for _, name := range slices.SortedFunc(maps.Keys(matchers), cmp.Compare[string]) {
		all = append(all, fmt.Sprintf("%s!~%q", name, matchers[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
		all = append(all, fmt.Sprintf("%s=%q", name, r.Labels[name]))
	}
	return "{" + strings.Join(all, ",") + "}"
}

// withoutLong leaves out rules that have nothing to do with pages about operators, releases and clusters. Windows of
// days would take promtool long.
func withoutLong(groups []monitoringv1.RuleGroup) []monitoringv1.RuleGroup {
	return slices.DeleteFunc(slices.Clone(groups), func(g monitoringv1.RuleGroup) bool {
		return slices.Contains([]string{"bellwether-budget", "bellwether-absence",
			"bellwether-burn-1d", "bellwether-burn-3d", "bellwether-health"}, g.Name)
	})
}

// withoutProbes leaves out the rules of the hub part that make slices, which are those of probes: what they hold would
// be the slices of the edge part too.
func withoutProbes(groups []monitoringv1.RuleGroup) []monitoringv1.RuleGroup {
	out := slices.Clone(groups)
	for i, g := range groups {
		out[i].Rules = slices.DeleteFunc(slices.Clone(g.Rules), func(r monitoringv1.Rule) bool {
			return slices.Contains([]string{series.SLIBad, series.SLIBadSlice, series.SLIBadVersion}, r.Record)
		})
	}
	return out
}

// slicesPerMinute are those of critical operators.
const slicesPerMinute = int(slo.Step / slo.CriticalStep)
