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

	"github.com/bellwether-dev/bellwether/boilerplate/update"
)

// ErrNotRepository says that a folder is in no git repository, or that git does not work there.
var ErrNotRepository = errors.New("not a git repository")

// Git is the git repository that a folder is in.
type Git struct {
	dir string
	// prefix is the folder's path from the root of the repository; empty, or with a slash at its end.
	prefix string
}

// OpenGit finds the repository of a folder. Errors wrap ErrNotRepository, and say why.
func OpenGit(ctx context.Context, dir string) (*Git, error) {
	g := &Git{dir: dir}
	out, err := g.run(ctx, "", "rev-parse", "--is-inside-work-tree", "--show-prefix")
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNotRepository, dir, err)
	}
	inside, prefix, _ := strings.Cut(out, "\n")
	if inside != "true" {
		return nil, fmt.Errorf("%w: %s: it has no work tree", ErrNotRepository, dir)
	}
	g.prefix = strings.TrimSuffix(prefix, "\n")
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
	cmd.Dir = dir
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return slices.ContainsFunc(gitVariables, func(name string) bool { return strings.HasPrefix(v, name) })
	})
	cmd.Env = append(cmd.Env, "GIT_LITERAL_PATHSPECS=1", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
		"GIT_EDITOR=true")
	return cmd
}

// run returns what git prints. An error has what it says.
func (g *Git) run(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := command(ctx, g.dir, args...)
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

// Status is what of a repository is not committed.
type Status struct {
	// Staged are paths from the root of the repository.
	Staged []string
	// Changed says what of paths in the folder is not committed: modified, untracked, ignored.
	Changed map[string]string
	// Submodules are the paths of submodules in the folder.
	Submodules []string
	// Operation is a merge or the like that is not finished; empty if there is none.
	Operation string
}

// Status reads what is not committed.
func (g *Git) Status(ctx context.Context) (*Status, error) {
	s := &Status{Changed: map[string]string{}}
	out, err := g.run(ctx, "", "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all",
		"--ignored=matching", "--ignore-submodules=all")
	if err != nil {
		return nil, err
	}
	for entry := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if len(entry) > 3 { //nolint:mnd // two letters and a space
			s.add(entry[:2], entry[3:], g.prefix)
		}
	}
	if out, err = g.run(ctx, "", "ls-files", "--stage", "-z"); err != nil {
		return nil, err
	}
	for entry := range strings.SplitSeq(out, "\x00") {
		if mode, name, ok := strings.Cut(entry, "\t"); ok && strings.HasPrefix(mode, "160000 ") {
			s.Submodules = append(s.Submodules, name)
		}
	}
	s.Operation, err = g.operation(ctx)
	return s, err
}

func (s *Status) add(letters, name, prefix string) {
	words := map[byte]string{'?': "untracked", '!': "ignored, and not committed"}
	if _, ok := words[letters[0]]; !ok && letters[0] != ' ' {
		s.Staged = append(s.Staged, name)
	}
	relative, inside := strings.CutPrefix(name, prefix)
	if !inside {
		return
	}
	word := words[letters[0]]
	if word == "" {
		word = "modified, and not committed"
	}
	s.Changed[strings.TrimSuffix(relative, "/")] = word
}

// operation names a merge, rebase or the like that is not finished.
func (g *Git) operation(ctx context.Context) (string, error) {
	for _, o := range []struct{ file, name string }{{"MERGE_HEAD", "merge"}, {"rebase-merge", "rebase"},
		{"rebase-apply", "rebase"}, {"CHERRY_PICK_HEAD", "cherry-pick"}, {"REVERT_HEAD", "revert"}} {
		out, err := g.run(ctx, "", "rev-parse", "--git-path", o.file)
		if err != nil {
			return "", err
		}
		name := strings.TrimSpace(out)
		if !filepath.IsAbs(name) {
			name = filepath.Join(g.dir, name)
		}
		if _, err := os.Lstat(name); err == nil {
			return o.name, nil
		}
	}
	return "", nil
}

