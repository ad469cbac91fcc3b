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
	"github.com/bellwether-dev/bellwether/explain/marks"
	"github.com/bellwether-dev/bellwether/phrase"
)

// Rollouts is the table of rollouts, as given.
func Rollouts(list []v1alpha1.OperatorRollout, known *marks.Fleet, l term.Listing) *term.Table {
	t := &term.Table{Header: []string{"NAME", "OPERATOR", "VERSION", "PHASE", "MARKS", "WAVE", "CLUSTERS", "UPDATED",
		"FAILED", "DEFERRED", "AGE"}}
	if l.Wide {
		t.Header = append(t.Header, "MESSAGE")
	}
	for i := range list {
		r := &list[i]
		n := r.Status.Clusters
		row := []term.Cell{{Text: r.Name}, {Text: r.Spec.Operator.Name}, {Text: r.Spec.Release.Version},
			term.PhaseTone(r.Status.Phase).Cell(term.PhaseOf(r)), term.MarksCell(known.Rollout(r)),
			{Text: term.OrDash(r.Status.CurrentWave)},
			{Text: term.Count(n.Total)},
			{Text: term.Count(n.Succeeded)}, term.CountCell(n.Failed, term.Bad), term.CountCell(n.Deferred, term.Warn),
			{Text: term.Age(l.Now, r.CreationTimestamp)}}
		if l.Wide {
			row = append(row, term.Cell{Text: phrase.OneLine(r.Status.Message)})
		}
		t.Add(l.Row(r.Namespace, row)...)
	}
	return l.Table(t)
}

// History is the table of an operator's rollouts, the newest first.
func History(list []v1alpha1.OperatorRollout, l term.Listing) *term.Table {
	t := &term.Table{Header: []string{"REVISION", "ROLLOUT", "VERSION", "PHASE", "CLUSTERS", "UPDATED", "FAILED",
		"STARTED",
		"TOOK", "WHY"}}
	newest := slices.Clone(list)
	slices.SortFunc(newest, func(a, b v1alpha1.OperatorRollout) int {
		return cmp.Compare(b.Spec.Revision,
			a.Spec.Revision)
	})
	for i := range newest {
		r := &newest[i]
		n := r.Status.Clusters
		t.Add(term.Cell{Text: fmt.Sprint(r.Spec.Revision)}, term.Cell{Text: r.Name},
			term.Cell{Text: r.Spec.Release.Version},
			term.PhaseTone(r.Status.Phase).Cell(term.PhaseOf(r)), term.Cell{Text: term.Count(n.Total)},
			term.Cell{Text: term.Count(n.Succeeded)},
			term.CountCell(n.Failed, term.Bad), term.Cell{Text: term.Clock(l.Now, r.Status.StartedAt)},
			term.Cell{Text: took(r, l.Now)},
			term.Cell{Text: whyEnded(r)})
	}
	return t
}

func took(r *v1alpha1.OperatorRollout, now time.Time) string {
	switch {
	case r.Status.StartedAt == nil:
		return "-"
	case r.Status.EndedAt == nil:
		return term.Span(now.Sub(r.Status.StartedAt.Time)) + " so far"
	default:
		return term.Span(r.Status.EndedAt.Sub(r.Status.StartedAt.Time))
	}
}

func whyEnded(r *v1alpha1.OperatorRollout) string {
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
