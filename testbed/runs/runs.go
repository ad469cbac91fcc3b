// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runs gives every use of the testbed a private folder with an owner, so that uses side by side do not meet,
// and so that what a killed one left behind (processes and files) is found and removed by the next.
//
// Ownership is a lock on a file, which the system releases when the owner ends in whatever way.
package runs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/bellwether-dev/bellwether/testbed/process"
)

const (
	lockSuffix = ".lock"
	// keptFile marks the folder of a failed run, whose logs somebody may want to read.
	keptFile = "kept-for-its-logs"
	keepFor  = 24 * time.Hour
	// logSuffix marks logs; a rotated one has a number behind it.
	logSuffix = ".log"
	lockPoll  = 50 * time.Millisecond
	// acquireLimit decides when a lock is held by an owner, not by an onlooker.
	acquireLimit = 300 * time.Millisecond
)

// ErrInUse says that a run of that name is up.
var ErrInUse = errors.New("a testbed of this name is up")

var namePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// Run is a claimed folder.
type Run struct {
	name string
	root string
	lock *flock.Flock
}

// Claim makes the folder of a run and takes ownership. Before that it removes what dead owners left behind. The name is
// a DNS label of at most 40 characters. A run of that name that is up gives ErrInUse.
func Claim(ctx context.Context, name string) (*Run, error) {
	if !namePattern.MatchString(name) {
		return nil, fmt.Errorf("claim run %q: a name is made of a-z, 0-9 and -, at most 40 of them", name)
	}
	root, unlock, err := enter(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := sweep(root); err != nil {
		return nil, err
	}
	r := &Run{name: name, root: root, lock: flock.New(filepath.Join(root, name+lockSuffix))}
	if err := r.acquire(ctx); err != nil {
		return nil, err
	}
	// What is there now can only be the kept logs of a failed run of the same name.
	if err := os.RemoveAll(r.Dir()); err != nil {
		return nil, fmt.Errorf("clear folder: %w", err)
	}
	if err := os.Mkdir(r.Dir(), 0o700); err != nil {
		return nil, fmt.Errorf("create folder: %w", err)
	}
	return r, nil
}

// acquire takes the run's lock. Somebody who only looks whether it is taken may hold it for an instant.
func (r *Run) acquire(ctx context.Context) error {
	brief, cancel := context.WithTimeout(ctx, acquireLimit)
	defer cancel()
	locked, err := r.lock.TryLockContext(brief, lockPoll)
	switch {
	case locked:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("lock run %s: %w", r.name, ctx.Err())
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("claim run %s: %w", r.name, ErrInUse)
	}
	return fmt.Errorf("lock run %s: %w", r.name, err)
}

// Dir is the run's folder.
func (r *Run) Dir() string { return filepath.Join(r.root, r.name) }

// Name is the run's name.
func (r *Run) Name() string { return r.name }

// Release gives the run up. Its processes must have been stopped; any that still run are killed. The folder is removed,
// unless keepLogs asks to leave it for a day.
func (r *Run) Release(keepLogs bool) error {
	_, unlock, err := enter(context.Background())
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := process.KillLeftovers(r.Dir()); err != nil {
		return fmt.Errorf("end processes: %w", err)
	}
	if keepLogs {
		if err := keep(r.Dir()); err != nil {
			return err
		}
	} else if err := os.RemoveAll(r.Dir()); err != nil {
		return fmt.Errorf("remove folder: %w", err)
	}
	_ = os.Remove(r.lock.Path())
	return r.lock.Unlock()
}

// keep removes all files below dir that are not logs, keys above all, and marks it.
func keep(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open folder: %w", err)
	}
	defer func() { _ = root.Close() }()
	err = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.Contains(entry.Name(), logSuffix) {
			return err
		}
		return root.Remove(path)
	})
	if err != nil {
		return fmt.Errorf("reduce folder to logs: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, keptFile), nil, 0o600); err != nil {
		return fmt.Errorf("mark folder: %w", err)
	}
	return nil
}

// Folder returns the folder of a run that is up, whoever owns it.
func Folder(name string) (string, bool) {
	root, err := rootFolder()
	if err != nil || !isOwned(root, name) {
		return "", false
	}
	return filepath.Join(root, name), true
}

// List returns the names of all runs that are up.
func List() ([]string, error) {
	root, err := rootFolder()
	if err != nil {
		return nil, err
	}
	names, err := folders(root)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(names, func(name string) bool { return !isOwned(root, name) }), nil
}

// Sweep ends the processes and removes the folders of runs whose owner is dead.
func Sweep(ctx context.Context) error {
	root, unlock, err := enter(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return sweep(root)
}

// enter takes the lock under which runs come and go.
func enter(ctx context.Context) (root string, unlock func(), err error) {
	root, err = rootFolder()
	if err != nil {
		return "", nil, err
	}
	l := flock.New(filepath.Join(root, ".lock"))
	if _, err := l.TryLockContext(ctx, lockPoll); err != nil {
		return "", nil, fmt.Errorf("lock runs: %w", err)
	}
	return root, func() { _ = l.Unlock() }, nil
}

func rootFolder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache folder: %w", err)
	}
	root := filepath.Join(cache, "bellwether", "testbed", "runs")
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", fmt.Errorf("create folder of runs: %w", err)
	}
	return root, nil
}

func folders(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// isOwned reports whether somebody holds the run's lock.
func isOwned(root, name string) bool {
	path := filepath.Join(root, name+lockSuffix)
	if _, err := os.Stat(path); err != nil {
		return false
	}
	l := flock.New(path, flock.SetFlag(os.O_RDWR))
	locked, err := l.TryLock()
	if err != nil {
		return false
	}
	if locked {
		_ = l.Unlock()
	}
	return !locked
}

// sweep is called under the lock of enter, so no run is between its lock and its folder.
func sweep(root string) error {
	names, err := folders(root)
	if err != nil {
		return err
	}
	for _, name := range names {
		if isOwned(root, name) || isKept(filepath.Join(root, name)) {
			continue
		}
		if err := remove(root, name); err != nil {
			return err
		}
	}
	return removeLocks(root)
}

func remove(root, name string) error {
	dir := filepath.Join(root, name)
	if _, err := process.KillLeftovers(dir); err != nil {
		return fmt.Errorf("end processes of dead run %s: %w", name, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove dead run %s: %w", name, err)
	}
	return nil
}

// removeLocks drops lock files that belong to no folder.
func removeLocks(root string) error {
	locks, err := filepath.Glob(filepath.Join(root, "*"+lockSuffix))
	if err != nil {
		return fmt.Errorf("list locks: %w", err)
	}
	for _, path := range locks {
		name := strings.TrimSuffix(filepath.Base(path), lockSuffix)
		if _, err := os.Stat(filepath.Join(root, name)); name != "" && errors.Is(err, os.ErrNotExist) {
			_ = os.Remove(path)
		}
	}
	return nil
}

func isKept(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, keptFile))
	return err == nil && time.Since(info.ModTime()) < keepFor
}