// ErrDirty says that a repository has changes that an update could mix with its own, or overwrite.
var ErrDirty = errors.New("the repository has changes that are not committed")

// CheckClean refuses an update of paths of which somebody has changes that are not committed, of a repository with
// anything staged, and of paths in submodules. Errors wrap ErrDirty, and name the paths. Paths in tolerated may have
// changes.
func (s *Status) CheckClean(paths []string, tolerated ...string) error {
	if s.Operation != "" {
		return fmt.Errorf("%w: a %s is not finished", ErrDirty, s.Operation)
	}
	if len(s.Staged) > 0 {
		return fmt.Errorf("%w: staged: %s", ErrDirty, strings.Join(s.Staged, ", "))
	}
	var wrong []string
	for _, name := range paths {
		if folder, inside := isInside(name, s.Submodules); inside {
			wrong = append(wrong, fmt.Sprintf("%s is in the submodule %s", name, folder))
		}
		word := s.Changed[name]
		for dir := path.Dir(name); word == "" && dir != "."; dir = path.Dir(dir) {
			word = s.Changed[dir] // an ignored folder is one entry
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

// Commit commits exactly these paths, and returns the short name of the commit; empty if nothing has changed. After an
// error the index has none of them.
func (g *Git) Commit(ctx context.Context, message string, paths []string) (string, error) {
	known, err := g.known(ctx, paths)
	if err != nil || len(known) == 0 {
		return "", err
	}
	list := strings.Join(known, "\x00")
	fromStdin := []string{"--pathspec-from-file=-", "--pathspec-file-nul"}
	if _, err := g.run(ctx, list, append([]string{"add", "--all", "--force"}, fromStdin...)...); err != nil {
		return "", errors.Join(err, g.unstage(ctx, list))
	}
	staged, err := g.run(ctx, "", "diff", "--cached", "--name-only")
	if err != nil || staged == "" {
		return "", err
	}
	_, err = g.run(ctx, list, append([]string{"commit", "--quiet", "--only", "--no-verify", "--message", message},
		fromStdin...)...)
	if err != nil {
		return "", errors.Join(err, g.unstage(ctx, list))
	}
	out, err := g.run(ctx, "", "rev-parse", "--short", "HEAD")
	return strings.TrimSpace(out), err
}

// known are those of the paths that are there or that git knows: it refuses others.
func (g *Git) known(ctx context.Context, paths []string) ([]string, error) {
	out, err := g.run(ctx, "", "ls-files", "-z")
	if err != nil {
		return nil, err
	}
	tracked := map[string]bool{}
	for name := range strings.SplitSeq(out, "\x00") {
		tracked[name] = true
	}
	return slices.DeleteFunc(slices.Clone(paths), func(name string) bool {
		_, err := os.Lstat(filepath.Join(g.dir, filepath.FromSlash(name)))
		return err != nil && !tracked[name]
	}), nil
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

// Diff returns the differences between files before and after, as git shows them.
func Diff(ctx context.Context, changes []update.Change) (string, error) {
	dir, err := os.MkdirTemp("", "bellwether-diff-*")
	if err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for _, side := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, side), 0o700); err != nil {
			return "", fmt.Errorf("make a folder: %w", err)
		}
	}
	for _, c := range changes {
		if err := errors.Join(writeSide(dir, "a", c.Path, c.Before), writeSide(dir, "b", c.Path, c.After)); err != nil {
			return "", err
		}
	}
	out, err := command(ctx, dir, "diff", "--no-index", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames",
		"--no-prefix", "a", "b").Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return string(out), nil
	}
	if err != nil {
		return "", fmt.Errorf("git diff: %w", err)
	}
	return string(out), nil
}

func writeSide(dir, side, name string, f *update.File) error {
	if f == nil || f.Obstacle != "" {
		return nil
	}
	target := filepath.Join(dir, side, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	mode := os.FileMode(0o644)
	if f.Executable {
		mode = 0o755
	}
	if err := os.WriteFile(target, []byte(f.Text), mode); err != nil { //nolint:gosec // git shows the mode
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
