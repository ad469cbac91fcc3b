// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/boilerplate/run"
	"github.com/bellwether-dev/bellwether/boilerplate/source"
)

// TestTwoHundredRepositories prints the time and the memory for 200 repositories.
func TestTwoHundredRepositories(t *testing.T) {
	const count = 200
	f := newFixture(t, "first")
	f.Parallel = 8
	for i := 1; i < count; i++ {
		name := fmt.Sprintf("repository-%03d", i)
		if err := os.CopyFS(f.remote(name), os.DirFS(f.remote("first"))); err != nil {
			t.Fatal(err)
		}
		f.all = append(f.all, Repository{Name: name, Source: "file://" + f.remote(name)})
	}
	measure := func(what string, work func()) {
		start := time.Now()
		work()
		var own, children syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &own)
		_ = syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children)
		t.Logf("%s of %d repositories: %.1f s; at most %d MiB, and %d MiB in the largest process of git", what, count,
			time.Since(start).Seconds(), own.Maxrss>>10, children.Maxrss>>10)
	}
	measure("status with clones that are new", func() {
		for _, s := range f.Status(t.Context(), f.all) {
			if s.Error != "" {
				t.Error(s)
			}
		}
	})
	outcome := Opened
	update := func() {
		for _, u := range f.update() {
			if u.Outcome != outcome {
				t.Error(u)
			}
		}
	}
	measure("status", func() { f.Status(t.Context(), f.all) })
	measure("check", func() {
		for _, r := range f.all {
			opened, err := run.Open(filepath.Join(f.Work, r.Name, "clone"), source.Loader{})
			if err != nil {
				t.Fatal(err)
			}
			if found, err := opened.Check(now); err != nil || len(found) > 0 {
				t.Error(found, err)
			}
			_ = opened.Tree.Close()
		}
	})
	measure("update", update)
	outcome = Unchanged
	measure("second update", update)
}
