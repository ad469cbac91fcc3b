// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Clone is a shallow clone of a branch, in a folder that is this program's own: what is in it can be given up.
type Clone struct {
	*Git
	Branch, Head string // what is checked out, and its commit
	url          string
}

// OpenClone clones a branch of a remote into a folder, or brings the clone in it to what the remote has now. Without a
// branch it is the remote's default one.
func OpenClone(ctx context.Context, dir, url, branch string) (*Clone, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	c := &Clone{Git: &Git{Dir: dir, gitDir: filepath.Join(dir, ".git")}, Branch: branch, url: url}
	if branch == "" {
		out, err := c.run(ctx, "", "ls-remote", "--symref", "--", url, "HEAD")
		if err != nil {
			return nil, err
		}
		line, _, _ := strings.Cut(out, "\tHEAD")
		var ok bool
		if c.Branch, ok = strings.CutPrefix(line, "ref: refs/heads/"); !ok {
			return nil, fmt.Errorf("%s has no default branch: name one", url)
		}
	}
	if _, err := os.Lstat(c.gitDir); err == nil && c.checkout(ctx) == nil {
		return c, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err() //nolint:wrapcheck // the caller's own
	}
	// Nothing is there, or a process that was killed has left something that git does not take.
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	if _, err := c.run(ctx, "", "init", "--quiet", "--template="); err != nil {
		return nil, err
	}
	return c, c.checkout(ctx)
}

// checkout makes the folder what the branch has now.
func (c *Clone) checkout(ctx context.Context) error {
	err := c.fetch(ctx, c.Branch, 1)
	if err == nil {
		_, err = c.run(ctx, "", "checkout", "--quiet", "--force", "--detach", fetched)
	}
	if err == nil {
		_, err = c.run(ctx, "", "clean", "--quiet", "-ffdx")
	}
	if err == nil {
		c.Head, err = c.run(ctx, "", "rev-parse", "HEAD")
		c.Head = strings.TrimSpace(c.Head)
	}
	return err
}

// fetched is what was fetched last.
const fetched = "FETCH_HEAD"

func (c *Clone) fetch(ctx context.Context, branch string, depth int) error {
	_, err := c.run(ctx, "", "-c", "gc.autoDetach=false", "fetch", "--quiet", fmt.Sprintf("--depth=%d", depth),
		"--no-tags", "--no-recurse-submodules", "--", c.url, "refs/heads/"+branch)
	return err
}

// Tip is the last commit of a branch of a remote.
type Tip struct {
	Commit, Tree string
	Parent       string // all of its parents
	IsOwn        bool   // it is one of Push, and has the tree that was pushed
}

// treeTrailer is a line in the message of a commit, with its tree: of what somebody else changed, it has another one.
const treeTrailer = "Boilerplate-Tree: "

// Tip returns the last commit of a branch of the remote; nil if there is no such branch.
func (c *Clone) Tip(ctx context.Context, branch string) (*Tip, error) {
	out, err := c.run(ctx, "", "ls-remote", "--", c.url, "refs/heads/"+branch)
	if err != nil || out == "" {
		return nil, err
	}
	if err := c.fetch(ctx, branch, 2); err != nil { // with its parent
		return nil, err
	}
	out, err = c.run(ctx, "", "log", "-1", "--no-show-signature", "--format=%H%n%T%n%P%n%B", fetched)
	if err != nil {
		return nil, err
	}
	parts := strings.SplitN(out, "\n", 4) // as in the format
	t := &Tip{Commit: parts[0], Tree: parts[1], Parent: parts[2]}
	t.IsOwn = strings.HasSuffix(strings.TrimSpace(parts[3]), "\n"+treeTrailer+t.Tree)
	return t, nil
}

// Stage adds paths to the index, and returns the tree that a commit has with them; empty if it is that of Head.
func (c *Clone) Stage(ctx context.Context, paths []string) (string, error) {
	list, err := c.stage(ctx, paths)
	if err != nil || list == "" {
		return "", err
	}
	tree, err := c.run(ctx, "", "write-tree")
	return strings.TrimSpace(tree), err
}

// Push makes a branch of the remote one commit on Head, with what was staged. tip is what the branch has, nil if there
// is none; if it has something else by now, that is an error.
func (c *Clone) Push(ctx context.Context, branch string, tip *Tip, message, tree string) error {
	message = strings.TrimSpace(message) + "\n\n" + treeTrailer + tree + "\n"
	_, err := c.run(ctx, message, "commit", "--quiet", "--no-verify", "--cleanup=verbatim", "--file=-")
	if err != nil {
		return err
	}
	lease := "--force-with-lease=refs/heads/" + branch + ":"
	if tip != nil {
		lease += tip.Commit
	}
	args := []string{"push", "--quiet", "--no-verify", "--no-recurse-submodules", lease}
	if _, err := os.Lstat(strings.TrimPrefix(c.url, "file://")); err == nil { // Its hooks would run on this machine.
		args = append(args, "--receive-pack=git -c core.hooksPath="+os.DevNull+" receive-pack")
	}
	_, err = c.run(ctx, "", append(args, "--", c.url, "HEAD:refs/heads/"+branch)...)
	return err
}

// RemoteURL returns where a local clone is from.
func RemoteURL(ctx context.Context, dir string) (string, error) {
	out, err := (&Git{Dir: dir}).run(ctx, "", "remote", "get-url", "origin")
	return strings.TrimSpace(out), err
}
