// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestPromtool has the real promtool check the golden rules and run their tests,
// where it is installed. The partial outages take days of minutes, and are left
// out by -short.
func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not on the PATH; it has to be of Prometheus 3")
	}
	for name := range sets() {
		run := func(args ...string) {
			if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
				t.Errorf("promtool %v: %v\n%.4000s", args, err, out)
			}
		}
		run("check", "rules", filepath.Join("testdata", name+".rules.yaml"))
		tests := []string{"clusters of", "what an alert says", "a bad release", "an upgrade", "an objective"}
		if !testing.Short() {
			tests = append(tests, "partial outages")
		}
		args := []string{"test", "rules"}
		for _, test := range tests {
			args = append(args, "--run", test)
		}
		run(append(args, filepath.Join("testdata", name+".tests.yaml"))...)
	}
}
