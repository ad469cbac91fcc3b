// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import "github.com/bellwether-dev/bellwether/alerts/series"

// NotifiedSeverity returns the severity with which users are notified of an alert: series.Page,
// series.Ticket, or another severity of its rule. A page about one cluster becomes a ticket
// if the operator does not page for a single cluster. The policies must have their operators
// from Assign. If no policy routes the alert, the severity of its rule is returned.
func NotifiedSeverity(policies []Policy, labels map[string]string) string {
	severity := labels[series.Severity]
	if severity != series.Page || labels[series.Scope] != series.ScopeOperator {
		return severity
	}
	for _, p := range policies {
		for _, op := range p.Operators {
			if op.Namespace == labels[series.OperatorNamespace] && op.Name == labels[series.Operator] &&
				!p.hasSingleClusterPages(op) {
				return series.Ticket
			}
		}
	}
	return severity
}
