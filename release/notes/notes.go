// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notes writes the notes of a release from its page in docs/releases and the commits since the one before.
package notes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/release/image"
)

// Commit is a change since the release before.
type Commit struct{ Hash, Subject string }

// Release is what the notes tell of.
type Release struct {
	Version string
	// Images of the release, and its chart.
	Images []image.Published
	// Upgrade are the upgrade notes in Markdown, as UpgradeNotes returns them; empty if there are none.
	Upgrade string
	// Commits are the newest first.
	Commits []Commit
}

// Markdown returns the notes. The subjects of commits are sentences that say what changed, so they are listed as they
// are.
func Markdown(r Release) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# Bellwether %s\n\n## Install\n\n", r.Version)
	out.WriteString("| | by digest |\n|---|---|\n")
	for _, i := range r.Images {
		fmt.Fprintf(&out, "| %s | `%s:%s@%s` |\n", i.Name, i.Repository, i.Tag, i.Digest)
	}
	out.WriteString("\nThe files are in `checksums.txt`. Upgrade the hub, with its CRDs, and then the agents; the " +
		"CRDs come with the chart, and are in `bellwether-crds.yaml` for those who apply them first. Hub and " +
		"agents may be one minor version apart.\n\n")
	if r.Upgrade != "" {
		out.WriteString(r.Upgrade + "\n\n")
	}
	out.WriteString("## Changes\n\n")
	if len(r.Commits) == 0 {
		out.WriteString("None.\n")
	}
	for _, c := range r.Commits {
		fmt.Fprintf(&out, "- %s (%s)\n", escape(c.Subject), c.Hash)
	}
	return out.String()
}

var escaper = strings.NewReplacer("<", "&lt;", "@", "&#64;")

// escape keeps a subject from being read as HTML or as a mention of somebody.
func escape(text string) string { return escaper.Replace(text) }

// pages is the folder of the pages about releases, relative to the root of the repository.
const pages = "docs/releases"

// UpgradeNotes returns what the page of a release has below its introduction, from the first heading of the second
// level on. The page is docs/releases/vVERSION.md, or unreleased.md while there is none for that version; without
// either, the notes are empty. Its relative links become links to the source at the version's tag, because the notes
// are read elsewhere.
func UpgradeNotes(root, version string) (string, error) {
	tag := "v" + strings.TrimPrefix(version, "v")
	text, err := os.ReadFile(filepath.Join(root, pages, tag+".md"))
	if errors.Is(err, fs.ErrNotExist) {
		text, err = os.ReadFile(filepath.Join(root, pages, "unreleased.md"))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read upgrade notes: %w", err)
	}
	_, below, found := strings.Cut(string(text), "\n## ")
	if !found {
		return "", nil
	}
	return absolute("## "+strings.TrimSpace(below), tag), nil
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// absolute makes links to the source at that tag of the relative ones.
func absolute(markdown, tag string) string {
	return link.ReplaceAllStringFunc(markdown, func(found string) string {
		target := link.FindStringSubmatch(found)[1]
		if strings.Contains(target, "://") || strings.HasPrefix(target, "#") {
			return found
		}
		return "](" + image.Source + "/blob/" + tag + "/" + path.Join(pages, target) + ")"
	})
}

// Since returns the commits since the last tag of a release before this commit; all of them where there is none.
// Merges are left out.
func Since(ctx context.Context, root string) ([]Commit, error) {
	among := "HEAD"
	if previous, err := git(ctx, root, "describe", "--tags", "--match", "v[0-9]*", "--abbrev=0", "HEAD^"); err == nil {
		among = strings.TrimSpace(previous) + "..HEAD"
	}
	log, err := git(ctx, root, "log", "--no-merges", "--format=%h%x09%s", among)
	if err != nil {
		return nil, err
	}
	var out []Commit
	for line := range strings.Lines(log) {
		hash, subject, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if ok {
			out = append(out, Commit{Hash: hash, Subject: subject})
		}
	}
	return out, nil
}

// CommitTime is when the current commit was made. Everything of a release has that time.
func CommitTime(ctx context.Context, root string) (time.Time, error) {
	text, err := git(ctx, root, "log", "-1", "--format=%ct")
	if err != nil {
		return time.Time{}, err
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("read the time of the commit: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// Head is the commit that a release is built from.
func Head(ctx context.Context, root string) (string, error) {
	text, err := git(ctx, root, "rev-parse", "HEAD")
	return strings.TrimSpace(text), err
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // the callers above name what is run
	cmd.Dir = root
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("run git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return out.String(), nil
}
