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

// pages are all Markdown files of the tree but those that tests compare with.
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

// anchors are the names that a page's headings get: lower case, without
// punctuation, with dashes for spaces.
func anchors(t *testing.T, file string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(withoutCode(read(t, file)), -1) {
		name := dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(match[1])), "")
		found[strings.ReplaceAll(name, " ", "-")] = true
	}
	return found
}

var (
	command = regexp.MustCompile("(?m)(?:^|`|\\$ )bellwether ([a-z][^`\n#|]*)")
	word    = regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	metric  = regexp.MustCompile(`"(bellwether_[a-z_]+)"`)
	option  = regexp.MustCompile(`(?:^|\s)(--[a-z][a-z-]*)`)
)

// TestCommands looks every command line of the documentation up in the
// reference of commands: the command exists, and has the flags it is given.
func TestCommands(t *testing.T) {
	checked := 0
	for _, page := range pages(t) {
		if strings.Contains(page, filepath.Join("docs", "reference")) {
			continue
		}
		for _, match := range command.FindAllStringSubmatch(strings.ReplaceAll(read(t, page), "\\\n", " "), -1) {
			checked++
			reference := referenceOf(t, strings.Fields(match[1]))
			if reference == "" {
				t.Errorf("%s: there is no command %q", page, match[0])
				continue
			}
			for _, flag := range option.FindAllStringSubmatch(match[1], -1) {
				if !strings.Contains(reference, flag[1]+" ") {
					t.Errorf("%s: %q has no flag %s", page, match[0], flag[1])
				}
			}
		}
	}
	if checked < 20 {
		t.Errorf("found only %d command lines in the documentation", checked)
	}
}

// TestMetrics asks for every metric of the code in the reference of metrics.
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

// referenceOf is the reference of the command that the words begin with: the
// longest that there is a page for. A parent given a word that is none of its
// commands is unknown.
func referenceOf(t *testing.T, words []string) string {
	t.Helper()
	dir, name := filepath.Join(root(t), "docs", "reference", "cli"), "bellwether"
	for _, w := range words {
		next := name + "_" + w
		if _, err := os.Stat(filepath.Join(dir, next+".md")); !word.MatchString(w) || err != nil {
			break
		}
		name = next
	}
	if name == "bellwether" {
		return ""
	}
	return read(t, filepath.Join(dir, name+".md"))
}
