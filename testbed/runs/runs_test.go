// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/process"
	"github.com/bellwether-dev/bellwether/testbed/runs"
)

// owner is the role of a second program that claims a run, starts a process in it and waits to be killed.
const owner = "owner-of-a-run"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == owner {
		own(os.Args[2])
		return
	}
	os.Exit(m.Run())
}

func own(name string) {
	r, err := runs.Claim(context.Background(), name)
	if err != nil {
		panic(err)
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		panic(err)
	}
	p, err := process.Start(process.Spec{Name: "sleep", Path: sleep, Args: []string{"600"},
		Log: filepath.Join(r.Dir(), "log"), Dir: r.Dir()})
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Dir(), p.PID())
	block()
}

// block waits far longer than any test. An empty select would do so too, but the runtime may take it for a deadlock.
func block() { time.Sleep(time.Hour) } // impatient: the test ends it

// private gives the test a cache folder of its own.
func private(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	t.Setenv("HOME", dir)
}

func claim(t *testing.T, name string) *runs.Run {
	t.Helper()
	r, err := runs.Claim(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestRunsSideBySide(t *testing.T) {
	private(t)
	one, two := claim(t, "one"), claim(t, "two")
	if one.Dir() == two.Dir() {
		t.Fatal("two runs share a folder")
	}
	if _, err := runs.Claim(t.Context(), "one"); !errors.Is(err, runs.ErrInUse) {
		t.Errorf("claiming a run that is up: want ErrInUse, have %v", err)
	}
	names, err := runs.List()
	if err != nil || !slices.Equal(names, []string{"one", "two"}) {
		t.Errorf("runs that are up: %q (%v)", names, err)
	}
	if err := one.Release(false); err != nil {
		t.Fatal(err)
	}
	if exists(one.Dir()) || !exists(two.Dir()) {
		t.Errorf("after the release of one: one exists %t, two exists %t", exists(one.Dir()), exists(two.Dir()))
	}
	if _, up := runs.Folder("one"); up {
		t.Error("a released run counts as up")
	}
	again := claim(t, "one")
	for _, r := range []*runs.Run{again, two} {
		if err := r.Release(false); err != nil {
			t.Error(err)
		}
	}
}

func TestNamesAreChecked(t *testing.T) {
	private(t)
	for _, name := range []string{"", "UPPER", "../up", "-a", "a-", "a b", strings.Repeat("a", 41)} {
		if r, err := runs.Claim(t.Context(), name); err == nil {
			t.Errorf("%q was accepted", name)
			_ = r.Release(false)
		}
	}
}

func TestLogsAreKeptOnRequest(t *testing.T) {
	private(t)
	r := claim(t, "failed")
	for _, file := range []string{"hub/logs/kube-apiserver.log", "hub/pki/ca.crt", "bin/agent"} {
		path := filepath.Join(r.Dir(), file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Release(true); err != nil {
		t.Fatal(err)
	}
	if err := runs.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !exists(filepath.Join(r.Dir(), "hub/logs/kube-apiserver.log")) {
		t.Error("the log is gone")
	}
	if exists(filepath.Join(r.Dir(), "hub/pki/ca.crt")) || exists(filepath.Join(r.Dir(), "bin/agent")) {
		t.Error("more than logs was kept")
	}
	again := claim(t, "failed")
	if exists(filepath.Join(again.Dir(), "hub")) {
		t.Error("a new run of the same name finds old files")
	}
	if err := again.Release(false); err != nil {
		t.Error(err)
	}
}

// TestKilledOwner kills a program in the middle of its run; the next claim of any name clears up after it.
func TestKilledOwner(t *testing.T) {
	private(t)
	cmd := exec.Command(os.Args[0], owner, "victim")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var dir string
	var pid int
	if _, err := fmt.Sscan(line, &dir, &pid); err != nil {
		t.Fatal(err)
	}
	if _, err := runs.Claim(t.Context(), "victim"); !errors.Is(err, runs.ErrInUse) {
		t.Errorf("while the owner lives: want ErrInUse, have %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	other := claim(t, "other")
	if exists(dir) {
		t.Error("the folder of the killed run is still there")
	}
	if process.DiesWithParent && syscall.Kill(pid, 0) == nil && !zombie(pid) {
		t.Error("its process still runs")
	}
	if err := other.Release(false); err != nil {
		t.Error(err)
	}
}

func zombie(pid int) bool {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(content), ") Z ")
}
