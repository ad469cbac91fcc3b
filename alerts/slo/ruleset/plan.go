// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ruleset decides the results of all OperatorSLOs of the hub: which OperatorSLO is in force
// for which operator, the one set of rules for all of them, the services and monitors in the specs
// of OperatorInstalls, and each object's status. It is pure: it has no client, clock or logger.
package ruleset

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Input is the observed state.
type Input struct {
	Now time.Time
	// Operators are all ManagedOperators, SLOs all OperatorSLOs, Installs
	// all OperatorInstalls, in any order. Next does not change them.
	Operators []v1alpha1.ManagedOperator
	SLOs      []v1alpha1.OperatorSLO
	Installs  []v1alpha1.OperatorInstall
	// Kind is the kind of the objects with the rules, and Namespace their namespace.
	Kind      Kind
	Namespace string
	// Part is the part of the rules that is written.
	Part slo.Part
	// RunbookURL is the folder with a page for each alert, and DashboardURL is
	// the start of the links from alerts to the dashboard. Empty: no links.
	RunbookURL, DashboardURL string
	// WithoutAlerts are names of alerts that are disabled.
	WithoutAlerts []string
	// Prometheus is the state of the rules that Prometheus evaluates.
	Prometheus Prometheus
}

// Kind is the kind of object that rules are written to.
type Kind string

const (
	// KindPrometheusRule is prometheus-operator's object.
	KindPrometheusRule Kind = "PrometheusRule"
	// KindConfigMap contains plain rule files, for a hub without prometheus-operator.
	KindConfigMap Kind = "ConfigMap"
)

// Decision contains the actions, in the order of the fields. Each action can be repeated.
type Decision struct {
	// Create are new OperatorSLOs for operators without one.
	Create []*v1alpha1.OperatorSLO
	// Withdraw are OperatorSLOs that were created automatically and never
	// edited, and whose operator now has an OperatorSLO from a person.
	Withdraw []types.NamespacedName
	// Files are all rules. Files that were written before and are not in Files are deleted.
	Files []File
	// Installs are the OperatorInstalls whose specs must be changed.
	Installs []InstallChange
	// Statuses are the statuses of the OperatorSLOs, without the result of writing the rules.
	Statuses map[types.NamespacedName]v1alpha1.OperatorSLOStatus
	Events   []Event
	// RecheckAfter is when Prometheus and the written objects are checked again.
	RecheckAfter time.Duration
}

// InstallChange is the part of an OperatorInstall's spec that depends on objectives.
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

// Intervals of the checks. They repeat because the kind PrometheusRule can be installed or
// removed at any time. The interval is shorter until Prometheus has loaded a new set of rules.
const (
	recheck     = time.Minute
	recheckSoon = 10 * time.Second
)

// Next returns the actions for an observed state. An error is a bug:
// objectives that are valid individually are not valid together.
func Next(in Input) (Decision, error) {
	chosen := chooseSLOs(in)
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
	// The limited capacity makes append copy the subjects.
	next.Files, err = buildFiles(in, append(subjects[:len(subjects):len(subjects)], chosen.listCreated()...),
		chosen.listMissing())
	if err != nil {
		return Decision{}, err
	}
	for _, r := range chosen.refused {
		next.Statuses[toKey(r.slo)] = buildRefusedStatus(r)
	}
	for _, s := range subjects {
		status, edited := s.report(in, next.Files)
		next.Statuses[toKey(s.slo)] = status
		if edited != "" {
			next.Events = append(next.Events, Event{toKey(s.slo), EventObjectivesEdited, edited})
		}
	}
	next.Installs = listInstallChanges(in, subjects)
	if in.Prometheus.Trouble == nil && !isLoaded(in, next.Files) {
		next.RecheckAfter = recheckSoon
	}
	return next, nil
}

// EventObjectivesEdited is the reason of the event about edited objectives. Edits also change the remaining budgets.
const EventObjectivesEdited = "ObjectivesEdited"

func toKey(o interface {
	GetNamespace() string
	GetName() string
}) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
