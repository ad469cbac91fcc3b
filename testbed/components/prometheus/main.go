// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command test-rules runs tests of rules as `promtool test rules` does, with less processor time.
//
// promtool parses the expression of every rule at every evaluation, evaluates it even if it reads metrics that the test
// does not have, and writes every sample to a log on disk. That is three quarters of its work. This program parses an
// expression once, leaves out what cannot have a result, and keeps all samples in memory. Rules, queries, storage and
// the notation of series are those of Prometheus.
//
// It reads the files that promtool reads. A field that no test of this repository uses is an error. Differences are
// printed in another format than promtool's.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace/noop"
	"go.yaml.in/yaml/v2"
)

// testFile is a file of tests.
type testFile struct {
	RuleFiles []string       `yaml:"rule_files"`
	Interval  model.Duration `yaml:"evaluation_interval"`
	Fuzzy     bool           `yaml:"fuzzy_compare"`
	Order     []string       `yaml:"group_eval_order"`
	Tests     []testCase     `yaml:"tests"`
}

type testCase struct {
	Name   string      `yaml:"name"`
	Series []input     `yaml:"input_series"`
	Exprs  []exprTest  `yaml:"promql_expr_test"`
	Alerts []alertTest `yaml:"alert_rule_test"`
}

type input struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

type exprTest struct {
	Expr string         `yaml:"expr"`
	At   model.Duration `yaml:"eval_time"`
	Want []struct {
		Labels string  `yaml:"labels"`
		Value  float64 `yaml:"value"`
	} `yaml:"exp_samples"`
}

type alertTest struct {
	At    model.Duration `yaml:"eval_time"`
	Alert string         `yaml:"alertname"`
	Want  []struct {
		Labels      map[string]string `yaml:"exp_labels"`
		Annotations map[string]string `yaml:"exp_annotations"`
	} `yaml:"exp_alerts"`
}

func main() {
	// A run is short, so it may use more memory to collect garbage less often.
	debug.SetGCPercent(400)
	// The default one waits for another one to be set, and makes spans until then.
	otel.SetTracerProvider(noop.NewTracerProvider())
	names := flag.String("run", "", "regular expression of the names of the tests to run")
	flag.Parse()
	failed := false
	for _, path := range flag.Args() {
		for _, err := range runFile(path, *names) {
			failed = true
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if failed {
		os.Exit(1)
	}
}

// runFile runs the tests of a file whose names match.
func runFile(path, names string) []error {
	selected, err := regexp.Compile(names)
	if err != nil {
		return []error{fmt.Errorf("parse -run: %w", err)}
	}
	file, err := readFile(path)
	if err != nil {
		return []error{err}
	}
	file.Tests = slices.DeleteFunc(file.Tests, func(t testCase) bool { return !selected.MatchString(t.Name) })
	// Tests that compare annotations need other rules than those that do not.
	loaders := map[bool]*loader{true: newLoader(true), false: newLoader(false)}
	var errs []error
	for _, test := range file.Tests {
		for _, err := range runTest(file, test, loaders[len(test.Alerts) > 0]) {
			errs = append(errs, fmt.Errorf("run test %q: %w", test.Name, err))
		}
	}
	return errs
}

func readFile(path string) (testFile, error) {
	var file testFile
	text, err := os.ReadFile(path)
	if err != nil {
		return file, fmt.Errorf("read tests: %w", err)
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return file, fmt.Errorf("parse tests: %w", err)
	}
	if file.Interval == 0 {
		file.Interval = model.Duration(time.Minute)
	}
	for i, name := range file.RuleFiles {
		if !filepath.IsAbs(name) {
			file.RuleFiles[i] = filepath.Join(filepath.Dir(path), name)
		}
	}
	return file, nil
}

// end is the last time that a test looks at.
func (t testCase) end() time.Duration {
	var out model.Duration
	for _, e := range t.Exprs {
		out = max(out, e.At)
	}
	for _, a := range t.Alerts {
		out = max(out, a.At)
	}
	return time.Duration(out)
}
