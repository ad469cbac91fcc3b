// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import "slices"

// HistorySuffix is the suffix of the view that has all rows of a table, and not only those of the time of the query.
const HistorySuffix = "_history"

// ObservationsView is the name of the view with the times in which each source was observed.
const ObservationsView = "observations"

// View is what users query: the views are the contract, and the tables of the database are not.
type View struct {
	Name    string   `json:"name"`
	Doc     string   `json:"doc"`
	Columns []Column `json:"columns"`
}

// Views returns all views.
func Views() []View {
	validFrom := Column{Name: "valid_from", Type: Text, Doc: "when the hub observed it first"}
	validTo := Column{Name: "valid_to", Type: Text,
		Doc: "when the hub observed that it was no longer so; NULL if it was still so"}
	observedUntil := Column{Name: "observed_until", Type: Text, Doc: "until when it was observed: the time of the " +
		"query, the end of the row, or earlier if the hub did not run or the cluster did not report"}
	var all []View
	for _, t := range Tables() {
		all = append(all,
			View{t.Name, "each row is " + t.Doc + ", as it was at the time of the query",
				slices.Concat(t.Key, t.Values, []Column{validFrom, observedUntil})},
			View{t.Name + HistorySuffix, "each row is " + t.Doc + ", for as long as nothing changed",
				slices.Concat(t.Key, t.Values, []Column{validFrom, validTo, observedUntil})})
	}
	return append(all, View{ObservationsView, "each row is a time in which the hub observed the fleet without a gap",
		[]Column{
			{Name: "source", Type: Text, Doc: "what was observed: hub"},
			{Name: "began", Type: Text, Doc: "when it began"},
			{Name: "until", Type: Text, Doc: "when it ended, or the time of the query"},
		}})
}
