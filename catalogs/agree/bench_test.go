// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agree_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/catalogs/agree"
)

// BenchmarkCheck checks a package of 30 versions in 3 channels: 93 routes, and one run of the resolver for each.
func BenchmarkCheck(b *testing.B) {
	var text strings.Builder
	for i, channel := range []string{"candidate", "fast", "stable"} {
		for j := range 30 - 2*i {
			fmt.Fprintf(&text, "%s: 1.%d.0", channel, j)
			if j > 0 {
				fmt.Fprintf(&text, " replaces 1.%d.0 range >=1.%d.0_<1.%d.0", j-1, j-1, j)
			}
			text.WriteByte('\n')
		}
	}
	p := parse(text.String())
	b.ReportAllocs()
	for b.Loop() {
		report, err := agree.Check(p)
		if err != nil {
			b.Fatal(err)
		}
		if err := report.Strict(); err != nil {
			b.Fatal(err)
		}
	}
}
