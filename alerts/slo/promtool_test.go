// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// TestPromtoolKillsMutants breaks the rules, one place at a time, and expects the
// generated tests to notice.
func TestPromtoolKillsMutants(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not on the PATH; it has to be of Prometheus 3")
	}
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	for name, m := range map[string]struct{ set, from, to, test string }{
		"factor":           {"default", "clamp_max(14.4 *", "clamp_max(28.8 *", "clusters of"},
		"long window":      {"default", "slice[1h]", "slice[2h]", "what an alert says"},
		"comparison":       {"default", "sum1h / 60 > on", "sum1h / 60 < on", "what an alert says"},
		"guard":            {"strict", "slo_objective:ratio + 2.5", "slo_objective:ratio + 0.5", "clusters of"},
		"budget":           {"default", "sum_over_time(bellwether:sli_bad:slice[30d])", "sum_over_time(bellwether:sli_bad:slice[1h])", "what an alert says"},
		"clusters covered": {"default", "max_over_time(bellwether:slo_release_burn:", "max_over_time(bellwether:slo_no_burn:", "a bad release"},
		"upgrade":          {"default", "topk by (cluster, operator) (1, ", "topk by (cluster, operator) (2, ", "an upgrade"},
		"note of an edit":  {"default", "changes(bellwether:slo_objective:ratio[1d])", "changes(bellwether:slo_objective:ratio[1m])", "an objective"},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := os.ReadFile(filepath.Join("testdata", m.set+".rules.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			tests, err := os.ReadFile(filepath.Join("testdata", m.set+".tests.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			mutant := strings.ReplaceAll(string(rules), m.from, m.to)
			if mutant == string(rules) {
				t.Fatalf("the rules have no %q", m.from)
			}
			dir := t.TempDir()
			for file, text := range map[string]string{m.set + ".rules.yaml": mutant, "tests.yaml": string(tests)} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", "--run", m.test, filepath.Join(dir, "tests.yaml")).CombinedOutput(); err == nil {
				t.Errorf("the tests pass with %q for %q\n%s", m.to, m.from, out)
			}
		})
	}
}
