// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

const objectives = `apiVersion: bellwether.dev/v1alpha1
kind: OperatorSLO
metadata: {name: echo}
spec:
  operator: echo
  objectives: [{sli: available, target: "99.9"}]
`

func objectivesFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objectives.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestSLOGenerate(t *testing.T) {
	w := clitest.NewWorld()
	file := objectivesFile(t, objectives)
	got := w.Run(t, "slo", "generate", file)
	rules, err := slo.Build(slo.Set{
		Default: slo.DefaultProfile(),
		Operators: []slo.Operator{{Namespace: "default", Name: "echo",
			Objectives: []slo.Objective{{SLI: "available", Target: 999_000}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want, err := slo.File(rules.All())
	if err != nil {
		t.Fatal(err)
	}
	note := "default/echo: available, tier 1h: 1 bad minutes would be enough, but one bad sample is not to " +
		"alert; it waits for 3\n"
	if diff := cmp.Diff(clitest.Result{Out: string(want), Err: note}, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}

	out := filepath.Join(t.TempDir(), "rules.yaml")
	if got := w.Run(t, "slo", "generate", "-o", "objects", "--rules-namespace", "obs", "--file",
		out); got.Code != exit.OK {
		t.Fatal(got.Err)
	}
	text, err := os.ReadFile(out)
	if err != nil || !strings.HasPrefix(string(text),
		"---\napiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n") ||
		!strings.Contains(string(text), "namespace: obs") || strings.Contains(string(text), "\nstatus:") {
		t.Errorf("objects (%v):\n%.400s", err, text)
	}
}

// TestSLOGenerateWithoutBadSLOs generates the rules of the SLOs that are right.
func TestSLOGenerateWithoutBadSLOs(t *testing.T) {
	const one = `
- name: %s
  objective: 99.9
  sli: {events: {error_query: 'sum(rate(errors_total[{{.window}}]))', total_query: 'sum(rate(%s[{{.window}}]))'}}
  alerting: {name: X}`
	file := objectivesFile(t, "version: prometheus/v1\nservice: echo\nslos:"+fmt.Sprintf(one, "good", "all_total")+
		fmt.Sprintf(one, "bad", "all_total{")+fmt.Sprintf(one, "worse", "all-total"))
	got := clitest.NewWorld().Run(t, "slo", "generate", file)
	want := `: slo bad: operator default/echo: own SLI "bad": all requests: invalid query `
	if got.Code != exit.Error || !strings.Contains(got.Out, `sli: good`) || strings.Contains(got.Out, `sli: bad`) ||
		!strings.Contains(got.Err, want) || !strings.HasSuffix(got.Err, "Error: 2 SLOs are left out\n"+
		"Hint:  correct or remove them; the others are not affected\n") {
		t.Errorf("exit code %d, standard error:\n%s", got.Code, got.Err)
	}
}

func TestSLOErrorsSayWhatToDo(t *testing.T) {
	w := clitest.NewWorld()
	file := func(from, to string) string { return objectivesFile(t, strings.Replace(objectives, from, to, 1)) }
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"comma": {[]string{"slo", "generate", file("99.9", "99,9")},
			"write it with a point, as in 99.9\nHint:  use a percentage above 0 and below 100, for example \"99.9\"\n"},
		"100": {[]string{"slo", "simulate", "--target", "100"},
			"\nHint:  use a percentage above 0 and below 100, for example \"99.9\"\n"},
		"ten years": {[]string{"slo", "simulate", "--period", "3650d"}, "\nHint:  use a period such as 30d or 4w\n"},
		"unknown SLI": {[]string{"slo", "generate", file("available", "availabel")},
			"did you mean available?\nHint:  the format and the SLIs are described in docs/guides/slos.md\n"},
		"no objectives": {[]string{"slo", "generate", "--no-default"},
			"Error: no objectives\nHint:  set a file, or remove --no-default\n"},
		"format": {[]string{"slo", "generate", "-o", "json"},
			"use one of yaml, objects\n"},
		"no such file": {[]string{"slo", "generate", "none.yaml"},
			"Error: read objectives: open none.yaml: no such file or directory\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := w.Run(t, test.args...); got.Code != exit.Error || !strings.HasSuffix(got.Err, test.want) {
				t.Errorf("exit code %d and\n%s\nwant\n%s", got.Code, got.Err, test.want)
			}
		})
	}
}

func TestSLOSimulate(t *testing.T) {
	w := clitest.NewWorld()
	text := w.Run(t, "slo", "simulate", "--target", "99", "--runs", "2")
	if !strings.HasPrefix(text.Out, "99 % over 30d, 2 runs, seed 1\n\nTIER  SEVERITY") ||
		!strings.Contains(text.Out, "\n1h    page      14.4    100 %       9 min     8.64 min  4 min    4.28 min\n") {
		t.Errorf("text:\n%s%s", text.Out, text.Err)
	}
	if markdown := w.Run(t, "slo", "simulate", "--target", "99", "--runs", "2", "-o",
		"markdown"); !strings.Contains(markdown.Out,
		"|\n|---|---|---|---|---|---|---|---|\n| 1h | page | 14.4 | 100 % |") {
		t.Errorf("Markdown:\n%s%s", markdown.Out, markdown.Err)
	}
	var r slo.Result
	if err := json.Unmarshal([]byte(w.Run(t, "slo", "simulate", "--target", "99", "--runs", "2", "-o", "json").Out),
		&r); err != nil || r.Target != "99" || len(r.Timings) != 12 {
		t.Errorf("JSON: %v, %+v", err, r)
	}
}

func TestSLOTest(t *testing.T) {
	w := clitest.NewWorld()
	t.Setenv("PATH", t.TempDir())
	dir := filepath.Join(t.TempDir(), "out")
	got := w.Run(t, "slo", "test", "--dir", dir)
	if got.Code != exit.OK || !strings.Contains(got.Err, "promtool (Prometheus 3) is not on the PATH") {
		t.Errorf("exit code %d, %s", got.Code, got.Err)
	}
	for _, name := range []string{"rules.yaml", "tests.yaml"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || len(text) < 1000 {
			t.Errorf("%s: %v, %d bytes", name, err, len(text))
		}
	}
	// What promtool says is the answer: here a program that likes nothing.
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "promtool"), []byte("#!/bin/sh\necho \"$@\"\nexit 3\n"),
		0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":/bin:/usr/bin")
	if got := w.Run(t, "slo", "test", "--dir", dir); got.Code != exit.Error || got.Out != "check rules rules.yaml\n" ||
		!strings.Contains(got.Err, "promtool check: exit status 3") {
		t.Errorf("exit code %d, %s%s", got.Code, got.Out, got.Err)
	}
}
