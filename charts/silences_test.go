// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"testing"
)

// TestLongSilencesAreRefused evaluates the policy for silences of different lengths. A silence
// starts at the time in the object, or when the API server creates it.
func TestLongSilencesAreRefused(t *testing.T) {
	const refused = "a silence may last 24h at most: set spec.end to an earlier time, or raise hub.paging.maxSilence " +
		"of the hub's chart"
	silence := func(start, end string) object {
		spec := object{"end": end}
		if start != "" {
			spec["start"] = start
		}
		return object{"metadata": object{"creationTimestamp": "2026-11-28T12:00:00Z"}, "spec": spec}
	}
	const hub = "system:serviceaccount:bellwether-system:bellwether-hub"
	evaluator, policy := newEvaluator(t), policies(t)["bellwether-silences"]
	long := silence("", "2026-11-30T12:00:00Z")
	by := func(user string, old, after object, operation string) object {
		return object{"object": after, "oldObject": old, "request": object{"operation": operation,
			"userInfo": object{"username": user}}}
	}
	for name, test := range map[string]struct {
		operation  string
		old, after object
		want       string
	}{
		"a day":                        {"CREATE", nil, silence("", "2026-11-29T12:00:00Z"), ""},
		"a day and a second":           {"CREATE", nil, silence("", "2026-11-29T12:00:01Z"), refused},
		"90 hours":                     {"CREATE", nil, silence("", "2026-12-02T06:00:00Z"), refused},
		"a day in a week":              {"CREATE", nil, silence("2026-12-05T12:00:00Z", "2026-12-06T12:00:00Z"), ""},
		"two days in a week":           {"CREATE", nil, silence("2026-12-05T12:00:00Z", "2026-12-07T12:00:00Z"), refused},
		"two days, since yesterday":    {"CREATE", nil, silence("2026-11-27T12:00:00Z", "2026-11-29T12:00:00Z"), refused},
		"a day, since an hour":         {"CREATE", nil, silence("2026-11-28T11:00:00Z", "2026-11-29T11:00:00Z"), ""},
		"in another time zone":         {"CREATE", nil, silence("", "2026-11-29T13:00:00+01:00"), ""},
		"one is made longer":           {"UPDATE", silence("", "2026-11-28T13:00:00Z"), long, refused},
		"one that is long is ended":    {"UPDATE", long, silence("", "2026-11-28T12:30:00Z"), ""},
		"one that is long stays":       {"UPDATE", long, long, ""},
		"one that is long gets longer": {"UPDATE", long, silence("", "2026-11-30T13:00:00Z"), refused},
	} {
		if got := evaluator.denies(t, policy, by("sre", test.old, test.after, test.operation)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	if got := evaluator.denies(t, policy, by(hub, nil, long, "CREATE")); got != "" {
		t.Errorf("the hub has a limit of its own, and is refused: %s", got)
	}
}
