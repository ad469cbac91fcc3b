// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lintrules

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var (
	titled    = regexp.MustCompile(`\A#+ \S`)
	shortcode = regexp.MustCompile(`\{\{[<%]`)
)

// TestSitePages checks what the build of the site needs of the documentation: each page begins with its title and is
// in a section, and the pages that the sections name exist. (Hugo itself is not run in .ci/run: see decision 0070.)
func TestSitePages(t *testing.T) {
	patterns := sitePatterns(t)
	docs := os.DirFS(root(t))
	for _, pattern := range patterns {
		if strings.Contains(pattern, "*") {
			continue
		}
		if text, err := os.ReadFile(filepath.Join(root(t), pattern)); err != nil || len(text) == 0 {
			t.Errorf("internal/tools/site/hugo.yaml names %s, which is not there: %v", pattern, err)
		}
	}
	walkSources(t, docs, func(file string, text []byte) {
		if !strings.HasPrefix(file, "docs/") || path.Ext(file) != ".md" {
			return
		}
		if !titled.Match(text) {
			t.Errorf("%s does not begin with a heading, which is the title of its page", file)
		}
		if shortcode.Match(text) {
			t.Errorf("%s has a text that Hugo takes for a shortcode", file)
		}
		if !slices.ContainsFunc(patterns, func(pattern string) bool {
			matched, err := path.Match(pattern, file)
			return err == nil && matched
		}) {
			t.Errorf("%s is in no section of the site: add it to params.nav in internal/tools/site/hugo.yaml", file)
		}
	})
}

// sitePatterns returns the files and patterns of all sections of the site.
func sitePatterns(t *testing.T) []string {
	t.Helper()
	var config struct {
		Params struct {
			Nav []struct {
				Index string   `json:"index"`
				Pages []string `json:"pages"`
			} `json:"nav"`
		} `json:"params"`
	}
	text := read(t, filepath.Join(root(t), "internal", "tools", "site", "hugo.yaml"))
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, section := range config.Params.Nav {
		if section.Index != "" {
			out = append(out, section.Index)
		}
		out = append(out, section.Pages...)
	}
	if len(out) == 0 {
		t.Fatal("internal/tools/site/hugo.yaml has no sections in params.nav")
	}
	return out
}
