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

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/alerts/slo/scenario"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

// scenarioScores are how a rule set did in all scenarios.
type scenarioScores struct {
	Rules  string           `json:"rules"`
	Scores []scenario.Score `json:"scores"`
	All    scenario.Score   `json:"all"`
	// Recall and Precision are over all scenarios.
	Recall    float64 `json:"recall"`
	Precision float64 `json:"precision"`
}

// playScenarios has promtool evaluate Bellwether's rules and sloth's in all
// scenarios.
func (a *app) playScenarios(ctx context.Context, target slo.PPM) ([]scenarioScores, error) {
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
	sets, err := ruleSets(dir, target)
	if err != nil {
		return nil, err
	}
	scenarios := scenario.All()
	out := make([]scenarioScores, len(sets))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, rules := range sets {
		out[i] = scenarioScores{Rules: rules.Name, Scores: make([]scenario.Score, len(scenarios))}
	}
	for j, s := range scenarios {
		for i, rules := range sets {
			a.Warn("Playing %q with the rules of %s (%d of %d)...\n", s.Name, rules.Name, j*len(sets)+i+1,
				len(scenarios)*len(sets))
			group.Go(func() error {
				pages, err := pagesOf(ctx, promtool, dir, s, rules)
				out[i].Scores[j] = s.Score(pages)
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i := range out {
		out[i].All = scenario.Sum(out[i].Scores)
		out[i].Recall, out[i].Precision = out[i].All.Recall(), out[i].All.Precision()
	}
	return out, nil
}

// ruleSets writes the rule sets that are compared into a folder.
func ruleSets(dir string, target slo.PPM) ([]scenario.Rules, error) {
	rules, err := slo.Build(scenario.Set(target))
	if err != nil {
		return nil, sloError(err)
	}
	text, err := slo.File(rules.All())
	if err != nil {
		return nil, err
	}
	sets := []scenario.Rules{
		{Name: "Bellwether", File: "bellwether.yaml", Order: rules.Order(), Page: pageMatcher},
		{Name: "sloth " + scenario.SlothVersion, File: "sloth.yaml", Order: scenario.SlothOrder(),
			Page: pageMatcher, Apart: true},
	}
	for name, text := range map[string][]byte{sets[0].File: text, sets[1].File: scenario.SlothRules(target)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return nil, fmt.Errorf("write rules: %w", err)
		}
	}
	return sets, nil
}

// pageMatcher selects alerts that page.
var pageMatcher = fmt.Sprintf("%s=%q", series.Severity, series.Page)

// pagesOf plays one scenario with one rule set.
func pagesOf(ctx context.Context, promtool, dir string, s scenario.Scenario, rules scenario.Rules) ([]scenario.Page,
	error,
) {
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
	//nolint:gosec // the program just found, and a file of our own
	run := exec.CommandContext(ctx, promtool, "test", "rules", file.Name())
	run.Dir = dir
	var output bytes.Buffer
	run.Stdout, run.Stderr = &output, &output
	err = run.Run()
	var failed *exec.ExitError
	// It fails wherever something pages.
	if err != nil && !errors.As(err, &failed) {
		return nil, fmt.Errorf("promtool: %w", err)
	}
	pages, readErr := s.Pages(output.Bytes())
	if readErr == nil && err != nil && len(pages) == 0 {
		return nil, fmt.Errorf("promtool: %w: %.500s", err, output.Bytes())
	}
	return pages, readErr
}

// scenariosText is the scores as columns, or as a Markdown table.
func scenariosText(all []scenarioScores, markdown bool) string {
	rows := [][]string{{"SCENARIO", "RULES", "FAILURES", "FOUND", "PAGES", "LOST", "DETECTED", "RESET"}}
	row := func(rules string, s scenario.Score) []string {
		return []string{s.Scenario, rules, strconv.Itoa(s.Failures), strconv.Itoa(s.Found), strconv.Itoa(s.Pages),
			strconv.Itoa(s.Lost), median(s.Detection), median(s.Reset)}
	}
	for i := range all[0].Scores {
		for _, set := range all {
			rows = append(rows, row(set.Rules, set.Scores[i]))
		}
	}
	for _, set := range all {
		rows = append(rows, row(set.Rules, set.All))
	}
	text := grid(rows, markdown) + "\n"
	for _, set := range all {
		text += fmt.Sprintf("%s: recall %.3f, precision %.3f.\n", set.Rules, set.Recall, set.Precision)
	}
	return text + "\nEach failure calls for one page; every further page is not justified. LOST counts the pages " +
		"that resolved\nbefore their failure ended. DETECTED and RESET are medians.\n"
}

func median(of []int) string {
	m, ok := scenario.Median(of)
	if !ok {
		return "-"
	}
	return minutes(m)
}
