// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package phrase

import "testing"

func TestMarkdown(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "",
		"it lost data":                     "it lost data",
		" two\nlines ":                     "two lines",
		"looks *good* to `me`":             "looks \\*good\\* to \\`me\\`",
		"<b>bold</b>":                      `\<b>bold\</b>`,
		"<!-- hidden -->":                  `\<!-- hidden -->`,
		"<https://example.com>":            `\<https://example.com>`,
		"less than: 3 < 5, 3<5, a <- b":    "less than: 3 < 5, 3<5, a <- b",
		"more than: 5 > 3 && 3 > 2":        "more than: 5 > 3 && 3 > 2",
		"&lt; &#60; &#x3c;":                `\&lt; \&#60; \&#x3c;`,
		"Q&A; R&D":                         `Q\&A; R&D`,
		"[click](https://example.com)":     `\[click](https://example.com)`,
		"known | flaky":                    "known | flaky",
		"deployment_name and _emphasis_":   `deployment_name and \_emphasis\_`,
		`C:\data\new and \* and a tail \`:  `C:\data\new and \\\* and a tail \\`,
		"~/.kube/config":                   "~/.kube/config",
		"~~gone~~":                         `\~\~gone\~\~`,
		"1.13.1-202409180000, #12, @anna!": "1.13.1-202409180000, #12, @anna!",
	} {
		if got := Markdown(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
