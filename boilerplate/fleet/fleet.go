// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
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

// Fleet checks and updates many repositories.
type Fleet struct {
	Sources  source.Loader
	Work     string // a folder with a clone of each repository; clones are kept for later runs
	Parallel int    // the number of repositories that are processed at the same time
	Now      time.Time
	GitHub   *GitHub // opens pull requests; nil if Command does
	Command  string  // a shell command that runs after a branch is pushed
	DryRun   bool    // pushes no branch and opens no pull request
	// Done is called with each Status or Update. Calls do not overlap.
	Done func(result any)
}

// timeout limits the work on one repository, including the time that GitHub requires clients to wait.
const timeout = 30 * time.Minute

// processAll calls do for all repositories in parallel, and returns the results in the order of the repositories.
func processAll[T any](ctx context.Context, f *Fleet, all []Repository, do func(context.Context, Repository) T) []T {
	out := make([]T, len(all))
	var group errgroup.Group
	var mu sync.Mutex
	group.SetLimit(max(f.Parallel, 1))
	for i, r := range all {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			out[i] = do(ctx, r)
			mu.Lock()
			defer mu.Unlock()
			f.Done(out[i])
			return nil
		})
	}
	_ = group.Wait() // No function returns an error.
	return out
}

// Status is the state of one repository.
type Status struct {
	Repository
	*run.Status
	Error string `json:"error,omitempty"` // why it could not be read
}

// Status reads the state of all repositories: local clones as they are on the disk, and remotes as they are on
// the server.
func (f *Fleet) Status(ctx context.Context, all []Repository) []Status {
	return processAll(ctx, f, all, func(ctx context.Context, r Repository) Status {
		out := Status{Repository: r}
		read := func(opened *run.Repository) (err error) {
			out.Status, err = opened.Status(ctx, true, f.Now)
			return err
		}
		var err error
		if r.isFolder() {
			err = f.useFolder(r.Source, read)
		} else {
			err = f.useClone(ctx, r, r.Source, func(c *repository.Clone) error { return f.useFolder(c.Dir, read) })
		}
		if err != nil {
			out.Error = err.Error()
		}
		return out
	})
}

// useFolder opens the repository in a folder, calls do, and closes it.
func (f *Fleet) useFolder(dir string, do func(*run.Repository) error) error {
	opened, err := run.Open(dir, f.Sources)
	if opened != nil {
		defer func() { _ = opened.Tree.Close() }()
	}
	if err != nil {
		return err
	}
	return do(opened)
}

// useClone clones a repository, or updates its clone, and calls do. A file lock excludes other processes meanwhile.
func (f *Fleet) useClone(ctx context.Context, r Repository, url string, do func(*repository.Clone) error) error {
	dir := filepath.Join(f.Work, r.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	const interval = 100 * time.Millisecond
	if _, err := lock.TryLockContext(ctx, interval); err != nil {
		return fmt.Errorf("wait for another process that works on %s: %w", dir, err)
	}
	defer func() { _ = lock.Close() }()
	c, err := repository.OpenClone(ctx, filepath.Join(dir, "clone"), url, r.Branch)
	if err != nil {
		return err
	}
	return do(c)
}
