// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

const goodWindow = `
apiVersion: bellwether.dev/v1alpha1
kind: ChangeWindow
metadata: {name: valid}
spec: {type: Allow, start: "2026-01-05T22:00:00", duration: 6h, recurrence: "FREQ=WEEKLY;BYDAY=MO,+1TU",` +
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
		"time zone":             {"spec.timeZone", `"+02:00"`, "timeZone must be a name"},
	} {
		t.Run(name, func(t *testing.T) {
			object := parse(t, goodWindow, namespace)
			object.SetNamespace("")
			set(t, object, test.path, test.value)
			expect(t, h.Create(t.Context(), object, client.DryRunAll), test.want)
		})
	}
}
