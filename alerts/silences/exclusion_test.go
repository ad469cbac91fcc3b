// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package silences_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/alerts/silences"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

func excluding(s *v1alpha1.AlertSilenceSpec) { s.ExcludeFromBudgets = true }

// TestExclusion checks when an AlertSilence that was created at noon
// excludes time from error budgets, with and without an Alertmanager.
func TestExclusion(t *testing.T) {
	early := func(s *v1alpha1.AlertSilenceSpec) { s.Start = &metav1.Time{Time: noon.Add(-time.Hour)} }
	for name, test := range map[string]struct {
		silence v1alpha1.AlertSilence
		after   time.Duration
		want    string
	}{
		"in force": {silence("tools", "s", operators("echo"), excluding), time.Minute,
			"True Excluding: from 2026-11-23T12:00:00Z until 2026-11-23T13:00:00Z"},
		"it begins before it is made": {silence("tools", "s", clusters("a"), excluding, early), time.Minute,
			"True Excluding: from 2026-11-23T12:00:00Z until"},
		"later": {silence("tools", "s", operators("echo"), excluding, func(s *v1alpha1.AlertSilenceSpec) {
			s.Start = &metav1.Time{Time: noon.Add(30 * time.Minute)}
		}), time.Minute, "False Scheduled: from 2026-11-23T12:30:00Z on"},
		"over": {silence("tools", "s", operators("echo"), excluding), time.Hour,
			"False Ended: no time after 2026-11-23T13:00:00Z"},
		"too long": {silence("tools", "s", operators("echo"), excluding, func(s *v1alpha1.AlertSilenceSpec) {
			s.End = metav1.NewTime(noon.Add(25 * time.Hour))
		}), time.Minute, "False EndTooLate: no time is excluded from error budgets: a silence may last 24h"},
		"not made for it": {silence("tools", "s", operators("echo")), time.Minute, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := newFixture(t).in
			in.Now = noon.Add(test.after)
			for of, status := range map[string]v1alpha1.AlertSilenceStatus{
				"with Alertmanager": silences.Report(in, &test.silence, silences.Problem{}),
				"without": silences.Unreachable(in, &test.silence, silences.Problem{
					Reason: v1alpha1.ReasonNoAlertmanager, Message: "the hub knows no Alertmanager"}),
			} {
				got := conditions.Get(status.Conditions, v1alpha1.ConditionBudgetsExcluded)
				state, message, _ := strings.Cut(test.want, ": ")
				if strings.TrimSpace(fmt.Sprint(got.Status, " ", got.Reason)) != state ||
					!strings.Contains(got.Message, message) {
					t.Errorf("%s it is %s %s (%s), want %s", of, got.Status, got.Reason, got.Message, test.want)
				}
			}
		})
	}
}

// TestExcludes checks for which operators on which clusters an AlertSilence excludes time.
func TestExcludes(t *testing.T) {
	fleet := []v1alpha1.FleetCluster{
		{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"site": "eu"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "b"}}}
	installs := []v1alpha1.OperatorInstall{install("tools", "echo", "a"), install("tools", "echo", "b"),
		install("tools", "db", "a"), install("payments", "echo", "a")}
	over := silence("tools", "s", operators("echo"))
	over.Spec.End = metav1.NewTime(noon)
	deleted := silence("tools", "s", operators("echo"))
	deleted.DeletionTimestamp = &metav1.Time{Time: noon}
	for name, test := range map[string]struct {
		silence v1alpha1.AlertSilence
		state   metav1.ConditionStatus
		want    []string
	}{
		"an operator": {silence("tools", "s", operators("echo")), metav1.ConditionTrue,
			[]string{"tools/echo", "a tools/echo", "b tools/echo"}},
		"an operator on a cluster": {silence("tools", "s", operators("echo"), clusters("b")), metav1.ConditionTrue,
			[]string{"b tools/echo"}},
		"a namespace on a cluster": {silence("tools", "s", clusters("a")), metav1.ConditionTrue,
			[]string{"a tools/db", "a tools/echo"}},
		"clusters by their labels": {silence("tools", "s", operators("echo"), func(s *v1alpha1.AlertSilenceSpec) {
			s.Clusters = &v1alpha1.SilencedClusters{Selector: &metav1.LabelSelector{
				MatchLabels: map[string]string{"site": "eu"}}}
		}), metav1.ConditionTrue, []string{"a tools/echo"}},
		"everything on a cluster": {silence(hub, "s", wholeFleet, clusters("a")), metav1.ConditionTrue,
			[]string{"a payments/echo", "a tools/db", "a tools/echo"}},
		"not in force":                  {silence("tools", "s", operators("echo")), metav1.ConditionFalse, nil},
		"over meanwhile":                {over, metav1.ConditionTrue, nil},
		"being deleted":                 {deleted, metav1.ConditionTrue, nil},
		"an operator that runs nowhere": {silence("tools", "s", operators("other")), metav1.ConditionTrue, nil},
	} {
		t.Run(name, func(t *testing.T) {
			test.silence.Status.Conditions = []metav1.Condition{
				{Type: v1alpha1.ConditionBudgetsExcluded, Status: test.state}}
			var got []string
			twice := append(slices.Clone(installs), installs...)
			for _, e := range silences.Excludes(&test.silence, noon, fleet, twice) {
				got = append(got, strings.TrimSpace(e.Cluster+" "+e.Operator.String()))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("excluded (-want +got):\n%s", diff)
			}
		})
	}
}
