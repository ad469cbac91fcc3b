// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package alerts

import "testing"

// TestPartialOutages plays the stories of outages that are not total, which takes a minute.
func TestPartialOutages(t *testing.T) {
	t.Parallel()
	_, tests := stories(t, sets["csv"], "", "")
	if err := playFile(t, tests, "partial outages"); err != nil {
		t.Error(err)
	}
}
