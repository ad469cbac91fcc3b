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
