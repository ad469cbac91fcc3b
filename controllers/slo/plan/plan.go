// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what follows from all OperatorSLOs of the hub: which
// OperatorSLO counts for which operator, the one set of rules for all of them,
// the services and monitors in the specs of OperatorInstalls, and each object's
// status. It is pure: no client, clock or logger.
package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Input is what was observed.
type Input struct {
	Now time.Time
	// Operators are all ManagedOperators, SLOs all OperatorSLOs, Installs all
	// OperatorInstalls: in any order, and not changed.
	Operators []v1alpha1.ManagedOperator
	SLOs      []v1alpha1.OperatorSLO
	Installs  []v1alpha1.OperatorInstall
	// Kind of the objects that hold the rules, and the namespace they are in.
	Kind      Kind
	Namespace string
	// Part of the rules that is written.
	Part slo.Part
	// RunbookURL is the folder with a page for each alert, and DashboardURL begins the
	// links of alerts to the dashboard; empty: no links.
	RunbookURL, DashboardURL string
	// WithoutAlerts are names of alerts that are left out.
	WithoutAlerts []string
	// Prometheus is what it evaluates now.
	Prometheus Prometheus
}

// Kind is what rules are written as.
type Kind string

const (
	// KindPrometheusRule is prometheus-operator's object.
	KindPrometheusRule Kind = "PrometheusRule"
	// KindConfigMap holds plain rule files, for a hub without prometheus-operator.
	KindConfigMap Kind = "ConfigMap"
)

// Decision is what to do, in the order of the fields. Each part may be done again.
type Decision struct {
	// Create are OperatorSLOs for operators that none names.
	Create []*v1alpha1.OperatorSLO
	// Withdraw are OperatorSLOs that were created that way and never edited, and
	// whose operator now has one that a person created.
	Withdraw []types.NamespacedName
	// Files are all rules. Files that were written before and are not among them
	// are deleted.
	Files []File
	// Installs are the OperatorInstalls whose specs have to be changed.
	Installs []InstallChange
	// Statuses of the OperatorSLOs, but for whether the rules were written.
	Statuses map[types.NamespacedName]v1alpha1.OperatorSLOStatus
	Events   []Event
	// RecheckAfter is when to look at Prometheus and at what was written again.
	RecheckAfter time.Duration
}

// InstallChange is the part of an OperatorInstall's spec that follows from
// objectives.
type InstallChange struct {
	Install  types.NamespacedName     `json:"-"`
	Services []v1alpha1.ProbedService `json:"services,omitempty"`
	Monitor  *v1alpha1.PodMetrics     `json:"monitor,omitempty"`
}

// Event is a Kubernetes Event about an OperatorSLO.
type Event struct {
	SLO     types.NamespacedName
	Reason  string
	Message string
}

// When everything is checked again: the kind PrometheusRule can come or go at any
// time. Until Prometheus has loaded a new set of rules it is sooner.
const (
	recheck     = time.Minute
	recheckSoon = 10 * time.Second
)

// Next decides what to do. An error is a bug: objectives that are valid one by one
// are not valid together.
func Next(in Input) (Decision, error) {
	chosen := choose(in)
	next := Decision{
		Create:       chosen.create,
		Withdraw:     chosen.withdraw,
		Statuses:     map[types.NamespacedName]v1alpha1.OperatorSLOStatus{},
		RecheckAfter: recheck,
	}
	var subjects []*subject
	for _, c := range chosen.inForce {
		subjects = append(subjects, newSubject(c.operator, c.slo))
	}
	var err error
	next.Files, err = files(in, append(subjects[:len(subjects):len(subjects)], chosen.created()...), chosen.missing())
	if err != nil {
		return Decision{}, err
	}
	for _, r := range chosen.refused {
		next.Statuses[key(r.slo)] = refused(r)
	}
	for _, s := range subjects {
		status, edited := s.report(in, next.Files)
		next.Statuses[key(s.slo)] = status
		if edited != "" {
			next.Events = append(next.Events, Event{key(s.slo), EventObjectivesEdited, edited})
		}
	}
	next.Installs = installChanges(in, subjects)
	if in.Prometheus.Trouble == nil && !allLoaded(in, next.Files) {
		next.RecheckAfter = recheckSoon
	}
	return next, nil
}

// EventObjectivesEdited is the reason of the event about edited objectives: the
// budgets that are left change with them.
const EventObjectivesEdited = "ObjectivesEdited"

func key(o interface {
	GetNamespace() string
	GetName() string
}) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
