// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package holds_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// FuzzDecode checks that the hub can write any agent's report to a status, and that no report is ignored.
func FuzzDecode(f *testing.F) {
	f.Add(`{"reason":"audit","operators":["team/echo"]}`)
	f.Add(`{"reason":"","operators":null,"until":"x"}`)
	f.Add(`[`)
	f.Add(`{"operators":[` + strings.Repeat(`"",`, 9_999) + `""]}`)
	f.Fuzz(func(t *testing.T, report string) {
		untrustedtest.Bound(t, len(report), 1<<20, 1000, func() {
			v := holds.DecodeVeto(report)
			if (v == nil) != (report == "") {
				t.Fatalf("%q is read as %v", report, v)
			}
			if v == nil {
				return
			}
			if n := utf8.RuneCountInString(v.Reason); n == 0 || n > 256 || len(v.Operators) > 20 {
				t.Errorf("the reason has %d characters, and there are %d operators", n, len(v.Operators))
			}
			again := holds.DecodeVeto(holds.EncodeVeto(v))
			if again.Reason != v.Reason || len(again.Operators) != len(v.Operators) {
				t.Errorf("%+v is read again as %+v", v, again)
			}
		})
	})
}
