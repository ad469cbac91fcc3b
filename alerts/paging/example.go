// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"errors"
	"maps"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// FindRule returns the rule of an alert with a severity. If severity is empty, it returns the
// rule that pages, if there is one. It returns nil if there is no such rule.
func FindRule(groups []monitoringv1.RuleGroup, alert, severity string) *monitoringv1.Rule {
	var found *monitoringv1.Rule
	for _, g := range groups {
		for i := range g.Rules {
			r := &g.Rules[i]
			isBetter := found == nil || !hasSeverity(found, series.Page) && hasSeverity(r, series.Page)
			if r.Alert == alert && hasSeverity(r, severity) && isBetter {
				found = r
			}
		}
	}
	return found
}

// hasSeverity reports whether a rule has a severity. Each rule has the empty severity.
func hasSeverity(r *monitoringv1.Rule, severity string) bool {
	return severity == "" || r.Labels[series.Severity] == severity
}

var (
	// ErrNoOperator means that an alert is about an operator, and its Subject has none.
	ErrNoOperator = errors.New("no operator for an alert about an operator")
	// ErrNoCluster means that an alert is about a cluster, and its Subject has none.
	ErrNoCluster = errors.New("no cluster for an alert about a cluster")
)

// Subject is what an alert is about. The scope of the alert's rule decides which of the fields are used.
type Subject struct {
	Operator Operator
	// SLI is the SLI of the operator.
	SLI string
	// Version is the release of the operator. Empty: the alert has no label for it.
	Version string
	Cluster string
}

// BuildLabels returns the labels of the alert of a rule about a subject. It returns ErrNoOperator or ErrNoCluster
// if the scope of the rule requires an operator or a cluster, and the subject has none.
func BuildLabels(rule *monitoringv1.Rule, subject Subject) (map[string]string, error) {
	scope := rule.Labels[series.Scope]
	if isAboutOperator(scope) && subject.Operator.Name == "" {
		return nil, ErrNoOperator
	}
	if isAboutCluster(scope) && subject.Cluster == "" {
		return nil, ErrNoCluster
	}
	out := subject.addLabels(rule.Labels, scope)
	out["alertname"] = rule.Alert
	return out, nil
}

// addLabels returns a copy of the labels of an alert with a scope, with the labels of the subject.
func (s Subject) addLabels(labels map[string]string, scope string) map[string]string {
	out := maps.Clone(labels)
	if isAboutOperator(scope) {
		out[series.OperatorNamespace], out[series.Operator] = s.Operator.Namespace, s.Operator.Name
		out[series.SLI] = s.SLI
		if s.Operator.Team != "" {
			out[series.Team] = s.Operator.Team
		}
	}
	if scope == series.ScopeRelease && s.Version != "" {
		out[series.Version] = s.Version
	}
	if isAboutCluster(scope) {
		out[series.Cluster] = s.Cluster
	}
	return out
}

// isAboutOperator reports whether alerts with a scope are about an operator, on one cluster or on all.
func isAboutOperator(scope string) bool {
	return scope == series.ScopeOperator || scope == series.ScopeRelease
}

// isAboutCluster reports whether alerts with a scope are about one cluster.
func isAboutCluster(scope string) bool {
	return scope == series.ScopeOperator || scope == series.ScopeCluster
}

// ChooseExampleValue returns a typical value of the alert of a rule: a burn rate that pages for an
// alert about an operator or a release, and otherwise a number of operators or clusters.
func ChooseExampleValue(rule *monitoringv1.Rule) float64 {
	if scope := rule.Labels[series.Scope]; scope == series.ScopeCluster || scope == series.ScopeFleet {
		return 3
	}
	return 14.4
}
