// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestClockIsOff builds a program that prints its time, as it is and with another clock.
func TestClockIsOff(t *testing.T) {
	dir := t.TempDir()
	m := goModule{dir: source(t, "")}
	program := "package main\n\nimport \"time\"\n\nfunc main() {\n\tnow := time.Now()\n" +
		"\tprintln(now.Unix(), time.Since(now) < time.Minute)\n}\n"
	if err := os.WriteFile(filepath.Join(m.dir, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay, err := m.overlayClock(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for text, shift := range map[string]time.Duration{"": 0, "3600": time.Hour, "-3600": -time.Hour} {
		if err := m.build(t.Context(), filepath.Join(dir, "hello"), []string{"."}, "-overlay", overlay, "-ldflags",
			"-X time."+shiftVariable+"="+text); err != nil {
			t.Fatal(err)
		}
		before := time.Now().Truncate(time.Second)
		seconds, measures, _ := strings.Cut(strings.TrimSpace(run(t, dir)), " ")
		n, err := strconv.ParseInt(seconds, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if said := time.Unix(n, 0).Add(-shift); said.Before(before) || said.After(time.Now()) || measures != "true" {
			t.Errorf("with a shift of %s it says %s at %s, and that it measures right: %s", shift, time.Unix(n, 0),
				before, measures)
		}
	}
}

func TestClockOfAnotherGo(t *testing.T) {
	t.Parallel()
	if _, err := shiftClock("package time\n\nfunc Now() Time { return now() }\n"); err == nil {
		t.Error("a clock that cannot be changed is taken for one that was")
	}
}
