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

// Clone is a shallow clone of a branch, in a folder that belongs to this program. Its content can be deleted.
type Clone struct {
	*Git
	Branch, Head string // the branch that is checked out, and its commit
	url          string
}

// OpenClone clones a branch of a remote into a folder, or updates the existing clone. If branch is empty, it uses the
// default branch of the remote.
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
		return nil, ctx.Err() //nolint:wrapcheck // it is the caller's context
	}
	// The folder is empty, or contains files of a killed process that git does not accept.
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	if _, err := c.run(ctx, "", "init", "--quiet", "--template="); err != nil {
		return nil, err
	}
	return c, c.checkout(ctx)
}

// checkout fetches the branch and makes the folder equal to it.
func (c *Clone) checkout(ctx context.Context) error {
	err := c.fetch(ctx, c.Branch, 1)
	if err == nil {
		_, err = c.run(ctx, "", "checkout", "--quiet", "--force", "--detach", fetchedRef)
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

// fetchedRef refers to the commit that was fetched last.
const fetchedRef = "FETCH_HEAD"

// fetch fetches the last commits of a branch.
func (c *Clone) fetch(ctx context.Context, branch string, depth int) error {
	_, err := c.run(ctx, "", "-c", "gc.autoDetach=false", "fetch", "--quiet", fmt.Sprintf("--depth=%d", depth),
		"--no-tags", "--no-recurse-submodules", "--", c.url, "refs/heads/"+branch)
	return err
}

// Tip is the last commit of a branch of a remote.
type Tip struct {
	Commit, Tree string
	Parent       string // the parents, separated by spaces
	IsOwn        bool   // Push created it, and its tree is unchanged
}

// treeTrailer begins the line of a commit message with the tree of the commit. If another user changes the commit, its
// tree differs from this line.
const treeTrailer = "Boilerplate-Tree: "

// Tip returns the last commit of a branch of the remote; nil if the branch does not exist.
func (c *Clone) Tip(ctx context.Context, branch string) (*Tip, error) {
	out, err := c.run(ctx, "", "ls-remote", "--", c.url, "refs/heads/"+branch)
	if err != nil || out == "" {
		return nil, err
	}
	if err := c.fetch(ctx, branch, 2); err != nil { // the commit and its parent
		return nil, err
	}
	out, err = c.run(ctx, "", "log", "-1", "--no-show-signature", "--format=%H%n%T%n%P%n%B", fetchedRef)
	if err != nil {
		return nil, err
	}
	parts := strings.SplitN(out, "\n", 4) // as in the format above
	t := &Tip{Commit: parts[0], Tree: parts[1], Parent: parts[2]}
	t.IsOwn = strings.HasSuffix(strings.TrimSpace(parts[3]), "\n"+treeTrailer+t.Tree)
	return t, nil
}

// Stage adds paths to the index and returns the resulting tree; empty if the tree is equal to the tree of Head.
func (c *Clone) Stage(ctx context.Context, paths []string) (string, error) {
	list, err := c.stage(ctx, paths)
	if err != nil || list == "" {
		return "", err
	}
	tree, err := c.run(ctx, "", "write-tree")
	return strings.TrimSpace(tree), err
}

// Push commits the staged tree on Head and replaces a branch of the remote by this commit. tip is the expected commit
// of the branch, nil if it does not exist; if the branch has changed, Push returns an error.
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
	// Hooks of a local remote would run on this machine.
	if _, err := os.Lstat(strings.TrimPrefix(c.url, "file://")); err == nil {
		args = append(args, "--receive-pack=git -c core.hooksPath="+os.DevNull+" receive-pack")
	}
	_, err = c.run(ctx, "", append(args, "--", c.url, "HEAD:refs/heads/"+branch)...)
	return err
}

// RemoteURL returns the URL of the remote "origin" of a local clone.
func RemoteURL(ctx context.Context, dir string) (string, error) {
	out, err := (&Git{Dir: dir}).run(ctx, "", "remote", "get-url", "origin")
	return strings.TrimSpace(out), err
}
