// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// The test sends the ticks one by one, so that it can check the output of each tick.
func TestProgress(t *testing.T) {
	start := time.Date(2026, time.November, 21, 0, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	p := newProgress(&out, 40, "reading the catalog", start)
	ticks := make(chan time.Time)
	go p.run(ticks)
	var got []string
	tick := func(after time.Duration) {
		ticks <- start.Add(after)
		ticks <- start // The previous tick is complete; this tick shows nothing.
		got = append(got, out.String())
		out.Reset()
	}
	tick(time.Second)
	tick(2 * time.Second)
	p.Doing("compiling")
	p.Count(120, 9000, "versions")
	tick(65 * time.Second)
	p.Print(func() { out.WriteString("note\n") })
	tick(66 * time.Second)
	p.Doing("checking the upgrade paths of all packages")
	tick(67 * time.Second)
	p.Stop()
	p.Stop()
	got = append(got, out.String())
	want := []string{
		"",
		clearLine + "reading the catalog (2s)",
		clearLine + "compiling: 120 of 9000 versions (1m5s)",
		clearLine + "note\n" + clearLine + "compiling: 120 of 9000 versions (1m6s)",
		clearLine + "checking the upgrade paths of all packa",
		clearLine,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestProgressWithoutWidth has a terminal that reports 0 columns.
func TestProgressWithoutWidth(t *testing.T) {
	start := time.Date(2026, time.November, 21, 0, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	newProgress(&out, 0, "reading the catalog", start).show(start.Add(2 * time.Second))
	if want := clearLine + "reading the catalog (2s)"; out.String() != want {
		t.Errorf("it shows %q, want %q", out.String(), want)
	}
}

func TestNoProgressWithoutTerminal(t *testing.T) {
	streams, _, out, complaint := genericiooptions.NewTestIOStreams()
	p := NewEnv("bellwether", streams).Progress("compiling")
	if p != nil {
		t.Error("it shows progress where there is no terminal")
	}
	p.Doing("reading")
	p.Count(1, 2, "versions")
	p.Print(func() { out.WriteString("printed") })
	p.Stop()
	if out.String() != "printed" || complaint.Len() > 0 {
		t.Errorf("it wrote %q and %q", out, complaint)
	}
}
