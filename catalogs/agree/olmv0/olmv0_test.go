// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
)

func BenchmarkNext(b *testing.B) {
	for _, kind := range []string{"chain", "headrange", "allrange"} {
		b.Run(kind, func(b *testing.B) {
			var text strings.Builder
			for i := range 30 {
				fmt.Fprintf(&text, "1.%d.0", i)
				if i > 0 {
					fmt.Fprintf(&text, " replaces 1.%d.0", i-1)
				}
				if kind == "allrange" || (kind == "headrange" && i == 29) {
					fmt.Fprintf(&text, " range <1.%d.0", i)
				}
				fmt.Fprintln(&text)
			}
			p, err := catalogs.ReadPackage(catalogs.SingleFile("x", strings.NewReader(catalogtest.Graph("p", text.String()))), "p")
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			c, err := New(p, "stable")
			if err != nil {
				b.Fatal(err)
			}
			i := 0
			for b.Loop() {
				if _, err := c.Next(catalogs.Installed{Name: fmt.Sprintf("p.v1.%d.0", i%30)}); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}
