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

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// MaxRows limits a table of details, so that a large fleet needs at most two screens.
const MaxRows = 30

// NotReadyMessage returns the message of an install that is not ready; empty if it is ready.
func NotReadyMessage(in *v1alpha1.OperatorInstall) string {
	if Condition(in.Status.Conditions, v1alpha1.ConditionReady).Status == metav1.ConditionTrue {
		return ""
	}
	return Headline(in.Status.Conditions)
}

// WriteConditions writes a table of conditions.
func WriteConditions(out *strings.Builder, all []metav1.Condition, now time.Time, s Style) {
	if len(all) == 0 {
		return
	}
	t := &Table{Header: []string{"CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE"}, Wrap: true}
	for _, c := range all {
		t.Add(Cell{Text: c.Type}, severityTones[conditions.ConditionSeverity(c)].Cell(string(c.Status)),
			Cell{Text: Age(now, c.LastTransitionTime)}, Cell{Text: c.Reason}, Cell{Text: phrase.OneLine(c.Message)})
	}
	out.WriteByte('\n')
	out.WriteString(t.Render(s))
}

var severityTones = map[conditions.Severity]Tone{conditions.Good: Good, conditions.Warning: Warn,
	conditions.Bad: Bad, conditions.Inactive: Dim, conditions.Neutral: Plain}

// PhaseOf returns the phase of a rollout; Pending if the rollout has no phase yet.
func PhaseOf(r *v1alpha1.OperatorRollout) string {
	return string(cmp.Or(r.Status.Phase, v1alpha1.RolloutPending))
}

// InstallCells returns the cells of an install in a list: its desired version, its installed version, and its state.
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
	return []Cell{{Text: desired}, {Text: DashIfEmpty(hub.InstalledVersion(in))}, state}
}

// IsStalled reports whether the object is Stalled.
func IsStalled(conditions []metav1.Condition) bool {
	return meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionStalled)
}

// Fraction returns two counts in the form 1/3.
func Fraction(done, total int32) string { return fmt.Sprintf("%d/%d", done, total) }

// DefaultIfEmpty returns the text, or the fallback if the text is empty.
func DefaultIfEmpty(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

// Age returns the time since a moment in the format of kubectl; "-" if the moment is zero.
func Age(now time.Time, since metav1.Time) string {
	if since.IsZero() {
		return "-"
	}
	return duration.HumanDuration(max(now.Sub(since.Time), 0))
}

// Instant returns a moment in UTC, the time zone of all output.
func Instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// TimeOfDay returns the time of day of a moment in UTC.
func TimeOfDay(t time.Time) string { return t.UTC().Format("15:04:05Z") }

// Clock returns a moment in UTC: the time of day if it is today, otherwise the date and the time; "-" if at is nil.
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

// Span returns a duration in the format of kubectl.
func Span(d time.Duration) string { return duration.HumanDuration(max(d, 0)) }

// Condition returns a condition. If the condition is absent, it returns a condition with status Unknown.
func Condition(conditions []metav1.Condition, kind string) metav1.Condition {
	if found := meta.FindStatusCondition(conditions, kind); found != nil {
		return *found
	}
	return metav1.Condition{Status: metav1.ConditionUnknown}
}

// Health returns the state of an object in one word with its tone, from its kstatus conditions: Ready, or the reason
// why it is Stalled or not Ready.
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

// Headline returns the message of the most important condition that has a message; empty if there is none.
func Headline(conditions []metav1.Condition) string {
	for _, kind := range []string{v1alpha1.ConditionStalled, v1alpha1.ConditionReady, v1alpha1.ConditionReconciling} {
		if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Message != "" {
			return phrase.OneLine(c.Message)
		}
	}
	return ""
}

// OnlineCell returns whether the agent of a cluster reports.
func OnlineCell(c *v1alpha1.FleetCluster) Cell {
	online := Condition(c.Status.Conditions, v1alpha1.ConditionOnline)
	switch {
	case online.Status == metav1.ConditionTrue:
		return Good.Cell("yes")
	case online.Reason == v1alpha1.ReasonNeverJoined:
		return Warn.Cell("never joined")
	case online.Status == metav1.ConditionFalse:
		return Bad.Cell("no")
	default:
		return Warn.Cell("unknown")
	}
}

// PhaseTone returns the tone in which a phase is shown.
func PhaseTone(p v1alpha1.RolloutPhase) Tone { return severityTones[conditions.RolloutSeverity(p)] }

// WaveTone returns the tone in which a wave's phase is shown. An active phase is shown in Strong.
func WaveTone(p v1alpha1.WavePhase) Tone {
	if severity := conditions.WaveSeverity(p); severity != conditions.Neutral {
		return severityTones[severity]
	}
	return Strong
}

// Count returns a number as text.
func Count[N int | int32](n N) string { return fmt.Sprint(n) }

// CountCell returns a number in a tone that marks it for attention if it is not zero.
func CountCell(n int32, tone Tone) Cell {
	if n == 0 {
		return Dim.Cell("0")
	}
	return tone.Cell(Count(n))
}
