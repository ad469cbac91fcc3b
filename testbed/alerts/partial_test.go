// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package alerts

import (
	"testing"

	"github.com/bellwether-dev/bellwether/testbed/build"
)

// TestPartialOutages plays the stories of outages that are not total, which takes a minute.
func TestPartialOutages(t *testing.T) {
	t.Parallel()
	_, tests := stories(t, sets["csv"], "", "")
	if err := promtool(t.Context(), binary(t, build.Promtool), "test", "rules", "--run", "partial outages",
		tests); err != nil {
		t.Error(err)
	}
}
