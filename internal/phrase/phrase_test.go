// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package phrase

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPhrases(t *testing.T) {
	for name, test := range map[string]struct{ got, want string }{
		"none":                      {Count(0, "cluster"), "0 clusters"},
		"one":                       {Count(int32(1), "cluster"), "1 cluster"},
		"several":                   {Count(int64(3), "cluster"), "3 clusters"},
		"a part of one":             {Part(0, 1, "cluster"), "0 of 1 cluster"},
		"a word for none":           {Word(0, "is", "are"), "are"},
		"a word for one":            {Word(int64(1), "is", "are"), "is"},
		"a word for several":        {Word(int32(2), "is", "are"), "are"},
		"a part of several":         {Part(1, 3, "cluster"), "1 of 3 clusters"},
		"all of an empty list":      {First(nil, 2), ""},
		"all of a short list":       {First([]string{"a", "b"}, 2), "a, b"},
		"the first of a long list":  {First([]string{"a", "b", "c", "d"}, 2), "a, b and 2 more"},
		"a short text":              {Truncate("abc", 3), "abc"},
		"a long text":               {Truncate("abcd", 3), "ab…"},
		"characters, and not bytes": {Truncate("äöüß", 3), "äö…"},
		"no room":                   {Truncate("ab", 0), "…"},
		"several lines":             {OneLine(" a\n\n\tb  c\n"), "a b c"},
		"a digest": {ShortDigest("sha256:0123456789abcdef0123456789abcdef"),
			"sha256:0123456789ab"},
		"no digest": {ShortDigest("registry.example.com/catalogs/main:latest"),
			"registry.example.com/catalogs/main:latest"},
	} {
		if test.got != test.want {
			t.Errorf("%s: %q, want %q", name, test.got, test.want)
		}
	}
}

func TestWrapMarkdown(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"a paragraph":   {"one two three four", []string{"one two", "three four"}},
		"a list":        {"wait for - three", []string{"wait for -", "three"}},
		"a heading":     {"wait for #12 now", []string{"wait", "for #12 now"}},
		"a number":      {"wait for rev 2. now", []string{"wait for", "rev 2. now"}},
		"a version":     {"go on to 1.2 now", []string{"go on to", "1.2 now"}},
		"a quotation":   {"more than >5 now", []string{"more", "than >5 now"}},
		"a first word":  {"- more than ten", []string{"- more than", "ten"}},
		"several marks": {"it is - - odd", []string{"it is - -", "odd"}},
	} {
		if diff := cmp.Diff(test.want, WrapMarkdown(test.text, 11)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLimitKeepsTheListThatItIsGiven(t *testing.T) {
	list := []string{"a", "b", "c"}
	before := slices.Clone(list)
	if diff := cmp.Diff([]string{"a", "and 2 more"}, Limit(list, 1)); diff != "" {
		t.Errorf("limited (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, Limit(list, 3)); diff != "" {
		t.Errorf("a list that fits (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, list); diff != "" {
		t.Errorf("the list was changed (-want +got):\n%s", diff)
	}
}

func TestWrap(t *testing.T) {
	const command = "`bellwether why prod-1 echo`"
	for name, test := range map[string]struct {
		text    string
		columns int
		want    []string
	}{
		"no limit":              {"a b  c", 0, []string{"a b c"}},
		"at spaces":             {"one two three", 7, []string{"one two", "three"}},
		"a long word":           {"a sha256:0123456789 b", 6, []string{"a", "sha256:0123456789", "b"}},
		"a command is whole":    {"explain it: " + command + ".", 30, []string{"explain it:", command + "."}},
		"a command beside text": {"run " + command + " now", 33, []string{"run " + command, "now"}},
		"a command too long":    {"run `a b c d e` now", 8, []string{"run `a b", "c d e`", "now"}},
		"two commands":          {"`a b` or `c d` or `e f`", 8, []string{"`a b` or", "`c d` or", "`e f`"}},
		"one quote":             {"it is ` open", 7, []string{"it is `", "open"}},
	} {
		if diff := cmp.Diff(test.want, Wrap(test.text, test.columns)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
