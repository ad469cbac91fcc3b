// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/bellwether-dev/bellwether/boilerplate/update"
)

// ErrNotRepository means that a folder is not in a git repository, or that git fails there.
var ErrNotRepository = errors.New("not a git repository")

// Git runs git in the repository that a folder is in.
type Git struct {
	Dir    string
	prefix string // the folder's path from the root of the repository; empty, or with a slash at its end
	gitDir string // the folder of git's data about this work tree
}

// OpenGit finds the repository of a folder. Errors wrap ErrNotRepository and give the reason.
func OpenGit(ctx context.Context, dir string) (*Git, error) {
	g := &Git{Dir: dir}
	out, err := g.run(ctx, "", "rev-parse", "--is-inside-work-tree", "--show-prefix", "--absolute-git-dir")
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNotRepository, dir, err)
	}
	lines := strings.Split(out, "\n") // in the order of the options above
	if lines[0] != "true" {
		return nil, fmt.Errorf("%w: %s: it has no work tree", ErrNotRepository, dir)
	}
	g.prefix, g.gitDir = lines[1], lines[2]
	return g, nil
}

// gitVariables are environment variables by which a caller, such as a hook, makes git use another repository or index.
var gitVariables = []string{"GIT_DIR=", "GIT_WORK_TREE=", "GIT_INDEX_FILE=", "GIT_PREFIX=", "GIT_OBJECT_DIRECTORY=",
	"GIT_COMMON_DIR=", "GIT_NAMESPACE="}

// newCommand returns a git command that runs no programs of the repository: no hooks, file system monitor or
// external diff.
func newCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	args = append([]string{"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c",
		"core.quotePath=false", "-c", "color.ui=false"}, args...)
	//nolint:gosec // the arguments are this package's; paths come after -- or through stdin
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.WaitDelay = dir, 10*time.Second
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return slices.ContainsFunc(gitVariables, func(name string) bool { return strings.HasPrefix(v, name) })
	})
	cmd.Env = append(cmd.Env, "GIT_LITERAL_PATHSPECS=1", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
		"GIT_EDITOR=true", "GIT_LFS_SKIP_SMUDGE=1", "GIT_HTTP_LOW_SPEED_LIMIT=1", "GIT_HTTP_LOW_SPEED_TIME=60")
	return cmd
}

