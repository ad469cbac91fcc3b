// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"slices"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// Probe is the prefix of the SLIs of probes. A probe has an SLI for each vantage point: probe:NAME for the
// measurements of the agent inside the cluster, probe:NAME:hub for the measurements of the hub from outside.
const Probe = "probe:"

// insideVantage is the vantage of agents. It is not part of the name of an SLI.
const insideVantage = "cluster"

// newProbeSLI returns the family of SLIs of probes. A probe with a selector is bad while one of its targets fails.
func newProbeSLI() SLI {
	return newGaugeSLI(SLI{Name: Probe, Target: 999_000,
		Bad: "the probe did not succeed, inside the cluster (`probe:NAME`) or from the hub (`probe:NAME:hub`)"},
		buildProbeExpr)
}

// buildProbeExpr returns PromQL for the slices of probes. A slice is bad if any
// target fails. If several processes probe a target, one success is enough.
func buildProbeExpr(ops operators) string {
	each := budgetLabels + ", " + series.Vantage + ", " + series.Target
	return aggregate("max", budgetLabels, fmt.Sprintf("\n  %s == bool 0\n", aggregate("max", each,
		addProbeSLI(ops.selectSeries(series.ProbeSuccess)+" == bool 1"))))
}

// addProbeSLI adds the label sli to series of probes: probe:NAME for the
// vantage point inside the cluster, and otherwise probe:NAME:VANTAGE.
func addProbeSLI(expr string) string {
	return fmt.Sprintf("label_replace(label_join(%s, \"sli\", \":\", \"probe\", \"vantage\"), \"sli\", \"probe:$1\", "+
		"\"sli\", \"(.+?)(:%s|:)?\")", expr, insideVantage)
}

// matchProbe returns the matchers of the probe of an SLI.
func matchProbe(sli string) string {
	name, vantage, isOutside := strings.Cut(strings.TrimPrefix(sli, Probe), ":")
	if !isOutside {
		return fmt.Sprintf("probe=%q,vantage=~\"|%s\"", name, insideVantage)
	}
	return fmt.Sprintf("probe=%q,vantage=%q", name, vantage)
}

// buildProbeTarget returns the rule that gives an objective to every probe, except probes that an
// objective of an operator names, and probes of operators that exclude the SLIs of probes.
func (s Set) buildProbeTarget(o Objective) monitoringv1.Rule {
	var except []string
	var without []types.NamespacedName
	for _, op := range s.Operators {
		if slices.Contains(op.Without, Probe) {
			without = append(without, op.ID())
		}
		for _, own := range op.Objectives {
			if strings.HasPrefix(own.SLI, Probe) {
				except = append(except, fmt.Sprintf("%s{%s,%s}", series.ProbeSuccess, matchOperator(op.ID()),
					matchProbe(own.SLI)))
			}
		}
	}
	probes := selectOthers(series.ProbeSuccess, without)
	if len(except) > 0 {
		probes += " unless (" + strings.Join(except, " or ") + ")"
	}
	return newRecord(series.SLOObjective, o.Target.formatDecimal()+" * "+aggregate("group", objectiveLabels,
		addProbeSLI(probes)))
}

// selectProbeIntervals returns PromQL for the intervals of probes in seconds, by operator and SLI.
func selectProbeIntervals() string {
	return aggregate("max", objectiveLabels, addProbeSLI(series.ProbeInterval))
}
