// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package handover writes the report of a shift for the next person on call: first what is open now, then what
// happened. Its input is observations, and why other data could not be read; its output is data, and Markdown of this
// data. Package explain writes the sentences about rollouts and clusters.
//
// The package is pure: it has no client, clock or logger. Data that could not be read must never look like "there
// is none".
package handover

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/budgets"
	"github.com/bellwether-dev/bellwether/alerts/incidents"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// APIVersion and Kind of a report as data.
const (
	APIVersion = "explain.bellwether.dev/v1alpha1"
	Kind       = "Handover"
)

// LostBudget is the minimum part of an error budget that must be lost in the shift to be reported.
const LostBudget = 0.01

// Read has the objects of one kind that were read.
type Read[T any] struct {
	Items []T
	// Unknown is why the objects could not be read, as a sentence without a period; empty if they could be read.
	Unknown string
}

// Input has the data of a report.
type Input struct {
	// From and To are the limits of the shift. Now, which is To or later, is when all other data was read.
	From, To, Now time.Time
	// Zone is the time zone of the report's text.
	Zone *time.Location
	// Namespace limits the report to a namespace on the hub; empty means all.
	Namespace string
	// Most is the maximum length of each list; 0 means no limit.
	Most int
	// Program is the command with which the user runs bellwether; empty means "bellwether".
	Program string

	Operators Read[v1alpha1.ManagedOperator]
	Rollouts  Read[v1alpha1.OperatorRollout]
	// Members are the installs of the rollouts that have not ended, by the rollout's UID. If a rollout is missing
	// here, its installs could not be read.
	Members  map[types.UID][]v1alpha1.OperatorInstall
	Clusters Read[v1alpha1.FleetCluster]
	Windows  Read[v1alpha1.ChangeWindow]
	Policies Read[v1alpha1.RolloutPolicy]

	Incidents Read[incidents.Incident]
	// Gaps are times in which it is not known which alerts fired.
	Gaps []incidents.Gap
	// Low are the objectives with less than budgets.ReportBelow left. Lost are the objectives that lost LostBudget in
	// the shift.
	Low, Lost Read[budgets.Spending]

	// Silences are all silences of Alertmanager. Alerts are Bellwether's alerts in Alertmanager.
	Silences Read[Silence]
	Alerts   Read[Alert]
}

// Report is the report of a shift. Its lists are in reading order.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// At is when the report was made, and when open items were observed.
	At        time.Time `json:"at"`
	Namespace string    `json:"namespace,omitempty"`

	Open  Open  `json:"open"`
	Shift Shift `json:"shift"`

	zone *time.Location
}

// Open has what is open at the time of the report, even if it began before the shift.
type Open struct {
	Incidents List[Incident] `json:"incidents"`
	Rollouts  List[Rollout]  `json:"rollouts"`
	// Holds are the versions and settings that are held after a rollback.
	Holds List[Hold] `json:"holds"`
	// Budgets are budgets with less than a fifth left.
	Budgets List[budgets.Spending] `json:"budgets"`
	// Silences are in force or begin later.
	Silences List[ReportedSilence] `json:"silences"`
	Vetoes   List[Cluster]         `json:"vetoes"`
	Offline  List[Cluster]         `json:"offline"`
	// Windows are ChangeWindows that are closed for clusters.
	Windows List[Window] `json:"windows"`
}

// Shift has what happened in the shift and has ended.
type Shift struct {
	Incidents List[Incident] `json:"incidents"`
	// Rollouts are the rollouts that started or ended in the shift.
	Rollouts  List[Outcome]  `json:"rollouts"`
	Decisions List[Decision] `json:"decisions"`
	// Budgets are the budgets that lost the most in the shift.
	Budgets  List[budgets.Spending] `json:"budgets"`
	Silences List[ReportedSilence]  `json:"silences"`
	Clusters List[Cluster]          `json:"clusters"`
}

// List is a list of limited length.
type List[T any] struct {
	// Unknown is why the list could not be read. Then the list is empty and has no total.
	Unknown string `json:"unknown,omitempty"`
	// Total is the number of all items. Items has the first of them.
	Total *int `json:"total"`
	// Detail describes the total, such as "1 page, 2 tickets".
	Detail string `json:"detail,omitempty"`
	Items  []T    `json:"items"`
	// Notes say what is not known about the list.
	Notes []string `json:"notes,omitempty"`
}

// limitList returns a list with at most that many items; 0 means no limit. unknown is why the items could not be read.
func limitList[T any](maxItems int, unknown string, items []T) List[T] {
	if unknown != "" {
		return List[T]{Unknown: unknown, Items: []T{}}
	}
	total := len(items)
	if maxItems > 0 && total > maxItems {
		items = items[:maxItems]
	}
	if items == nil {
		items = []T{}
	}
	return List[T]{Total: &total, Items: items}
}

// New returns the report.
func New(in Input) Report {
	open, ended := in.listIncidents()
	inForce, silencesEnded := in.listSilences()
	return Report{
		APIVersion: APIVersion, Kind: Kind, From: in.From.UTC(), To: in.To.UTC(), At: in.Now.UTC(),
		Namespace: in.Namespace, zone: in.Zone,
		Open: Open{
			Incidents: open, Rollouts: in.listOpenRollouts(), Holds: in.listHolds(),
			Budgets: limitList(in.Most, in.Low.Unknown, in.Low.Items), Silences: inForce,
			Vetoes: in.listVetoes(), Offline: in.listOffline(), Windows: in.listWindows(),
		},
		Shift: Shift{
			Incidents: ended, Rollouts: in.listOutcomes(), Decisions: in.listDecisions(),
			Budgets: limitList(in.Most, in.Lost.Unknown, in.Lost.Items), Silences: silencesEnded,
			Clusters: in.listClustersBack(),
		},
	}
}

// isInShift reports whether a time is in the shift.
func (in Input) isInShift(at time.Time) bool {
	return !at.IsZero() && !at.Before(in.From) && !at.After(in.To)
}
