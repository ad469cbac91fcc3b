// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Stress runs tests again and again while something else keeps the processors busy.
type Stress struct {
	Runner
	// N is how often the tests run.
	N int
	// Log is the file that a line for each run is added to.
	Log string
	// Tree identifies what is tested.
	Tree string
}

// rate is how often a test ran, and how often it passed.
type rate struct{ ran, passed int }

// Run runs the tests of a tier N times, and prints how often each test passed, those first that did not always. Only
// folders are tested, if there are any.
func (s Stress) Run(ctx context.Context, entries []Entry, tier Tier, folders []string) error {
	jobs := slices.DeleteFunc(jobsOf(entries, tier), func(j Job) bool {
		return len(folders) > 0 && !slices.Contains(folders, j.Folders[0])
	})
	if len(jobs) == 0 {
		return fmt.Errorf("find tests of tier %s in %s: there are none", tier, strings.Join(folders, ", "))
	}
	if err := s.Components(ctx); err != nil {
		return err
	}
	defer s.Report.Watch()()
	s.tier = tier
	rates := map[string]*rate{}
	jobs = mergeWhole(jobs)
	for i := range s.N {
		s.Report.Printf("run %d of %d", i+1, s.N)
		before, failed := len(s.Report.Packages), len(s.Report.Failures())
		if err := s.runAll(ctx, jobs, s.Parallel); err != nil {
			return err
		}
		for _, p := range s.Report.Packages[before:] {
			countRates(rates, p)
		}
		if err := s.log(tier, folders, s.Report.Failures()[failed:]); err != nil {
			return err
		}
	}
	if s.printRates(rates) {
		return ErrFailed
	}
	return nil
}

// countRates adds the tests of a package, and the package itself where it failed beside its tests.
func countRates(rates map[string]*rate, p *Package) {
	add := func(name string, passed bool) {
		if rates[name] == nil {
			rates[name] = &rate{}
		}
		rates[name].ran++
		if passed {
			rates[name].passed++
		}
	}
	for name, test := range p.Tests {
		if !strings.Contains(name, "/") {
			add(p.Folder+" "+name, !test.failed())
		}
	}
	for _, f := range p.Failures() {
		if f.Test == "" {
			add(p.Folder, false)
		}
	}
}

// printRates returns whether a test failed.
func (s Stress) printRates(rates map[string]*rate) bool {
	always := 0
	for _, name := range slices.Sorted(maps.Keys(rates)) {
		if r := rates[name]; r.passed == r.ran {
			always++
		} else {
			s.Report.Printf("%d/%d  %s", r.passed, r.ran, name)
		}
	}
	s.Report.Printf("%d tests passed in all of %d runs", always, s.N)
	return always < len(rates)
}

// log adds a line for a run, so that runs of several days add up.
func (s Stress) log(tier Tier, folders []string, failures []Failure) error {
	what, verdict := string(tier), "passed"
	if len(folders) > 0 {
		what += " " + strings.Join(folders, ",")
	}
	if len(failures) > 0 {
		verdict = "failed:"
		for _, f := range testsOfFailures(failures) {
			verdict += " " + strings.ReplaceAll(f.Name(), " ", ".")
		}
	}
	return appendLine(s.Log, fmt.Sprintf("%s %s %s %s", time.Now().UTC().Format(time.RFC3339), s.Tree, what, verdict))
}
