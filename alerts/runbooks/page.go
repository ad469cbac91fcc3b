// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package runbooks

import (
	"regexp"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	pages "github.com/bellwether-dev/bellwether/docs/runbooks"
)

// OtherPages are the pages that belong to no single alert.
var OtherPages = []string{"README", "slis"}

// Alerts returns the names of the alerts that have a page.
func Alerts() []string {
	entries, err := pages.Files.ReadDir(".")
	if err != nil {
		panic(err) // the folder is in the binary
	}
	var out []string
	for _, e := range entries {
		if name := strings.TrimSuffix(e.Name(), ".md"); !slices.Contains(OtherPages, name) {
			out = append(out, name)
		}
	}
	return out
}

// Page returns the runbook of an alert, in Markdown. It returns false if the alert has none.
func Page(alert string) (markdown string, ok bool) {
	if slices.Contains(OtherPages, alert) {
		return "", false
	}
	text, err := pages.Files.ReadFile(alert + ".md")
	return string(text), err == nil
}

// Section returns the part of an alert's runbook about an SLI, in Markdown and with
// its heading. It returns false if the alert is not about an SLI, or has no page.
func Section(alert, sli string) (markdown string, ok bool) {
	page, ok := Page(alert)
	if !ok || !slo.IsAboutSLI(alert) {
		return "", false
	}
	_, rest, ok := strings.Cut(page, "\n## "+slo.FindSection(sli)+"\n")
	if !ok {
		return "", false
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	rest, _, _ = strings.Cut(rest, "\n<!--")
	return "## " + slo.FindSection(sli) + "\n\n" + strings.TrimSpace(rest) + "\n", true
}

var (
	fence       = regexp.MustCompile("(?ms)^```.*?^```")
	heading     = regexp.MustCompile(`(?m)^#+ (.+)$`)
	punctuation = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// listAnchors returns the anchors of the headings of a page, in the form that GitHub generates:
// lower case, without punctuation, with dashes for spaces. The page's own title is included.
func listAnchors(page string) map[string]bool {
	out := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		name := punctuation.ReplaceAllString(strings.ToLower(strings.TrimSpace(match[1])), "")
		out[strings.ReplaceAll(name, " ", "-")] = true
	}
	return out
}
