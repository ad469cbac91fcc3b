// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sync/errgroup"

	"github.com/bellwether-dev/bellwether/boilerplate/repository"
	"github.com/bellwether-dev/bellwether/boilerplate/run"
	"github.com/bellwether-dev/bellwether/boilerplate/source"
)

// Fleet works on repositories.
type Fleet struct {
	Sources source.Loader
	// Work is a folder with a clone of each repository, which are kept for the next time.
	Work     string
	Parallel int // how many repositories are worked on at the same time
	Now      time.Time
	GitHub   *GitHub // opens pull requests there; nil if Command does
	Command  string  // is run by the shell once a branch was pushed
	DryRun   bool    // pushes nothing and opens nothing
	// Done is called with a line about each repository, one at a time.
	Done func(line string)
}

// patience bounds the work on one repository, with the time that GitHub wants its clients to wait.
const patience = 30 * time.Minute

// each does something with all repositories, and returns the results in their order.
func each[T fmt.Stringer](ctx context.Context, f *Fleet, all []Repository, do func(context.Context, Repository) T) []T {
	out := make([]T, len(all))
	var group errgroup.Group
	var mu sync.Mutex
	group.SetLimit(max(f.Parallel, 1))
	for i, r := range all {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			out[i] = do(ctx, r)
			mu.Lock()
			defer mu.Unlock()
			f.Done(out[i].String())
			return nil
		})
	}
	_ = group.Wait() // There are no errors.
	return out
}

// Status is how one repository is.
type Status struct {
	Repository
	*run.Status
	Error string `json:"error,omitempty"` // why it could not be read
}

// String is the status in one line.
func (s Status) String() string { return s.Name + ": " + cmp.Or(s.Error, "read") }

// Status reads all repositories: local clones as they are, remotes as they are there.
func (f *Fleet) Status(ctx context.Context, all []Repository) []Status {
	return each(ctx, f, all, func(ctx context.Context, r Repository) Status {
		out := Status{Repository: r}
		if err := f.status(ctx, &out); err != nil {
			out.Error = err.Error()
		}
		return out
	})
}

func (f *Fleet) status(ctx context.Context, out *Status) error {
	dir := out.Source
	if !out.isFolder() {
		_, unlock, err := f.clone(ctx, out.Repository, out.Source)
		if err != nil {
			return err
		}
		defer unlock()
		dir = f.dir(out.Repository)
	}
	opened, err := run.Open(dir, f.Sources)
	if opened != nil {
		defer func() { _ = opened.Tree.Close() }()
	}
	if err == nil {
		out.Status, err = opened.Status(ctx, true, f.Now)
	}
	return err
}

// dir is where the clone of a repository is.
func (f *Fleet) dir(r Repository) string { return filepath.Join(f.Work, r.Name, "clone") }

// clone clones a repository, and keeps other processes from the clone until it is unlocked.
func (f *Fleet) clone(ctx context.Context, r Repository, url string) (*repository.Clone, func(), error) {
	dir := f.dir(r)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("make a folder: %w", err)
	}
	lock := flock.New(filepath.Join(filepath.Dir(dir), "lock"))
	const every = 100 * time.Millisecond
	if _, err := lock.TryLockContext(ctx, every); err != nil {
		return nil, nil, fmt.Errorf("wait for another process that works on %s: %w", dir, err)
	}
	unlock := func() { _ = lock.Close() }
	clone, err := repository.OpenClone(ctx, dir, url, r.Branch)
	if err != nil {
		unlock()
	}
	return clone, unlock, err
}
