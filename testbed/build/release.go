// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bellwether-dev/bellwether/internal/version"
)

// ErrNoCommit says that the clone of this repository does not have a commit.
var ErrNoCommit = errors.New("the commit is not in this clone")

// Release returns the paths of hub, agent and command line as they were at a commit, which is the full hash. They
// report the version. It builds them into the user's cache folder the first time. The error wraps ErrNoCommit where the
// clone has only part of the history.
func Release(ctx context.Context, out io.Writer, commit, released string) (map[string]string, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	if err := git(ctx, root, "cat-file", "-e", commit+"^{commit}"); err != nil {
		return nil, fmt.Errorf("build programs of commit %s: %w: get the whole history with git fetch --unshallow",
			commit, ErrNoCommit)
	}
	cache, err := cacheFolder("releases")
	if err != nil {
		return nil, err
	}
	folder, err := ensureFolder(ctx, out, cache, "release", released+"-"+commit, func(folder string) error {
		return buildRelease(ctx, out, root, commit, released, folder)
	})
	if err != nil {
		return nil, fmt.Errorf("build programs of commit %s: %w", commit, err)
	}
	paths := map[string]string{}
	for _, name := range []string{Hub, Agent, Bellwether} {
		paths[name] = filepath.Join(folder, name)
	}
	return paths, nil
}

// buildRelease builds the programs of a commit into a folder.
func buildRelease(ctx context.Context, out io.Writer, root, commit, released, folder string) error {
	say(out, "building hub, agent and bellwether %s of commit %s (first time: about 5 min on 2 cores) ...\n", released,
		commit)
	source, err := os.MkdirTemp("", "bellwether-release-")
	if err != nil {
		return fmt.Errorf("create folder for sources: %w", err)
	}
	defer func() { _ = os.RemoveAll(source) }()
	if err := git(ctx, root, "clone", "--quiet", "--shared", "--no-checkout", root, source); err != nil {
		return err
	}
	if err := git(ctx, source, "checkout", "--quiet", commit); err != nil {
		return err
	}
	// Until 0.1.0 the variable was in another package. The linker ignores a variable that does not exist.
	flags := ldflagsStrip + " -X " + version.Variable + "=" + released + " -X " + version.Module + "/version.release=" +
		released
	return goModule{dir: source}.build(ctx, folder+string(filepath.Separator),
		[]string{programs[Hub].pkg, programs[Agent].pkg, programs[Bellwether].pkg}, "-ldflags", flags)
}

// git runs the git command in a folder.
func git(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w\n%s", args[0], err, tail(string(out), 10))
	}
	return nil
}
