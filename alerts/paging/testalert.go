// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import "github.com/bellwether-dev/bellwether/alerts/series"

// AlertTest is the name of the alert with which a person tests who is notified. No rule makes it.
const AlertTest = "BellwetherPagingTest"

// LabelPolicy is the label of a test alert with the policy, as namespace/name.
const LabelPolicy = "paging_policy"

// SeveritySelfTest is the severity of the hub's own tests, which go to
// the receivers of pages. PagerDuty receives them with severityInfo.
const (
	SeveritySelfTest = "self-test"
	severityInfo     = "info"
)

// TestLabels returns the labels of an alert that goes to the receivers of a policy's pages
// or tickets. severity is page, ticket, or SeveritySelfTest if the policy has self-tests.
func TestLabels(namespace, name, severity string) map[string]string {
	return map[string]string{"alertname": AlertTest, LabelPolicy: Policy{Namespace: namespace, Name: name}.id(),
		series.OperatorNamespace: namespace, series.Severity: severity}
}
