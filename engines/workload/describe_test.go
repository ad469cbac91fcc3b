// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/engines/workload"
)

func TestDescribe(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, test := range map[string]struct{ reason, message, want string }{
		"both":                 {"Error", "cannot\nparse  flag", "Error: cannot parse flag"},
		"a reason alone":       {"Error", " ", "Error"},
		"a message alone":      {"", "cannot parse flag", "cannot parse flag"},
		"neither":              {"", "", "no message"},
		"a log of one message": {"Error", long, "Error: " + long[:199] + "…"},
	} {
		if got := workload.FormatReason(test.reason, test.message); got != test.want {
			t.Errorf("%s: got  %s\nwant %s", name, got, test.want)
		}
	}
}
