// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"testing"

	"github.com/bellwether-dev/bellwether/dashboards"
	"github.com/bellwether-dev/bellwether/dashboards/lint"
)

func TestDashboardsAreClean(t *testing.T) {
	for _, f := range lint.Check(dashboards.All()) {
		t.Error(f)
	}
}
