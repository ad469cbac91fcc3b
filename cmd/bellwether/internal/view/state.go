// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// age is the time since a moment, as kubectl shows it.
func age(now time.Time, since metav1.Time) string {
	if since.IsZero() {
		return "-"
	}
	return duration.HumanDuration(max(now.Sub(since.Time), 0))
}

// clock is a moment as people say it: the time of today, or the date too.
func clock(now time.Time, at *metav1.Time) string {
	if at == nil || at.IsZero() {
		return "-"
	}
	t := at.In(now.Location())
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04")
}

func span(d time.Duration) string { return duration.HumanDuration(max(d, 0)) }

func condition(conditions []metav1.Condition, kind string) metav1.Condition {
	if found := meta.FindStatusCondition(conditions, kind); found != nil {
		return *found
	}
	return metav1.Condition{Status: metav1.ConditionUnknown}
}

// health is an object's state in a word, with its tone, from its kstatus
// conditions.
func health(conditions []metav1.Condition) Cell {
	ready := condition(conditions, v1alpha1.ConditionReady)
	switch {
	case meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionStalled):
		return Cell{condition(conditions, v1alpha1.ConditionStalled).Reason, Bad}
	case ready.Status == metav1.ConditionTrue:
		return Cell{"Ready", Good}
	case ready.Reason != "":
		return Cell{ready.Reason, Warn}
	default:
		return Cell{"Unknown", Warn}
	}
}

// headline is the message that tells the most about an object.
func headline(conditions []metav1.Condition) string {
	for _, kind := range []string{v1alpha1.ConditionStalled, v1alpha1.ConditionReady, v1alpha1.ConditionReconciling} {
		if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Message != "" {
			return oneLine(c.Message)
		}
	}
	return ""
}

func online(c *v1alpha1.FleetCluster) bool {
	return c != nil && meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionOnline)
}

// onlineCell says whether a cluster's agent reports.
func onlineCell(c *v1alpha1.FleetCluster) Cell {
	on := condition(c.Status.Conditions, v1alpha1.ConditionOnline)
	switch {
	case on.Status == metav1.ConditionTrue:
		return Cell{"yes", Good}
	case on.Reason == v1alpha1.ReasonNeverJoined:
		return Cell{"never joined", Warn}
	case on.Status == metav1.ConditionFalse:
		return Cell{"no", Bad}
	default:
		return Cell{"unknown", Warn}
	}
}

func phaseTone(p v1alpha1.RolloutPhase) Tone {
	switch p {
	case v1alpha1.RolloutSucceeded:
		return Good
	case v1alpha1.RolloutHalted:
		return Bad
	case v1alpha1.RolloutPaused, v1alpha1.RolloutAborted:
		return Warn
	case v1alpha1.RolloutSuperseded:
		return Dim
	default:
		return Plain
	}
}

func waveTone(p v1alpha1.WavePhase) Tone {
	switch p {
	case v1alpha1.WaveVerified:
		return Good
	case v1alpha1.WaveGated:
		return Warn
	case v1alpha1.WaveWaiting:
		return Dim
	default:
		return Strong
	}
}

func count[N int | int32](n N) string { return fmt.Sprint(n) }

// countCell shows a number that is worth a look when it is not zero.
func countCell(n int32, tone Tone) Cell {
	if n == 0 {
		return Cell{"0", Dim}
	}
	return Cell{count(n), tone}
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
