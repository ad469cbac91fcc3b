// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package build turns Go modules into the programs a testbed runs: upstream's components (Ensure), which are built once
// per version into the user's cache folder, and the programs of this repository (Local), which are always current.
//
// It needs the go command and the source tree, and no C compiler.
package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

const (
	lockPoll = 200 * time.Millisecond
	// keepUnused is how long a build that no run has asked for stays in the cache.
	keepUnused = 14 * 24 * time.Hour
)

// ErrUnknown says that a name is in no table of this package.
var ErrUnknown = errors.New("unknown program")

// Ensure returns the path of every named component, building its group first where the cache has none for the exact
// versions pinned in testbed/components. Progress goes to out. Concurrent callers, in this process or another, wait for
// each other; a build that was interrupted is never used.
func Ensure(ctx context.Context, out io.Writer, names ...string) (map[string]string, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	groups, err := groupsOf(names)
	if err != nil {
		return nil, err
	}
	p := newProgress(out)
	expected, err := missing(root, groups)
	if err != nil {
		return nil, err
	}
	defer p.expect(ctx, expected)()
	return ensure(ctx, p, root, groups, names)
}

// ensure is Ensure, for the groups of the names in the source tree at root.
func ensure(ctx context.Context, p *progress, root string, groups []group, names []string) (map[string]string, error) {
	cache, err := cacheFolder("components")
	if err != nil {
		return nil, err
	}
	paths := make(map[string]string, len(names))
	for _, g := range groups {
		folder, err := ensureGroup(ctx, p, cache, sourceOf(root, g), g)
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", g.name, err)
		}
		for _, a := range g.artifacts {
			if slices.Contains(names, a.name) {
				paths[a.name] = filepath.Join(folder, a.name)
			}
		}
	}
	return paths, nil
}

// missing returns what has to be compiled for the groups, in their order.
func missing(root string, groups []group) ([]target, error) {
	cache, err := cacheFolder("components")
	if err != nil {
		return nil, err
	}
	var targets []target
	for _, g := range groups {
		source := sourceOf(root, g)
		key, err := groupKey(source, g)
		if err != nil {
			return nil, err
		}
		if len(g.packages()) > 0 && !done(filepath.Join(cache, g.name+"-"+key)) {
			targets = append(targets, target{g.module(source), g.packages(), g.flags()})
		}
	}
	return targets, nil
}

// cacheFolder returns the folder of finished builds of a kind: "components", "programs" or "releases".
func cacheFolder(kind string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache folder: %w", err)
	}
	folder := filepath.Join(cache, "bellwether", "testbed", kind)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("create cache folder: %w", err)
	}
	return folder, nil
}

// sourceOf returns the folder of the module of a group, in the source tree at root.
func sourceOf(root string, g group) string {
	return filepath.Join(root, "testbed", "components", g.name)
}

// ensureGroup returns the folder with all artifacts of g, whose module is in source.
func ensureGroup(ctx context.Context, p *progress, cache, source string, g group) (string, error) {
	key, err := groupKey(source, g)
	if err != nil {
		return "", err
	}
	return ensureFolder(ctx, p.out, cache, g.name, key, func(folder string) error {
		return buildGroup(ctx, p, source, folder, g)
	})
}

