// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lintrules

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fence   = regexp.MustCompile("(?ms)^```.*?^```")
	span    = regexp.MustCompile("`[^`\n]*`")
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinks follows every relative link of the documentation to its file, and
// to the heading that it names.
func TestLinks(t *testing.T) {
	for _, page := range pages(t) {
		for _, match := range link.FindAllStringSubmatch(span.ReplaceAllString(withoutCode(read(t, page)), "``"), -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			file := page
			if target != "" {
				file = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s, which is not there", page, match[1])
				continue
			}
			if anchor != "" && filepath.Ext(file) == ".md" && !anchors(t, file)[anchor] {
				t.Errorf("%s links to %s, which has no such heading", page, match[1])
			}
		}
	}
}

// pages returns all Markdown files of the tree, except for expected results of tests.
func pages(t *testing.T) []string {
	t.Helper()
	var found []string
	walkSources(t, os.DirFS(root(t)), func(file string, _ []byte) {
		if path.Ext(file) == ".md" {
			found = append(found, filepath.Join(root(t), filepath.FromSlash(file)))
		}
	})
	return found
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func withoutCode(text string) string { return fence.ReplaceAllString(text, "") }

// anchors returns the anchors of a page's headings: lower case, without punctuation, with dashes for spaces.
func anchors(t *testing.T, file string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(withoutCode(read(t, file)), -1) {
		name := dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(match[1])), "")
		found[strings.ReplaceAll(name, " ", "-")] = true
	}
	return found
}

var metric = regexp.MustCompile(`"(bellwether_[a-z_]+)"`)

// TestMetrics checks that every metric in the code is in the reference of metrics.
func TestMetrics(t *testing.T) {
	reference := read(t, filepath.Join(root(t), "docs", "reference", "metrics.md"))
	sources, err := filepath.Glob(filepath.Join(root(t), "controllers", "*", "metrics.go"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("found no metrics.go: %v", err)
	}
	for _, source := range sources {
		for _, match := range metric.FindAllStringSubmatch(read(t, source), -1) {
			if !strings.Contains(reference, "| `"+match[1]+"` |") {
				t.Errorf("%s is not in docs/reference/metrics.md", match[1])
			}
		}
	}
}
