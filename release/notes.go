// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

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

// noteCommit is a change since the previous release.
type noteCommit struct{ Hash, Subject string }

// notesInput is the content of the notes.
type notesInput struct {
	Version string
	// Images are the images of the release, and its chart.
	Images []image.Published
	// Upgrade are the upgrade notes in Markdown, as readUpgradeNotes returns them; empty if there are none.
	Upgrade string
	// Commits are sorted by time, the newest commit first.
	Commits []noteCommit
}

// formatNotes returns the notes. The subject of a commit is a sentence that describes the change,
// so subjects are listed without a change.
func formatNotes(in notesInput) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# Bellwether %s\n\n## Install\n\n", in.Version)
	out.WriteString("| | by digest |\n|---|---|\n")
	for _, i := range in.Images {
		fmt.Fprintf(&out, "| %s | `%s:%s@%s` |\n", i.Name, i.Repository, i.Tag, i.Digest)
	}
	out.WriteString("\nThe files are in `checksums.txt`. Upgrade the hub, with its CRDs, and then the agents; the " +
		"CRDs come with the chart, and are in `bellwether-crds.yaml` for those who apply them first. Hub and " +
		"agents may be one minor version apart.\n\n")
	if in.Upgrade != "" {
		out.WriteString(in.Upgrade + "\n\n")
	}
	out.WriteString("## Changes\n\n")
	if len(in.Commits) == 0 {
		out.WriteString("None.\n")
	}
	for _, c := range in.Commits {
		fmt.Fprintf(&out, "- %s (%s)\n", escapeMarkdown(c.Subject), c.Hash)
	}
	return out.String()
}

var markdownEscaper = strings.NewReplacer("<", "&lt;", "@", "&#64;")

// escapeMarkdown prevents a subject from being interpreted as HTML or as a mention of a user.
func escapeMarkdown(text string) string { return markdownEscaper.Replace(text) }

// releasePagesFolder is the folder of the pages about releases, relative to the root of the repository.
const releasePagesFolder = "docs/releases"

// readUpgradeNotes returns the page of a release without its introduction: everything from the first
// heading of the second level. The page is docs/releases/vVERSION.md, or unreleased.md if that
// file does not exist. The result is empty if neither file exists. Relative links become links
// to the source at the version's tag, because the notes are published outside the repository.
func readUpgradeNotes(root, version string) (string, error) {
	tag := "v" + strings.TrimPrefix(version, "v")
	text, err := os.ReadFile(filepath.Join(root, releasePagesFolder, tag+".md"))
	if errors.Is(err, fs.ErrNotExist) {
		text, err = os.ReadFile(filepath.Join(root, releasePagesFolder, "unreleased.md"))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read upgrade notes: %w", err)
	}
	_, body, found := strings.Cut(string(text), "\n## ")
	if !found {
		return "", nil
	}
	return makeLinksAbsolute("## "+strings.TrimSpace(body), tag), nil
}

var linkPattern = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// makeLinksAbsolute replaces relative links by links to the source at the tag. Links to other
// servers, and to headings of the same page, stay unchanged.
func makeLinksAbsolute(markdown, tag string) string {
	return linkPattern.ReplaceAllStringFunc(markdown, func(found string) string {
		target := linkPattern.FindStringSubmatch(found)[1]
		if strings.Contains(target, "://") || strings.HasPrefix(target, "#") {
			return found
		}
		return "](" + image.Source + "/blob/" + tag + "/" + path.Join(releasePagesFolder, target) + ")"
	})
}

// listCommits returns the commits since the previous release's tag, without merges. It returns all
// commits if there is no such tag.
func listCommits(ctx context.Context, root string) ([]noteCommit, error) {
	revisions := "HEAD"
	// HEAD itself can have the tag of this release already, so the search starts at its parent.
	previous, err := runGit(ctx, root, "describe", "--tags", "--match", "v[0-9]*", "--abbrev=0", "HEAD^")
	if err == nil {
		revisions = strings.TrimSpace(previous) + "..HEAD"
	}
	log, err := runGit(ctx, root, "log", "--no-merges", "--format=%h%x09%s", revisions)
	if err != nil {
		return nil, err
	}
	var out []noteCommit
	for line := range strings.Lines(log) {
		hash, subject, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if ok {
			out = append(out, noteCommit{Hash: hash, Subject: subject})
		}
	}
	return out, nil
}

// readCommitTime returns when the current commit was created. All content
// of a release has this time.
func readCommitTime(ctx context.Context, root string) (time.Time, error) {
	text, err := runGit(ctx, root, "log", "-1", "--format=%ct")
	if err != nil {
		return time.Time{}, err
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("read the time of the commit: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// readHead returns the commit that a release is built from.
func readHead(ctx context.Context, root string) (string, error) {
	text, err := runGit(ctx, root, "rev-parse", "HEAD")
	return strings.TrimSpace(text), err
}

// runGit runs git in a folder and returns its output.
func runGit(ctx context.Context, root string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // the callers in this file choose the arguments
	cmd.Dir = root
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("run git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return out.String(), nil
}
