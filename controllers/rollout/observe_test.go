// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import "testing"

// TestCacheIsNotOlderThanWhatItEquals: the resource version of a list is newer than that of each of its objects.
func TestCacheIsNotOlderThanWhatItEquals(t *testing.T) {
	const list = "900"
	live := view{installs: 3, newest: "120"}
	tests := map[string]struct {
		live, cached view
		want         string
	}{
		"the same":                           {live, live, "120"},
		"the cache lacks the newest":         {live, view{3, "119"}, list},
		"the cache has one that is gone":     {live, view{4, "120"}, list},
		"the cache lacks one":                {live, view{2, "110"}, list},
		"there are none":                     {view{}, view{}, list},
		"the cache is ahead, as one is gone": {live, view{4, "130"}, list},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.live.observed(test.cached, list); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
