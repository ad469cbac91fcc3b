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

// Probe is the prefix of the SLIs of probes. A probe has an SLI for each place that
// it runs at: probe:NAME for what the agent sees inside the cluster, probe:NAME:hub
// for what the hub sees from outside.
const Probe = "probe:"

// inside is the vantage of agents. It is not part of the name of an SLI.
const inside = "cluster"

// probeSLI is the family of SLIs of probes. A probe with a selector is bad while one
// of its targets fails.
func probeSLI() SLI {
	return ofGauges(SLI{Name: Probe, Target: 999_000,
		Bad: "the probe did not succeed, inside the cluster (`probe:NAME`) or from the hub (`probe:NAME:hub`)"},
		probeExpr)
}

func probeExpr(of operators) string {
	each := budgetLabels + ", " + series.Vantage + ", " + series.Target
	return aggregate("max", budgetLabels, fmt.Sprintf("\n  %s == bool 0\n", aggregate("max", each,
		withProbeSLI(of.of(series.ProbeSuccess)+" == bool 1"))))
}

// withProbeSLI gives series of probes the label sli.
func withProbeSLI(expr string) string {
	return fmt.Sprintf("label_replace(label_join(%s, \"sli\", \":\", \"probe\", \"vantage\"), \"sli\", \"probe:$1\", "+
		"\"sli\", \"(.+?)(:%s|:)?\")", expr, inside)
}

// matchProbe selects the probe of an SLI.
func matchProbe(sli string) string {
	name, vantage, isOutside := strings.Cut(strings.TrimPrefix(sli, Probe), ":")
	if !isOutside {
		return fmt.Sprintf("probe=%q,vantage=~\"|%s\"", name, inside)
	}
	return fmt.Sprintf("probe=%q,vantage=%q", name, vantage)
}

// probeTarget gives an objective to every probe that there is.
func (s Set) probeTarget(o Objective) monitoringv1.Rule {
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
	return record(series.SLOObjective, o.Target.decimal()+" * "+aggregate("group", objectiveLabels,
		withProbeSLI(probes)))
}

// probeIntervals are the intervals of probes in seconds, by operator and SLI.
func probeIntervals() string {
	return aggregate("max", objectiveLabels, withProbeSLI(series.ProbeInterval))
}
