// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/phrase"
)

// MaxRows keeps details of a large fleet on a screen or two.
const MaxRows = 30

// NotReadyMessage leaves out what is of no interest once all is well.
func NotReadyMessage(in *v1alpha1.OperatorInstall) string {
	if Condition(in.Status.Conditions, v1alpha1.ConditionReady).Status == metav1.ConditionTrue {
		return ""
	}
	return Headline(in.Status.Conditions)
}

// WriteConditions writes a table of conditions.
func WriteConditions(out *strings.Builder, conditions []metav1.Condition, now time.Time, s Style) {
	if len(conditions) == 0 {
		return
	}
	t := &Table{Header: []string{"CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE"}, Wrap: true}
	for _, c := range conditions {
		t.Add(Cell{Text: c.Type}, conditionTone(c).Cell(string(c.Status)), Cell{Text: Age(now, c.LastTransitionTime)},
			Cell{Text: c.Reason}, Cell{Text: phrase.OneLine(c.Message)})
	}
	out.WriteByte('\n')
	out.WriteString(t.Render(s))
}

func conditionTone(c metav1.Condition) Tone {
	good := metav1.ConditionTrue
	if v1alpha1.ConditionIsBadWhenTrue(c.Type) {
		good = metav1.ConditionFalse
	}
	switch {
	case c.Type == v1alpha1.ConditionReconciling:
		return Plain
	case c.Reason == v1alpha1.ReasonPowerUnknown: // that a cluster hibernates is not believed, nor that it runs
		return Warn
	case c.Status == good:
		return Good
	case c.Type == v1alpha1.ConditionStalled, c.Type == v1alpha1.ConditionReconcileFailing:
		return Bad
	default:
		return Warn
	}
}

// PhaseOf returns a rollout's phase; Pending where it has none yet.
func PhaseOf(r *v1alpha1.OperatorRollout) string {
	return string(cmp.Or(r.Status.Phase, v1alpha1.RolloutPending))
}

// InstallCells are an install's state for a list: its version and why it is
// not ready.
func InstallCells(in *v1alpha1.OperatorInstall) []Cell {
	desired := "-"
	if in.Spec.Admission != nil {
		desired = in.Spec.Admission.Release.VersionText()
	}
	state := Health(in.Status.Conditions)
	if in.DeletionTimestamp != nil {
		state = Warn.Cell("Removing")
	}
	if in.Spec.Admission == nil && len(in.Status.Conditions) == 0 {
		state = Dim.Cell(v1alpha1.ReasonNotAdmitted)
	}
	return []Cell{{Text: desired}, {Text: OrDash(hub.InstalledVersion(in))}, state}
}

// Stalled reports whether the object is Stalled.
func Stalled(conditions []metav1.Condition) bool {
	return meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionStalled)
}

// Fraction returns two counts as in 1/3.
func Fraction(done, of int32) string { return fmt.Sprintf("%d/%d", done, of) }

// OrElse returns the text, or the other one where it is empty.
func OrElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// Age is the time since a moment, as kubectl shows it.
func Age(now time.Time, since metav1.Time) string {
	if since.IsZero() {
		return "-"
	}
	return duration.HumanDuration(max(now.Sub(since.Time), 0))
}

// Instant is a moment in the one zone that all commands print, which it names.
func Instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// TimeOfDay is a moment of today in the same zone.
func TimeOfDay(t time.Time) string { return t.UTC().Format("15:04:05Z") }

// Clock is a moment in the same zone as people say it: the time of today, or the date too.
func Clock(now time.Time, at *metav1.Time) string {
	if at == nil || at.IsZero() {
		return "-"
	}
	t, today := at.UTC(), now.UTC()
	if t.YearDay() == today.YearDay() && t.Year() == today.Year() {
		return TimeOfDay(t)
	}
	return t.Format("2006-01-02 15:04Z")
}

// Span returns a duration as kubectl shows it.
func Span(d time.Duration) string { return duration.HumanDuration(max(d, 0)) }

// Condition returns a condition; Unknown where it is absent.
func Condition(conditions []metav1.Condition, kind string) metav1.Condition {
	if found := meta.FindStatusCondition(conditions, kind); found != nil {
		return *found
	}
	return metav1.Condition{Status: metav1.ConditionUnknown}
}

// Health is an object's state in a word, with its tone, from its kstatus
// conditions.
func Health(conditions []metav1.Condition) Cell {
	ready := Condition(conditions, v1alpha1.ConditionReady)
	switch {
	case meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionStalled):
		return Bad.Cell(Condition(conditions, v1alpha1.ConditionStalled).Reason)
	case ready.Status == metav1.ConditionTrue:
		return Good.Cell("Ready")
	case ready.Reason != "":
		return Warn.Cell(ready.Reason)
	default:
		return Warn.Cell("Unknown")
	}
}

// Headline is the message that tells the most about an object.
func Headline(conditions []metav1.Condition) string {
	for _, kind := range []string{v1alpha1.ConditionStalled, v1alpha1.ConditionReady, v1alpha1.ConditionReconciling} {
		if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Message != "" {
			return phrase.OneLine(c.Message)
		}
	}
	return ""
}

// OnlineCell says whether a cluster's agent reports.
func OnlineCell(c *v1alpha1.FleetCluster) Cell {
	on := Condition(c.Status.Conditions, v1alpha1.ConditionOnline)
	switch {
	case on.Status == metav1.ConditionTrue:
		return Good.Cell("yes")
	case on.Reason == v1alpha1.ReasonNeverJoined:
		return Warn.Cell("never joined")
	case on.Status == metav1.ConditionFalse:
		return Bad.Cell("no")
	default:
		return Warn.Cell("unknown")
	}
}

// PhaseTone returns the tone in which a phase is shown.
func PhaseTone(p v1alpha1.RolloutPhase) Tone {
	switch p {
	case v1alpha1.RolloutSucceeded:
		return Good
	case v1alpha1.RolloutHalted:
		return Bad
	case v1alpha1.RolloutPaused, v1alpha1.RolloutAborted, v1alpha1.RolloutRolledBack:
		return Warn
	case v1alpha1.RolloutSuperseded:
		return Dim
	default:
		return Plain
	}
}

// WaveTone returns the tone in which a wave's phase is shown.
func WaveTone(p v1alpha1.WavePhase) Tone {
	switch p {
	case v1alpha1.WaveVerified:
		return Good
	case v1alpha1.WaveGated:
		return Warn
	case v1alpha1.WaveWaiting, v1alpha1.WaveSkipped:
		return Dim
	default:
		return Strong
	}
}

// Count returns a number as text.
func Count[N int | int32](n N) string { return fmt.Sprint(n) }

// CountCell shows a number that is worth a look when it is not zero.
func CountCell(n int32, tone Tone) Cell {
	if n == 0 {
		return Dim.Cell("0")
	}
	return tone.Cell(Count(n))
}
