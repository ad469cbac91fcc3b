// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// pods selects what is scraped from the pods of operators, and says by which labels a value is
// known to be one operator's.
type pods struct{ matcher, labels string }

// What the PodMonitors of the agent scrape names its operator, and what others scrape does not.
func namedPods() pods   { return pods{series.OperatorNamespace + `!=""`, ownLabels} }
func unnamedPods() pods { return pods{series.OperatorNamespace + `=""`, namespaceLabels} }

// of selects the series of a metric that also meet further matchers.
func (p pods) of(metric string, matchers ...string) string {
	return fmt.Sprintf("%s{%s}", metric, strings.Join(append([]string{p.matcher}, matchers...), ","))
}

// rate is the rate of a counter.
func (p pods) rate(counter string, matchers ...string) string {
	return aggregate("sum", p.labels, fmt.Sprintf("rate(%s[%s])", p.of(counter, matchers...), interval))
}

// ofOperator finds the operators that values of pods belong to.
func ofOperator(of operators, bad func(pods) string) string {
	return aggregate("max", installLabels, "\n"+ofPodsOf(of, bad)+"\n")
}

// ofPodsOf gives a value to the operator that its own labels name, if that runs in the namespace:
// what runs elsewhere cannot claim to be an operator. A value that names none is that of the only
// operator of the namespace. Where there are several, it is nobody's: none of them should page
// for another.
func ofPodsOf(of operators, bad func(pods) string) string {
	return fmt.Sprintf("  (%s)\n  and %s %s\n  or %s * %s group_left ()\n  (%s)", bad(namedPods()), on(ownLabels),
		of.of(series.OperatorInfo), of.of(series.OperatorAlone), on(namespaceLabels), bad(unnamedPods()))
}

// aloneInNamespace records the operators that are the only one in their namespace.
func aloneInNamespace() monitoringv1.Rule {
	each := aggregate("group", ownLabels, series.OperatorInfo)
	return record(series.OperatorAlone, fmt.Sprintf("%s\nand %s (%s == 1)", each, on(namespaceLabels),
		aggregate("count", namespaceLabels, each)))
}