// ensureFolder returns the finished build of a name and a key in the cache. Where there is none, build puts its files
// into a folder, which becomes the finished build only if there is no error.
func ensureFolder(ctx context.Context, out io.Writer, cache, name, key string,
	build func(folder string) error) (string, error) {
	final := filepath.Join(cache, name+"-"+key)
	if done(final) {
		return final, nil
	}
	unlock, err := lock(ctx, out, filepath.Join(cache, name+".lock"), name)
	if err != nil {
		return "", err
	}
	defer unlock()
	if done(final) {
		return final, nil
	}
	// Under the lock nobody else builds this name, so whatever is unfinished was left by a build that was killed.
	if err := removeUnfinished(cache, name); err != nil {
		return "", err
	}
	unfinished, err := os.MkdirTemp(cache, name+".unfinished-")
	if err != nil {
		return "", fmt.Errorf("create build folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(unfinished) }() // gone already after the rename
	if err := build(unfinished); err != nil {
		return "", err
	}
	if err := os.Chmod(unfinished, 0o755); err != nil {
		return "", fmt.Errorf("open build folder: %w", err)
	}
	if err := os.Rename(unfinished, final); err != nil {
		return "", fmt.Errorf("finish build: %w", err)
	}
	return final, removeUnused(cache, name, final)
}

// done reports whether folder is a finished build, and marks it as used now.
func done(folder string) bool {
	now := time.Now()
	return os.Chtimes(folder, now, now) == nil
}

// lock takes the lock file, telling out once when somebody else holds it.
func lock(ctx context.Context, out io.Writer, path, name string) (func(), error) {
	l := flock.New(path)
	locked, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock build: %w", err)
	}
	if !locked {
		say(out, "waiting for another build of %s\n", name)
		if _, err := l.TryLockContext(ctx, lockPoll); err != nil {
			return nil, fmt.Errorf("wait for another build: %w", err)
		}
	}
	return func() { _ = l.Unlock() }, nil
}

// buildGroup puts all artifacts of g into target.
func buildGroup(ctx context.Context, p *progress, source, target string, g group) error {
	var flags []string
	if c, ok := changes[g.name]; ok {
		folder, err := os.MkdirTemp("", "bellwether-build-")
		if err != nil {
			return fmt.Errorf("create build folder: %w", err)
		}
		defer func() { _ = os.RemoveAll(folder) }()
		flag, err := c.apply(ctx, source, folder)
		if err != nil {
			return err
		}
		flags = append(flags, flag)
	}
	for _, a := range g.artifacts {
		if err := buildArtifact(ctx, p, source, target, g, a, flags...); err != nil {
			return err
		}
	}
	return nil
}

// buildArtifact compiles a program with the flags and the environment of this repository's tests, but for what its
// group must change: so what they have in common is compiled once.
func buildArtifact(ctx context.Context, p *progress, source, target string, g group, a artifact,
	flags ...string) error {
	path := filepath.Join(target, a.name)
	if a.pkg == "" {
		return copyModuleFolder(ctx, source, a, path)
	}
	say(p.out, "building %s (first time: about %s on 2 cores) ...\n", a.name, a.estimate)
	start := time.Now()
	if err := p.build(ctx, g.module(source), path, []string{a.pkg}, append(g.flags(), flags...)...); err != nil {
		return fmt.Errorf("build %s: %w", a.name, err)
	}
	say(p.out, "built %s in %s\n", a.name, time.Since(start).Round(time.Second))
	return nil
}

// say shows progress. That nobody can see it is no reason to stop.
func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }

// copyModuleFolder copies the artifact's folder out of the module cache.
func copyModuleFolder(ctx context.Context, source string, a artifact, path string) error {
	dir, err := goModule{dir: source}.requiredDir(ctx, a.module)
	if err != nil {
		return err
	}
	if err := os.CopyFS(path, os.DirFS(filepath.Join(dir, a.folder))); err != nil {
		return fmt.Errorf("copy %s: %w", a.folder, err)
	}
	return nil
}

// groupKey identifies everything that decides what a group's artifacts are: its own files, the flags and the platform.
func groupKey(source string, g group) (string, error) {
	sum := sha256.New()
	say(sum, "%s/%s %+v\n", runtime.GOOS, runtime.GOARCH, g)
	if c, ok := changes[g.name]; ok {
		say(sum, "%+v\n", c)
	}
	files := os.DirFS(source)
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		say(sum, "%s %d\n", path, len(content))
		_, err = sum.Write(content)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("hash sources: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

func removeUnfinished(cache, group string) error {
	left, err := filepath.Glob(filepath.Join(cache, group+".unfinished-*"))
	if err != nil {
		return fmt.Errorf("list unfinished builds: %w", err)
	}
	for _, folder := range left {
		if err := os.RemoveAll(folder); err != nil {
			return fmt.Errorf("remove unfinished build: %w", err)
		}
	}
	return nil
}

// removeUnused drops builds of other versions that nobody has asked for in a long time.
func removeUnused(cache, group, current string) error {
	builds, err := filepath.Glob(filepath.Join(cache, group+"-*"))
	if err != nil {
		return fmt.Errorf("list builds: %w", err)
	}
	for _, folder := range builds {
		info, err := os.Stat(folder)
		if err != nil || folder == current || time.Since(info.ModTime()) < keepUnused {
			continue
		}
		if err := os.RemoveAll(folder); err != nil {
			return fmt.Errorf("remove unused build: %w", err)
		}
	}
	return nil
}

// Root returns the root of the Bellwether source tree: the nearest parent of the working directory that holds it, or
// else the tree that this program was compiled from.
func Root() (string, error) {
	if dir, err := os.Getwd(); err == nil {
		for ; ; dir = filepath.Dir(dir) {
			if isRoot(dir) {
				return dir, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	if _, file, _, ok := runtime.Caller(0); ok {
		if dir := filepath.Dir(filepath.Dir(filepath.Dir(file))); isRoot(dir) {
			return dir, nil
		}
	}
	return "", errors.New("find source tree: run this inside a clone of Bellwether")
}

func isRoot(dir string) bool {
	content, err := os.ReadFile(filepath.Join(dir, "testbed", "go.mod"))
	return err == nil && strings.HasPrefix(string(content), "module github.com/bellwether-dev/bellwether/testbed\n")
}
