// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

const goodWindow = `
apiVersion: bellwether.dev/v1alpha1
kind: ChangeWindow
metadata: {name: valid}
spec: {type: Allow, start: "2026-01-05T22:00:00", duration: 6h, recurrence: "FREQ=WEEKLY;BYDAY=MO,TU",` +
	` timeZone: Europe/Berlin}`

func TestChangeWindowValidation(t *testing.T) {
	h := start(t)
	namespace := testenv.Namespace(t, h.cluster.RESTConfig(), "windows")
	for name, test := range map[string]struct {
		path, value, want string
	}{
		"good":                  {"spec.reason", "nights", ""},
		"selectors":             {"spec.clusterSelector", "{matchLabels: {stage: prod}}", ""},
		"once":                  {"spec.recurrence", `""`, ""},
		"until":                 {"spec.recurrence", "FREQ=DAILY;UNTIL=20261231T235959", ""},
		"time zone of clusters": {"spec.timeZone", "Cluster", ""},
		"type":                  {"spec.type", "Maybe", "Unsupported value"},
		"start with a zone":     {"spec.start", `"2026-01-05T22:00Z"`, "without a time zone"},
		"start in words":        {"spec.start", "tomorrow", "start must be a date and time"},
		"duration too short":    {"spec.duration", "10s", "duration must be between 1m and 8784h"},
		"duration too long":     {"spec.duration", "9000h", "duration must be between 1m and 8784h"},
		"each second":           {"spec.recurrence", "FREQ=SECONDLY", "begins with FREQ=DAILY"},
		"not a rule":            {"spec.recurrence", "every Monday", "must be an RRULE"},
		"hours":                 {"spec.recurrence", "FREQ=DAILY;BYHOUR=1", "leave BYHOUR"},
		"a day that is not":     {"spec.start", `"2026-02-30T22:00:00"`, "start must be a date and time that exists"},
		"numbers of days":       {"spec.recurrence", "FREQ=WEEKLY;BYDAY=+1TU", "BYDAY without numbers"},
		"twice":                 {"spec.recurrence", "FREQ=DAILY;COUNT=1;COUNT=2", "can be there once"},
		"count and until":       {"spec.recurrence", "FREQ=DAILY;COUNT=1;UNTIL=20261231T235959", "exclude each other"},
		"time zone":             {"spec.timeZone", `"+02:00"`, "timeZone must be a name"},
		"unknown time zone":     {"spec.timeZone", "Mars/Base", "timeZone must be in the IANA time zone database"},
	} {
		t.Run(name, func(t *testing.T) {
			object := parse(t, goodWindow, namespace)
			object.SetNamespace("")
			set(t, object, test.path, test.value)
			expect(t, h.Create(t.Context(), object, client.DryRunAll), test.want)
		})
	}
}

// TestChangeWindowStatus has windows that are over, and one that cannot be evaluated on a cluster.
func TestChangeWindowStatus(t *testing.T) {
	h := start(t)
	window := func(name, zone string) *v1alpha1.ChangeWindow {
		return &v1alpha1.ChangeWindow{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ChangeWindowSpec{
			Type: v1alpha1.WindowAllow, Start: "2026-01-05T22:00:00", Duration: metav1.Duration{Duration: time.Hour},
			TimeZone:        zone,
			ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"windows": "status"}}}}
	}
	cluster := fleetCluster("zoned")
	cluster.Labels = map[string]string{"windows": "status"}
	cluster.Annotations = map[string]string{v1alpha1.AnnotationTimeZone: "Mars/Base"}
	must(t, h.Create(t.Context(), cluster))
	over, ofClusters := window("over", "Europe/Berlin"), window("of-clusters", v1alpha1.TimeZoneOfCluster)
	for _, w := range []*v1alpha1.ChangeWindow{over, ofClusters} {
		must(t, h.Create(t.Context(), w))
		t.Cleanup(func() { must(t, h.Delete(context.Background(), w)) })
	}
	h.reaches(t, over, "True Succeeded")
	if over.Status.State != v1alpha1.WindowOver {
		t.Errorf("the window is %s, want Over", over.Status.State)
	}
	h.reaches(t, ofClusters, "Stalled InvalidSpec", "bellwether.dev/time-zone of zoned (\"Mars/Base\")")
	h.change(t, cluster, func() { cluster.Annotations[v1alpha1.AnnotationTimeZone] = "Europe/Berlin" })
	h.reaches(t, ofClusters, "True Succeeded")
}
