// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package holds_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// TestSummarize checks the status of windows at noon of a Saturday.
func TestSummarize(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	clusters := []holds.WindowCluster{{Name: "eu", Labels: map[string]string{"stage": "prod"},
		TimeZone: "Europe/Berlin"},
		{Name: "us", Labels: map[string]string{"stage": "prod"}, TimeZone: "America/New_York"},
		{Name: "lab", Labels: map[string]string{"stage": "lab"}, TimeZone: "Mars/Base"}}
	prod := &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "prod"}}
	for name, test := range map[string]struct {
		start, recurrence, zone string
		duration                time.Duration
		selector                *metav1.LabelSelector
		want                    string
	}{
		"in force": {"2026-11-21T10:00:00", "", "UTC", 4 * time.Hour, nil, "InForce until 21 14:00"},
		"in force, and again": {"2026-11-21T10:00:00", "FREQ=DAILY", "UTC", 4 * time.Hour, nil,
			"InForce until 21 14:00 next 22 10:00"},
		"later":         {"2026-11-21T22:00:00", "", "UTC", time.Hour, nil, "Scheduled next 21 22:00"},
		"in its zone":   {"2026-11-21T13:30:00", "", "Europe/Berlin", time.Hour, nil, "Scheduled next 21 12:30"},
		"over":          {"2026-11-20T22:00:00", "", "UTC", time.Hour, nil, "Over"},
		"without pause": {"2026-11-20T00:00:00", "FREQ=DAILY", "UTC", 24 * time.Hour, nil, "InForce"},
		"of each cluster": {"2026-11-21T12:30:00", "", "Cluster", time.Hour, prod,
			"InForce until 21 12:30 next 21 17:30"},
		"of no cluster": {"2026-11-21T12:30:00", "", "Cluster", time.Hour, &metav1.LabelSelector{
			MatchLabels: map[string]string{"stage": "none"}}, "Scheduled next 21 12:30"},
		"a cluster with a wrong zone": {"2026-11-21T22:00:00", "", "Cluster", time.Hour, nil, "Scheduled next 21 21:00: " +
			"clusters have a time zone that is not in the IANA time zone database: correct the annotation " +
			"bellwether.dev/time-zone of lab (\"Mars/Base\")"},
		"a wrong zone": {"2026-11-21T22:00:00", "", "Mars/Base", time.Hour, nil,
			": timeZone: no time zone \"Mars/Base\" in the IANA time zone database"},
		"a wrong selector": {"2026-11-21T22:00:00", "", "UTC", time.Hour, &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}},
			": selector: \"Like\" is not a valid label selector operator"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &v1alpha1.ChangeWindow{Spec: v1alpha1.ChangeWindowSpec{Type: v1alpha1.WindowAllow, Start: test.start,
				Duration: metav1.Duration{Duration: test.duration}, Recurrence: test.recurrence, TimeZone: test.zone,
				ClusterSelector: test.selector}}
			is := holds.SummarizeWindow(w, clusters, at)
			got := string(is.State)
			if !is.Until.IsZero() {
				got += " until " + is.Until.UTC().Format("2 15:04")
			}
			if !is.Next.IsZero() {
				got += " next " + is.Next.UTC().Format("2 15:04")
			}
			if is.Failure != nil {
				got += fmt.Sprintf(": %v", is.Failure)
			}
			if got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}
