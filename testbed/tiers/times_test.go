// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// keep collects packages.
type keep []*Package

func (*keep) Begin(string) {}

func (k *keep) End(p *Package) { *k = append(*k, p) }

// TestTimes reads the events of tests that waited, keeps their times in a file and prints them.
func TestTimes(t *testing.T) {
	events := strings.NewReplacer("PKG", "github.com/bellwether-dev/bellwether/testbed/a").Replace(`
{"Action":"start","Package":"PKG"}
{"Action":"attr","Package":"PKG","Test":"TestA","Key":"waited","Value":"2.5 it runs"}
{"Action":"attr","Package":"PKG","Test":"TestA/sub","Key":"waited","Value":"4.0 it runs"}
{"Action":"attr","Package":"PKG","Test":"TestA","Key":"waited","Value":"nonsense"}
{"Action":"attr","Package":"PKG","Test":"TestA","Key":"other","Value":"9.0 it runs"}
{"Action":"pass","Package":"PKG","Test":"TestA/sub","Elapsed":5}
{"Action":"pass","Package":"PKG","Test":"TestA","Elapsed":8}
{"Action":"pass","Package":"PKG","Elapsed":9.5}
`)
	path := filepath.Join(t.TempDir(), "times.json")
	for range 2 { // what was known before does not add up
		times, err := LoadTimes(path)
		if err != nil {
			t.Fatal(err)
		}
		var ended keep
		if err := readEvents(strings.NewReader(strings.TrimSpace(events)), &ended, func(line string) {
			t.Errorf("no event: %s", line)
		}); err != nil {
			t.Fatal(err)
		}
		for _, p := range ended {
			times.Add(p, Cluster)
		}
		if err := times.Save(); err != nil {
			t.Fatal(err)
		}
	}
	times, err := LoadTimes(path)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := times.Print(&out, 10); err != nil {
		t.Fatal(err)
	}
	want := `SECONDS  PACKAGE@TIER
9.5      testbed/a@cluster
SECONDS  TEST
8.0      testbed/a TestA
SECONDS  TEST THAT WAITED: FOR WHAT
6.5      testbed/a TestA: it runs
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}
