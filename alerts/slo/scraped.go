// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// pods selects series that are scraped from pods of operators: matcher selects
// the series, and labels are the labels that assign a value to one operator.
type pods struct{ matcher, labels string }

// newNamedPods is for series that the PodMonitors of the agent scrape and that
// name their operator. newUnnamedPods is for series that other monitors scrape.
func newNamedPods() pods   { return pods{series.OperatorNamespace + `!=""`, ownLabels} }
func newUnnamedPods() pods { return pods{series.OperatorNamespace + `=""`, namespaceLabels} }

// selectSeries selects the series of a metric that also meet further matchers.
func (p pods) selectSeries(metric string, matchers ...string) string {
	return fmt.Sprintf("%s{%s}", metric, strings.Join(append([]string{p.matcher}, matchers...), ","))
}

// buildRate returns PromQL for the rate of a counter.
func (p pods) buildRate(counter string, matchers ...string) string {
	return aggregate("sum", p.labels, fmt.Sprintf("rate(%s[%s])", p.selectSeries(counter, matchers...), counterWindow))
}

// aggregateByOperator returns PromQL that assigns values of pods to their operators,
// and takes the maximum for each operator. bad returns the values of the given pods.
func aggregateByOperator(ops operators, bad func(pods) string) string {
	return aggregate("max", installLabels, "\n"+joinOperators(ops, bad)+"\n")
}

// joinOperators returns PromQL that assigns a value to the operator in its labels, if that
// operator runs in the namespace: pods elsewhere must not claim to be an operator. A value
// without an operator belongs to the only operator of its namespace. If there are several
// operators, the value is ignored, because no operator should page for another one.
func joinOperators(ops operators, bad func(pods) string) string {
	return fmt.Sprintf("  (%s)\n  and %s %s\n  or %s * %s group_left ()\n  (%s)", bad(newNamedPods()),
		matchOn(ownLabels),
		ops.selectSeries(series.OperatorInfo), ops.selectSeries(series.OperatorAlone), matchOn(namespaceLabels),
		bad(newUnnamedPods()))
}

// buildAloneRule returns the rule that records the operators that are the only operator in their namespace.
func buildAloneRule() monitoringv1.Rule {
	each := aggregate("group", ownLabels, series.OperatorInfo)
	return newRecord(series.OperatorAlone, fmt.Sprintf("%s\nand %s (%s == 1)", each, matchOn(namespaceLabels),
		aggregate("count", namespaceLabels, each)))
}
