// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what becomes of the objectives of the whole fleet: which
// OperatorSLO speaks for which operator, the one set of rules that is made of
// all of them, what agents are told, and what each object's status says. It is
// pure: no client, clock or logger.
package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

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
	// RunbookURL and DashboardURL begin the links of alerts; empty: none.
	RunbookURL, DashboardURL string
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
	// Withdraw are those that were made that way, were never edited, and whose
	// operator a person's object names by now.
	Withdraw []types.NamespacedName
	// Files are all rules there have to be; what else was written is to go.
	Files []File
	// Tell says what agents have to be told.
	Tell []Tell
	// Statuses of the OperatorSLOs, but for whether the rules were written.
	Statuses map[types.NamespacedName]v1alpha1.OperatorSLOStatus
	Events   []Event
	// RecheckAfter is when to look at Prometheus and at what was written again.
	RecheckAfter time.Duration
}

// Tell is the part of an OperatorInstall's spec that follows from objectives.
type Tell struct {
	Install  types.NamespacedName
	Services []v1alpha1.ProbedService
	Monitor  *v1alpha1.PodMetrics
}

// Event is something that a person would ask about.
type Event struct {
	SLO     types.NamespacedName
	Reason  string
	Message string
}

// How often to look: a new set of rules takes Prometheus a moment to load, and
// whether the kind PrometheusRule is there can change at any time.
const (
	lookAgain = time.Minute
	lookSoon  = 10 * time.Second
)

// Next decides. The error is a bug: objectives that passed one by one cannot be
// put together.
func Next(in Input) (Decision, error) {
	chosen := choose(in)
	next := Decision{
		Create:       chosen.create,
		Withdraw:     chosen.withdraw,
		Statuses:     map[types.NamespacedName]v1alpha1.OperatorSLOStatus{},
		RecheckAfter: lookAgain,
	}
	var subjects []*subject
	for _, c := range chosen.inForce {
		subjects = append(subjects, newSubject(c.operator, c.slo))
	}
	var err error
	if next.Files, err = files(in, append(subjects[:len(subjects):len(subjects)], chosen.coming()...)); err != nil {
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
	next.Tell = tell(in, subjects)
	if in.Prometheus.Trouble == nil && !allLoaded(in, next.Files) {
		next.RecheckAfter = lookSoon
	}
	return next, nil
}

// EventObjectivesEdited is the reason of the event that tells of a budget that jumped.
const EventObjectivesEdited = "ObjectivesEdited"

func key(o interface {
	GetNamespace() string
	GetName() string
}) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
