// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/explain"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// BuildRolloutTable returns the table of rollouts, in the order of the list. If the table shows
// namespaces, it has fewer columns.
func BuildRolloutTable(list []v1alpha1.OperatorRollout, fleet *explain.FleetMarks, l term.Listing) *term.Table {
	t := &term.Table{Header: []string{"NAME", "VERSION", "PHASE", "UPDATED"}}
	if l.Wide || !l.Namespaces {
		t.Header = append(t.Header, "FAILED", "AGE")
	}
	if l.Wide {
		t.Header = append(t.Header, "DEFERRED", "WAVE", "OPERATOR")
	}
	t.Header = append(t.Header, "MARKS")
	if l.Wide {
		t.Header = append(t.Header, "MESSAGE")
	}
	for i := range list {
		t.Add(l.Row(list[i].Namespace, buildRolloutRow(&list[i], fleet, l))...)
	}
	return l.Table(t)
}

// buildRolloutRow returns the row of a rollout, with the columns of Rollouts.
func buildRolloutRow(r *v1alpha1.OperatorRollout, fleet *explain.FleetMarks, l term.Listing) []term.Cell {
	n := r.Status.Clusters
	row := []term.Cell{{Text: r.Name}, {Text: r.Spec.Release.VersionText()},
		term.PhaseTone(r.Status.Phase).Cell(term.PhaseOf(r)), {Text: term.Fraction(n.Succeeded, n.Total)}}
	if l.Wide || !l.Namespaces {
		row = append(row, term.CountCell(n.Failed, term.Bad), term.Cell{Text: term.Age(l.Now, r.CreationTimestamp)})
	}
	if l.Wide {
		row = append(row, term.CountCell(n.Deferred, term.Warn),
			term.Cell{Text: term.DashIfEmpty(r.Status.CurrentWave)}, term.Cell{Text: r.Spec.Operator.Name})
	}
	row = append(row, term.MarksCell(fleet.Rollout(r)))
	if l.Wide {
		row = append(row, term.Cell{Text: phrase.OneLine(r.Status.Message)})
	}
	return row
}

// BuildHistoryTable returns the table of an operator's rollouts, the newest first. A rollout that has ended is shown
// with the counts that the ManagedOperator recorded, because the status of the rollout continues to count the current
// state of its clusters.
func BuildHistoryTable(list []v1alpha1.OperatorRollout, recorded []v1alpha1.RolloutOutcome,
	l term.Listing) *term.Table {
	t := &term.Table{Header: []string{"ROLLOUT", "VERSION", "PHASE", "UPDATED", "STARTED", "TOOK"}, Wrap: true}
	if l.Wide {
		t.Header = append(t.Header, "REVISION", "FAILED")
	}
	t.Header = append(t.Header, "WHY")
	newest := slices.Clone(list)
	slices.SortFunc(newest, func(a, b v1alpha1.OperatorRollout) int {
		return cmp.Compare(b.Spec.Revision, a.Spec.Revision)
	})
	for i := range newest {
		r := &newest[i]
		n := readCounts(r, recorded)
		row := []term.Cell{{Text: r.Name}, {Text: r.Spec.Release.VersionText()},
			term.PhaseTone(r.Status.Phase).Cell(term.PhaseOf(r)), {Text: term.Fraction(n.Succeeded, n.Total)},
			{Text: term.Clock(l.Now, r.Status.StartedAt)}, {Text: formatDuration(r, l.Now)}}
		if l.Wide {
			row = append(row, term.Cell{Text: fmt.Sprint(r.Spec.Revision)}, term.CountCell(n.Failed, term.Bad))
		}
		t.Add(append(row, term.Cell{Text: formatEndReason(r)})...)
	}
	return t
}

// readCounts returns the cluster counts of a rollout. If the rollout has ended, these are the
// recorded counts, if there are any.
func readCounts(r *v1alpha1.OperatorRollout, recorded []v1alpha1.RolloutOutcome) v1alpha1.WaveCounts {
	i := slices.IndexFunc(recorded, func(o v1alpha1.RolloutOutcome) bool {
		return o.Name == r.Name && o.Phase == r.Status.Phase && o.EndedAt.Equal(r.Status.EndedAt)
	})
	if i < 0 || !r.Status.Phase.Ended() {
		return r.Status.Clusters
	}
	return recorded[i].Clusters
}

// formatDuration returns how long a rollout took, or has taken until now; "-" if it has not started.
func formatDuration(r *v1alpha1.OperatorRollout, now time.Time) string {
	switch {
	case r.Status.StartedAt == nil:
		return "-"
	case r.Status.EndedAt == nil:
		return term.Span(now.Sub(r.Status.StartedAt.Time)) + " so far"
	default:
		return term.Span(r.Status.EndedAt.Sub(r.Status.StartedAt.Time))
	}
}

// formatEndReason returns why a rollout was aborted, paused or failed; empty if it succeeded.
func formatEndReason(r *v1alpha1.OperatorRollout) string {
	switch {
	case r.Spec.Abort != nil:
		return phrase.OneLine(r.Spec.Abort.Reason)
	case r.Spec.Paused && !r.Status.Phase.Ended():
		return phrase.OneLine(r.Spec.PausedReason)
	case r.Status.Phase == v1alpha1.RolloutSucceeded:
		return ""
	default:
		return phrase.OneLine(r.Status.Message)
	}
}
