// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package phrase

import (
	"testing"
	"time"
)

func TestTimes(t *testing.T) {
	noon := Time(time.Date(2026, 11, 21, 13, 0, 0, 0, time.FixedZone("CET", 3600)))
	for name, test := range map[string]struct{ message, want string }{
		"none":         {"a message", "a message"},
		"empty":        {"", ""},
		"a word":       {"since " + noon + " it waits", "since 12:00Z it waits"},
		"the end":      {"it waits since " + noon, "it waits since 12:00Z"},
		"punctuation":  {"it waits (since " + noon + "); until " + noon + ".", "it waits (since 12:00Z); until 12:00Z."},
		"a command":    {"run `silence --until=" + noon + "`", "run `silence --until=" + noon + "`"},
		"no such time": {"at 2026-13-21T12:00:00Z", "at 2026-13-21T12:00:00Z"},
		"two spaces":   {"a  " + noon + "  b", "a  12:00Z  b"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Times(test.message, func(at time.Time) string { return at.Format("15:04Z") })
			if got != test.want {
				t.Errorf("it is %q, want %q", got, test.want)
			}
		})
	}
}
