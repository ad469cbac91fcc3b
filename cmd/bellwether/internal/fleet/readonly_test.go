// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
)

// TestJoinReadOnly checks that --read-only is refused before any change if the agent cannot be read-only.
func TestJoinReadOnly(t *testing.T) {
	h := clitest.NewHub(clitest.Cluster("prod-1", nil), installed("prod-1", "1.0.0"))
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"hosted": {[]string{"new", "--read-only", "--hosted", "--cluster-kubeconfig", "f"},
			"exclude each other"},
		"by another tool": {[]string{"new", "--read-only", "--write-manifest", "f"}, "agent.readOnly"},
		"operators are managed": {[]string{"prod-1", "--read-only", "--cluster-kubeconfig", "f"},
			"has operators that Bellwether manages"},
	} {
		t.Run(name, func(t *testing.T) {
			got := h.Run(t, append([]string{"fleet", "join"}, test.args...)...)
			if got.Code == 0 || !strings.Contains(got.Err, test.want) {
				t.Errorf("exit code %d: %s, want an error with %q", got.Code, got.Err, test.want)
			}
		})
	}
}