// run runs git and returns its output. An error contains the error output.
func (g *Git) run(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := newCommand(ctx, g.Dir, args...)
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errOut
	if err := cmd.Run(); err != nil {
		if text := strings.TrimSpace(errOut.String()); text != "" {
			return "", fmt.Errorf("git %s: %s", args[0], text)
		}
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return out.String(), nil
}

// ErrDirty means that a repository has changes that an update could overwrite or mix with its own changes.
var ErrDirty = errors.New("the repository has changes that are not committed")

// CheckClean returns an error if one of the paths has uncommitted changes or is in a submodule, if any file of the
// repository is staged, or if a merge is not finished. Errors wrap ErrDirty and name the paths. Paths in tolerated can
// have changes.
func (g *Git) CheckClean(ctx context.Context, paths []string, tolerated ...string) error {
	states, problems, err := g.listChanges(ctx)
	if err != nil {
		return err
	}
	for _, file := range []string{"MERGE_HEAD", "rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD"} {
		if _, err := os.Lstat(filepath.Join(g.gitDir, file)); err == nil {
			problems = append(problems, strings.ToLower(strings.TrimSuffix(file, "_HEAD"))+" is not finished")
		}
	}
	for _, name := range paths {
		state := ""
		// An ignored folder has one entry for all its files.
		for ancestor := name; state == "" && ancestor != "."; ancestor = path.Dir(ancestor) {
			state = states[ancestor]
		}
		if state != "" && !slices.Contains(tolerated, name) {
			problems = append(problems, name+" is "+state)
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("%w: %s", ErrDirty, strings.Join(problems, "; "))
	}
	return nil
}

// listChanges returns the state of each path in the folder that is not committed or in a submodule, as a clause such as
// "untracked", and messages about all staged files of the repository.
func (g *Git) listChanges(ctx context.Context) (states map[string]string, staged []string, err error) {
	states = map[string]string{}
	out, err := g.run(ctx, "", "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all",
		"--ignored=matching", "--ignore-submodules=all")
	if err != nil {
		return nil, nil, err
	}
	for entry := range strings.SplitSeq(out, "\x00") {
		if entry == "" {
			continue
		}
		name, state := entry[len("XY "):], "modified, and not committed"
		switch entry[0] {
		case '?':
			state = "untracked"
		case '!':
			state = "ignored, and not committed"
		case ' ': // modified only in the work tree
		default:
			staged = append(staged, name+" is staged")
		}
		if relative, isInside := strings.CutPrefix(name, g.prefix); isInside {
			states[strings.TrimSuffix(relative, "/")] = state
		}
	}
	if out, err = g.run(ctx, "", "ls-files", "--stage", "-z"); err != nil {
		return nil, nil, err
	}
	for entry := range strings.SplitSeq(out, "\x00") {
		if mode, name, _ := strings.Cut(entry, "\t"); strings.HasPrefix(mode, "160000 ") {
			states[name] = "in the submodule " + name
		}
	}
	return states, staged, nil
}

// Commit commits exactly the given paths and returns the short name of the commit; empty if nothing has changed. After
// an error, the paths are not staged.
func (g *Git) Commit(ctx context.Context, message string, paths []string) (string, error) {
	list, err := g.stage(ctx, paths)
	if err != nil || list == "" {
		return "", err
	}
	_, err = g.run(ctx, list, "commit", "--quiet", "--only", "--no-verify", "--message", message,
		"--pathspec-from-file=-", "--pathspec-file-nul")
	if err != nil {
		return "", errors.Join(err, g.unstage(ctx, list))
	}
	out, err := g.run(ctx, "", "rev-parse", "--short", "HEAD")
	return strings.TrimSpace(out), err
}

// stage adds paths to the index. It returns the paths that exist or that git tracks, separated by NUL, because git
// refuses other paths. The list is empty if no path has changed. If git cannot add the paths, stage unstages them.
func (g *Git) stage(ctx context.Context, paths []string) (string, error) {
	out, err := g.run(ctx, "", "ls-files", "-z")
	if err != nil {
		return "", err
	}
	tracked := sets.New(strings.Split(out, "\x00")...)
	list := strings.Join(slices.DeleteFunc(slices.Clone(paths), func(name string) bool {
		_, err := os.Lstat(filepath.Join(g.Dir, filepath.FromSlash(name)))
		return err != nil && !tracked.Has(name)
	}), "\x00")
	if list == "" {
		return "", nil
	}
	_, err = g.run(ctx, list, "add", "--all", "--force", "--pathspec-from-file=-", "--pathspec-file-nul")
	if err != nil {
		return "", errors.Join(err, g.unstage(ctx, list))
	}
	if staged, err := g.run(ctx, "", "diff", "--cached", "--name-only"); err != nil || staged == "" {
		return "", err
	}
	return list, nil
}

// unstage removes paths from the index, also if ctx is cancelled. It also works before the first commit.
func (g *Git) unstage(ctx context.Context, list string) error {
	_, err := g.run(context.WithoutCancel(ctx), list, "reset", "--quiet", "--pathspec-from-file=-",
		"--pathspec-file-nul")
	return err
}

// MergeFile returns a function that merges a text three ways with git merge-file.
func MergeFile(ctx context.Context) update.Merge {
	return func(name, current, base, wanted string) (string, bool, error) {
		dir, err := os.MkdirTemp("", "bellwether-merge-*")
		if err != nil {
			return "", false, fmt.Errorf("make a folder: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		for file, text := range map[string]string{"current": current, "base": base, "wanted": wanted} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				return "", false, fmt.Errorf("write %s: %w", file, err)
			}
		}
		cmd := newCommand(ctx, dir, "merge-file", "-p", "--diff3", "-L", name+" (yours)", "-L",
			name+" (as rendered last)", "-L", name+" (convention)", "current", "base", "wanted")
		out, err := cmd.Output()
		var exit *exec.ExitError
		// The exit status is the number of conflicts, at most 127; a higher status is another error.
		if errors.As(err, &exit) && exit.ExitCode() > 0 && exit.ExitCode() <= 127 {
			return string(out), true, nil
		}
		if err != nil {
			return "", false, fmt.Errorf("git merge-file: %w", err)
		}
		return string(out), false, nil
	}
}
