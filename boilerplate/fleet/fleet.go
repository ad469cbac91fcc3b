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

// Fleet works on repositories.
type Fleet struct {
	Sources  source.Loader
	Work     string // a folder with a clone of each repository, which are kept for the next time
	Parallel int    // how many repositories are worked on at the same time
	Now      time.Time
	GitHub   *GitHub // opens pull requests there; nil if Command does
	Command  string  // is run by the shell once a branch was pushed
	DryRun   bool    // pushes nothing and opens nothing
	// Done is called with each Status or Update, one at a time.
	Done func(result any)
}

// patience bounds the work on one repository, with the time that GitHub wants its clients to wait.
const patience = 30 * time.Minute

// each does something with all repositories, and returns the results in their order.
func each[T any](ctx context.Context, f *Fleet, all []Repository, do func(context.Context, Repository) T) []T {
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
			f.Done(out[i])
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

// Status reads all repositories: local clones as they are, remotes as they are there.
func (f *Fleet) Status(ctx context.Context, all []Repository) []Status {
	return each(ctx, f, all, func(ctx context.Context, r Repository) Status {
		out := Status{Repository: r}
		read := func(opened *run.Repository) (err error) {
			out.Status, err = opened.Status(ctx, true, f.Now)
			return err
		}
		var err error
		if r.isFolder() {
			err = f.open(r.Source, read)
		} else {
			err = f.clone(ctx, r, r.Source, func(c *repository.Clone) error { return f.open(c.Dir, read) })
		}
		if err != nil {
			out.Error = err.Error()
		}
		return out
	})
}

// open does something with the repository in a folder.
func (f *Fleet) open(dir string, do func(*run.Repository) error) error {
	opened, err := run.Open(dir, f.Sources)
	if opened != nil {
		defer func() { _ = opened.Tree.Close() }()
	}
	if err != nil {
		return err
	}
	return do(opened)
}

// clone clones a repository, keeps other processes from the clone, and does something with it.
func (f *Fleet) clone(ctx context.Context, r Repository, url string, do func(*repository.Clone) error) error {
	dir := filepath.Join(f.Work, r.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	const every = 100 * time.Millisecond
	if _, err := lock.TryLockContext(ctx, every); err != nil {
		return fmt.Errorf("wait for another process that works on %s: %w", dir, err)
	}
	defer func() { _ = lock.Close() }()
	c, err := repository.OpenClone(ctx, filepath.Join(dir, "clone"), url, r.Branch)
	if err != nil {
		return err
	}
	return do(c)
}
