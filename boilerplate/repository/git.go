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

// ErrNotRepository says that a folder is in no git repository, or that git does not work there.
var ErrNotRepository = errors.New("not a git repository")

// Git is the git repository that a folder is in.
type Git struct {
	Dir    string
	prefix string // the folder's path from the root of the repository; empty, or with a slash at its end
	gitDir string // has what git knows about this work tree
}

// OpenGit finds the repository of a folder. Errors wrap ErrNotRepository, and say why.
func OpenGit(ctx context.Context, dir string) (*Git, error) {
	g := &Git{Dir: dir}
	out, err := g.run(ctx, "", "rev-parse", "--is-inside-work-tree", "--show-prefix", "--absolute-git-dir")
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNotRepository, dir, err)
	}
	lines := strings.Split(out, "\n")
	if lines[0] != "true" {
		return nil, fmt.Errorf("%w: %s: it has no work tree", ErrNotRepository, dir)
	}
	g.prefix, g.gitDir = lines[1], lines[2]
	return g, nil
}

// gitVariables are variables by which a caller, such as a hook, has git work on another repository or index.
var gitVariables = []string{"GIT_DIR=", "GIT_WORK_TREE=", "GIT_INDEX_FILE=", "GIT_PREFIX=", "GIT_OBJECT_DIRECTORY=",
	"GIT_COMMON_DIR=", "GIT_NAMESPACE="}

// command is git with nothing of the repository that runs: no hooks, no file system monitor, no external diff.
func command(ctx context.Context, dir string, args ...string) *exec.Cmd {
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

// run returns what git prints. An error has what it says.
func (g *Git) run(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := command(ctx, g.Dir, args...)
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

// ErrDirty says that a repository has changes that an update could mix with its own, or overwrite.
var ErrDirty = errors.New("the repository has changes that are not committed")

// CheckClean refuses an update of paths of which somebody has changes that are not committed, of a repository with
// anything staged or a merge that is not finished, and of paths in submodules. Errors wrap ErrDirty, and name the
// paths. Paths in tolerated may have changes.
func (g *Git) CheckClean(ctx context.Context, paths []string, tolerated ...string) error {
	words, wrong, err := g.changes(ctx)
	if err != nil {
		return err
	}
	for _, file := range []string{"MERGE_HEAD", "rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD"} {
		if _, err := os.Lstat(filepath.Join(g.gitDir, file)); err == nil {
			wrong = append(wrong, strings.ToLower(strings.TrimSuffix(file, "_HEAD"))+" is not finished")
		}
	}
	for _, name := range paths {
		word := ""
		for at := name; word == "" && at != "."; at = path.Dir(at) { // an ignored folder is one entry
			word = words[at]
		}
		if word != "" && !slices.Contains(tolerated, name) {
			wrong = append(wrong, name+" is "+word)
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%w: %s", ErrDirty, strings.Join(wrong, "; "))
	}
	return nil
}

// changes returns what paths in the folder are, if they are not as committed, and what is staged anywhere.
func (g *Git) changes(ctx context.Context) (words map[string]string, staged []string, err error) {
	words = map[string]string{}
	out, err := g.run(ctx, "", "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all",
		"--ignored=matching", "--ignore-submodules=all")
	if err != nil {
		return nil, nil, err
	}
	for entry := range strings.SplitSeq(out, "\x00") {
		if entry == "" {
			continue
		}
		name, word := entry[len("XY "):], "modified, and not committed"
		switch entry[0] {
		case '?':
			word = "untracked"
		case '!':
			word = "ignored, and not committed"
		case ' ':
		default:
			staged = append(staged, name+" is staged")
		}
		if relative, isInside := strings.CutPrefix(name, g.prefix); isInside {
			words[strings.TrimSuffix(relative, "/")] = word
		}
	}
	if out, err = g.run(ctx, "", "ls-files", "--stage", "-z"); err != nil {
		return nil, nil, err
	}
	for entry := range strings.SplitSeq(out, "\x00") {
		if mode, name, _ := strings.Cut(entry, "\t"); strings.HasPrefix(mode, "160000 ") {
			words[name] = "in the submodule " + name
		}
	}
	return words, staged, nil
}

// Commit commits exactly these paths, and returns the short name of the commit; empty if nothing has changed. After an
// error the index has none of them.
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

// stage adds paths to the index, and returns those that are there or that git knows, separated by NUL: it refuses
// others. The list is empty if nothing of them has changed.
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

// unstage takes paths out of the index, also where there is no commit yet.
func (g *Git) unstage(ctx context.Context, list string) error {
	_, err := g.run(context.WithoutCancel(ctx), list, "reset", "--quiet", "--pathspec-from-file=-",
		"--pathspec-file-nul")
	return err
}

// MergeFile merges a text three ways with git merge-file. It implements update.Merge.
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
		cmd := command(ctx, dir, "merge-file", "-p", "--diff3", "-L", name+" (yours)", "-L", name+" (as rendered last)",
			"-L", name+" (convention)", "current", "base", "wanted")
		out, err := cmd.Output()
		var exit *exec.ExitError
		// The status is the number of conflicts, at most 127.
		if errors.As(err, &exit) && exit.ExitCode() > 0 && exit.ExitCode() <= 127 {
			return string(out), true, nil
		}
		if err != nil {
			return "", false, fmt.Errorf("git merge-file: %w", err)
		}
		return string(out), false, nil
	}
}
