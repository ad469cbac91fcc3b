// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestProgressTellsWhatIsLeft compiles three packages by a clock of its own: of 1 MB, of 3 MB and of 4 MB.
func TestProgressTellsWhatIsLeft(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out)
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	p.now = func() time.Time { return now }
	p.waiting = 2
	p.add(map[string]int64{"a": 1_000_000, "b": 3_000_000})
	for _, step := range []struct {
		compiling string
		after     time.Duration
		add       map[string]int64
		want      string
	}{
		{"a", 0, nil, ""},
		{"# not a package", 10 * time.Second, nil, ""},
		{"b", 20 * time.Second, nil, "4 MB of source compiled; still finding out how much is left"},
		{"go: downloading c v1.0.0", 40 * time.Second, map[string]int64{"b": 3_000_000, "c": 4_000_000},
			"4 of 8 MB of source compiled, about 40s left"},
		{"c", 50 * time.Second, nil, ""},
		{"c", 60 * time.Second, nil, "all 8 MB of source compiled; the programs are being linked"},
	} {
		now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC).Add(step.after)
		if step.add != nil {
			p.add(step.add)
		}
		out.Reset()
		p.compiling(step.compiling)
		if have := strings.TrimSpace(out.String()); have != step.want {
			t.Errorf("after %s: have %q, want %q", step.after, have, step.want)
		}
	}
}

// TestOnlyStalePackagesAreLeft: what is compiled already, such as the standard library here, is not counted.
func TestOnlyStalePackagesAreLeft(t *testing.T) {
	dir := source(t, `println("of this test: `+t.TempDir()+`")`)
	module := goModule{dir: dir}
	sizes, err := module.stale(t.Context(), []string{"."})
	if err != nil {
		t.Fatal(err)
	}
	if sizes["example.com/small"] == 0 {
		t.Errorf("the program is not listed: %v", sizes)
	}
	if err := module.build(t.Context(), filepath.Join(t.TempDir(), "hello"), []string{"."}); err != nil {
		t.Fatal(err)
	}
	again, err := module.stale(t.Context(), []string{"."})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := again["runtime"]; ok {
		t.Errorf("the standard library is listed after it was compiled: %v", again)
	}
}

// TestBuildReportsCompiledPackages: what `go build -v` prints are the import paths that stale lists.
func TestBuildReportsCompiledPackages(t *testing.T) {
	to := target{module: goModule{dir: source(t, `println("of this test: `+t.TempDir()+`")`)}, packages: []string{"."}}
	sizes, err := to.module.stale(t.Context(), to.packages)
	if err != nil {
		t.Fatal(err)
	}
	p := newProgress(&output{})
	p.waiting = 1
	p.add(sizes)
	if err := p.build(t.Context(), to.module, filepath.Join(t.TempDir(), "hello"), to.packages); err != nil {
		t.Fatal(err)
	}
	if len(p.left) != 0 {
		t.Errorf("left after the build: %v", p.left)
	}
}
