// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import "github.com/bellwether-dev/bellwether/alerts/series"

// Notified says as what people are notified of an alert: series.Page, series.Ticket, or another severity of its
// rule. What its rule calls a page and is about one cluster is a ticket for an operator that does not page for a
// single cluster. The policies have their operators, as Assign gives them; what none of them routes is what its rule
// says.
func Notified(policies []Policy, labels map[string]string) string {
	severity := labels[series.Severity]
	if severity != series.Page || labels[series.Scope] != series.ScopeOperator {
		return severity
	}
	for _, p := range policies {
		for _, op := range p.Operators {
			if op.Namespace == labels[series.OperatorNamespace] && op.Name == labels[series.Operator] &&
				!p.pagesAlone(op) {
				return series.Ticket
			}
		}
	}
	return severity
}
