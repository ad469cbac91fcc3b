// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package handover writes the report of a shift for whoever is on call next: first
// what is open now, then what happened. Its input is what was observed, and why the
// rest could not be read; its output is data, and Markdown made of it. Sentences
// about rollouts and clusters are those of package explain.
//
// The package is pure: it has no client, clock or logger. What could not be read
// must never look like "there is none".
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

// LostBudget is the part of an error budget that has to be lost in the shift to be reported.
const LostBudget = 0.01

// Read is what was read of one kind.
type Read[T any] struct {
	Items []T
	// Unknown is why it could not be read, as a sentence without a stop; empty if it
	// could.
	Unknown string
}

// Input is what a report is made of.
type Input struct {
	// From and To are the shift, and Now, which is To or later, is when everything
	// else was read.
	From, To, Now time.Time
	// Zone is the time zone of the report's text.
	Zone *time.Location
	// Namespace is the one on the hub that the report is limited to; empty: all.
	Namespace string
	// Most bounds each list; 0: all.
	Most int
	// Program is how the user calls bellwether; empty means by that name.
	Program string

	Operators Read[v1alpha1.ManagedOperator]
	Rollouts  Read[v1alpha1.OperatorRollout]
	// Members are the installs of the rollouts that did not end, by the rollout's UID.
	// Of a rollout that is not there they could not be read.
	Members  map[types.UID][]v1alpha1.OperatorInstall
	Clusters Read[v1alpha1.FleetCluster]
	Windows  Read[v1alpha1.ChangeWindow]
	Policies Read[v1alpha1.RolloutPolicy]

	Incidents Read[incidents.Incident]
	// Gaps are times in which it is not known which alerts fired.
	Gaps []incidents.Gap
	// Low are the objectives with less than budgets.ReportBelow left, and Lost those that lost
	// LostBudget in the shift.
	Low, Lost Read[budgets.Spending]

	// Silences are all of Alertmanager's, and Alerts those of Bellwether that it has.
	Silences Read[Silence]
	Alerts   Read[Alert]
}

// Report is the report of a shift. Its lists are in the order in which to read them.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// At is when the report was made, and what is open was seen.
	At        time.Time `json:"at"`
	Namespace string    `json:"namespace,omitempty"`

	Open  Open  `json:"open"`
	Shift Shift `json:"shift"`

	zone *time.Location
}

// Open is what is open at the time of the report, whenever it began.
type Open struct {
	Incidents List[Incident] `json:"incidents"`
	Rollouts  List[Rollout]  `json:"rollouts"`
	// Holds keep operators from versions that were rolled back.
	Holds List[Hold] `json:"holds"`
	// Budgets have less than a fifth left, or are spent.
	Budgets List[budgets.Spending] `json:"budgets"`
	// Silences are in force, or begin later.
	Silences List[ReportedSilence] `json:"silences"`
	Vetoes   List[Cluster]         `json:"vetoes"`
	Offline  List[Cluster]         `json:"offline"`
	// Windows are ChangeWindows that are closed for clusters.
	Windows List[Window] `json:"windows"`
}

// Shift is what happened in the shift and is over.
type Shift struct {
	Incidents List[Incident] `json:"incidents"`
	// Rollouts started or ended in the shift.
	Rollouts  List[Outcome]  `json:"rollouts"`
	Decisions List[Decision] `json:"decisions"`
	// Budgets lost the most in the shift.
	Budgets  List[budgets.Spending] `json:"budgets"`
	Silences List[ReportedSilence]  `json:"silences"`
	Clusters List[Cluster]          `json:"clusters"`
}

// List is a bounded list.
type List[T any] struct {
	// Unknown is why the list could not be read. It is empty then, which says nothing,
	// and has no total.
	Unknown string `json:"unknown,omitempty"`
	// Total counts all items, of which Items has the first ones.
	Total *int `json:"total"`
	// Detail says more of the total, such as "1 page, 2 tickets".
	Detail string `json:"detail,omitempty"`
	Items  []T    `json:"items"`
	// Notes say what is not known beside the items.
	Notes []string `json:"notes,omitempty"`
}

// listOf bounds items. Unknown is that of what they were made of.
func listOf[T any](most int, unknown string, items []T) List[T] {
	if unknown != "" {
		return List[T]{Unknown: unknown, Items: []T{}}
	}
	total := len(items)
	if most > 0 && total > most {
		items = items[:most]
	}
	if items == nil {
		items = []T{}
	}
	return List[T]{Total: &total, Items: items}
}

// New makes the report.
func New(in Input) Report {
	open, ended := in.incidents()
	inForce, silencesEnded := in.silences()
	return Report{
		APIVersion: APIVersion, Kind: Kind, From: in.From.UTC(), To: in.To.UTC(), At: in.Now.UTC(),
		Namespace: in.Namespace, zone: in.Zone,
		Open: Open{
			Incidents: open, Rollouts: in.openRollouts(), Holds: in.holds(),
			Budgets: listOf(in.Most, in.Low.Unknown, in.Low.Items), Silences: inForce,
			Vetoes: in.vetoes(), Offline: in.offline(), Windows: in.windows(),
		},
		Shift: Shift{
			Incidents: ended, Rollouts: in.outcomes(), Decisions: in.decisions(),
			Budgets: listOf(in.Most, in.Lost.Unknown, in.Lost.Items), Silences: silencesEnded,
			Clusters: in.clustersBack(),
		},
	}
}

// isInShift tells whether something happened in the shift.
func (in Input) isInShift(at time.Time) bool {
	return !at.IsZero() && !at.Before(in.From) && !at.After(in.To)
}
