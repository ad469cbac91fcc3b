// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/alerts/slo/scenario"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

// playScenarios evaluates the rules of Bellwether and sloth in all scenarios with promtool.
func (a *app) playScenarios(ctx context.Context, target slo.PPM) ([]scenario.Result, error) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		return nil, exit.Hintf("install Prometheus 3, which has promtool, or remove --scenarios",
			"promtool is not on the PATH: it evaluates the rules in the scenarios")
	}
	dir, err := os.MkdirTemp("", "bellwether-scenarios-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	sets, err := writeRuleSets(dir, target)
	if err != nil {
		return nil, err
	}
	scenarios := scenario.All()
	scores := make([][]scenario.Score, len(sets))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range sets {
		scores[i] = make([]scenario.Score, len(scenarios))
	}
	for j, s := range scenarios {
		for i, rules := range sets {
			a.Warn("Playing %q with the rules of %s (%d of %d)...\n", s.Name, rules.Name, j*len(sets)+i+1,
				len(scenarios)*len(sets))
			group.Go(func() error {
				pages, err := playScenario(ctx, promtool, dir, s, rules)
				scores[i][j] = s.Score(pages)
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out := make([]scenario.Result, len(sets))
	for i, rules := range sets {
		out[i] = scenario.NewResult(rules.Name, scores[i])
	}
	return out, nil
}

// writeRuleSets writes the compared rule sets into a folder, and returns them.
func writeRuleSets(dir string, target slo.PPM) ([]scenario.Rules, error) {
	sets, err := scenario.BuildRules(target)
	if err != nil {
		return nil, addHint(err)
	}
	for _, rules := range sets {
		if err := os.WriteFile(filepath.Join(dir, rules.File), rules.Text, 0o600); err != nil {
			return nil, fmt.Errorf("write rules: %w", err)
		}
	}
	return sets, nil
}

// playScenario evaluates one scenario with one rule set, and returns the pages.
func playScenario(ctx context.Context, promtool, dir string, s scenario.Scenario, rules scenario.Rules) (
	[]scenario.Page, error) {
	text, err := s.Test(rules)
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(dir, "test-*.yaml")
	if err != nil {
		return nil, fmt.Errorf("write test: %w", err)
	}
	_, err = file.Write(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("write test: %w", err)
	}
	//nolint:gosec // the path from LookPath, and a file of this function
	run := exec.CommandContext(ctx, promtool, "test", "rules", file.Name())
	run.Dir = dir
	var output bytes.Buffer
	run.Stdout, run.Stderr = &output, &output
	err = run.Run()
	var failed *exec.ExitError
	// promtool exits with an error status whenever an alert pages, so this status is not an error here.
	if err != nil && !errors.As(err, &failed) {
		return nil, fmt.Errorf("promtool: %w", err)
	}
	pages, readErr := s.Pages(output.Bytes())
	// An error status without pages has another cause.
	if readErr == nil && err != nil && len(pages) == 0 {
		return nil, fmt.Errorf("promtool: %w: %.500s", err, output.Bytes())
	}
	return pages, readErr
}

// formatScenarios returns the scores as aligned columns, or as a Markdown table.
func formatScenarios(all []scenario.Result, markdown bool) string {
	rows := [][]string{{"SCENARIO", "RULES", "FAILURES", "FOUND", "PAGES", "LOST", "DETECTED", "RESET"}}
	newRow := func(rules string, s scenario.Score) []string {
		return []string{s.Scenario, rules, strconv.Itoa(s.Failures), strconv.Itoa(s.Found), strconv.Itoa(s.Pages),
			strconv.Itoa(s.Lost), formatMedian(s.Detection), formatMedian(s.Reset)}
	}
	for i := range all[0].Scores {
		for _, set := range all {
			rows = append(rows, newRow(set.Rules, set.Scores[i]))
		}
	}
	for _, set := range all {
		rows = append(rows, newRow(set.Rules, set.All))
	}
	text := formatGrid(rows, markdown) + "\n"
	for _, set := range all {
		text += fmt.Sprintf("%s: recall %.3f, precision %.3f.\n", set.Rules, set.Recall, set.Precision)
	}
	return text + "\nEach failure calls for one page; every further page is not justified. LOST counts the pages " +
		"that resolved\nbefore their failure ended. DETECTED and RESET are medians.\n"
}

// formatMedian returns the median of durations in minutes; "-" if there are none.
func formatMedian(values []int) string {
	m, ok := scenario.Median(values)
	if !ok {
		return "-"
	}
	return formatMinutes(m)
}
