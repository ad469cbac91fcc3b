// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// small is a group that builds in no time.
var small = group{name: "small", artifacts: []artifact{{name: "hello", pkg: ".", estimate: "no time"}}}

// source writes the module of the small group.
func source(t *testing.T, body string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"go.mod": "module example.com/small\n\ngo 1.26\n",
		"main.go": "package main\n\nfunc main() {" + body + "}\n"}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// output is a writer for several goroutines.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) count(part string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Count(o.buf.String(), part)
}

func run(t *testing.T, folder string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(folder, "hello")).CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestGroupIsBuiltOncePerSource(t *testing.T) {
	cache, out := t.TempDir(), &output{}
	first := source(t, `print("one")`)
	a, err := ensureGroup(t.Context(), newProgress(out), cache, first, small)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ensureGroup(t.Context(), newProgress(out), cache, first, small)
	if err != nil {
		t.Fatal(err)
	}
	if again != a || out.count("building hello") != 1 {
		t.Errorf("the same source was built %d times, into %s and %s", out.count("building hello"), a, again)
	}
	b, err := ensureGroup(t.Context(), newProgress(out), cache, source(t, `print("two")`), small)
	if err != nil {
		t.Fatal(err)
	}
	if b == a || run(t, a) != "one" || run(t, b) != "two" {
		t.Errorf("builds of two sources: %s says %q, %s says %q", a, run(t, a), b, run(t, b))
	}
}

func TestFlagsDecideTheKey(t *testing.T) {
	dir, other := source(t, ""), small
	other.ldflags = "-s"
	a, errA := groupKey(dir, small)
	b, errB := groupKey(dir, other)
	if errA != nil || errB != nil || a == b {
		t.Errorf("keys %q and %q, errors %v and %v", a, b, errA, errB)
	}
}

func TestBuildersWaitForEachOther(t *testing.T) {
	cache, out, dir := t.TempDir(), &output{}, source(t, `print("once")`)
	var group sync.WaitGroup
	errs := make(chan error, 4)
	for range cap(errs) {
		group.Go(func() {
			_, err := ensureGroup(t.Context(), newProgress(out), cache, dir, small)
			errs <- err
		})
	}
	group.Wait()
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := out.count("building hello"); n != 1 {
		t.Errorf("built %d times", n)
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	cache, out := t.TempDir(), &output{}
	unlock, err := lock(t.Context(), out, filepath.Join(cache, "small.lock"), "small")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ensureGroup(ctx, newProgress(out), cache, source(t, ""), small); !errors.Is(err, context.Canceled) {
		t.Errorf("want Canceled, have %v", err)
	}
	if out.count("waiting for another build of small") != 1 {
		t.Error("nobody was told about the wait")
	}
}

// TestUnfinishedBuildIsNotUsed plants what a killed build leaves: a folder with half a binary in it.
func TestUnfinishedBuildIsNotUsed(t *testing.T) {
	cache := t.TempDir()
	left := filepath.Join(cache, "small.unfinished-123")
	if err := os.Mkdir(left, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(left, "hello"), []byte("half"), 0o700); err != nil {
		t.Fatal(err)
	}
	folder, err := ensureGroup(t.Context(), newProgress(&output{}), cache, source(t, `print("whole")`), small)
	if err != nil {
		t.Fatal(err)
	}
	if text := run(t, folder); text != "whole" {
		t.Errorf("the program says %q", text)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the unfinished build is still there (%v)", err)
	}
}

func TestFailedBuildLeavesNothing(t *testing.T) {
	cache := t.TempDir()
	_, err := ensureGroup(t.Context(), newProgress(&output{}), cache, source(t, "undefinedFunction()"), small)
	if err == nil || !strings.Contains(err.Error(), "undefined: undefinedFunction") {
		t.Errorf("want the compiler's words, have %v", err)
	}
	left, err := filepath.Glob(filepath.Join(cache, "*"))
	if err != nil || len(left) != 1 || filepath.Ext(left[0]) != ".lock" {
		t.Errorf("left behind: %q (%v)", left, err)
	}
}

func TestUnusedBuildsAreRemoved(t *testing.T) {
	cache := t.TempDir()
	ages := map[string]time.Duration{"small-old": keepUnused + time.Hour, "small-recent": time.Hour,
		"other-old": keepUnused + time.Hour}
	for name, age := range ages {
		folder := filepath.Join(cache, name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(-age)
		if err := os.Chtimes(folder, then, then); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ensureGroup(t.Context(), newProgress(&output{}), cache, source(t, ""), small); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"small-old": false, "small-recent": true, "other-old": true} {
		if _, err := os.Stat(filepath.Join(cache, name)); (err == nil) != want {
			t.Errorf("%s: want present %t, have %v", name, want, err)
		}
	}
}

func TestUnknownNames(t *testing.T) {
	_, err := Ensure(t.Context(), &output{}, "no-such-component")
	if !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), `find component "no-such-component"`) {
		t.Errorf("Ensure: want ErrUnknown and the name, have %v", err)
	}
	if _, err := Local(t.Context(), &output{}, t.TempDir(), "no-such-program"); !errors.Is(err, ErrUnknown) {
		t.Errorf("Local: want ErrUnknown, have %v", err)
	}
}

func TestLocalReplacesAnEarlierProgram(t *testing.T) {
	dir := t.TempDir()
	first, err := Local(t.Context(), &output{}, dir, EchoServer)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(first[EchoServer])
	if err != nil {
		t.Fatal(err)
	}
	// Not written in place: that would change the linked program too.
	if err := os.Remove(first[EchoServer]); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(first[EchoServer], []byte("of an earlier tree"), 0o755); err != nil {
		t.Fatal(err)
	}
	second, err := Local(t.Context(), &output{}, dir, EchoServer, EchoServer)
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile(second[EchoServer])
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Errorf("the second build left another program at %s", second[EchoServer])
	}
}

func TestEveryComponentHasItsModule(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		for _, file := range []string{"go.mod", "go.sum"} {
			if _, err := os.Stat(filepath.Join(root, "testbed", "components", g.name, file)); err != nil {
				t.Error(err)
			}
		}
	}
}
