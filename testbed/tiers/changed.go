// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// mostFlaky is how many tests of a run may pass only when they run once more.
const mostFlaky = 2

// errDeadline ends what still runs when the time is up.
var errDeadline = errors.New("the time of this run is up")

// Changed runs the tests of a tier whose inputs changed since they last passed on this machine.
type Changed struct {
	Runner
	// Digest identifies the inputs of a job.
	Digest func(Job) (string, error)
	// State is the folder that keeps what the tests of each package last passed with, and the log of flaky tests.
	State string
	// Limit is how long the run may take: what has not ended by then is left to the next run.
	Limit time.Duration
}

// candidate is a package whose tests may have to run.
type candidate struct {
	job    Job
	digest string
	last   passRecord
	// result is nil until the tests have ended.
	result *Package
}

// passRecord is what is kept of a package.
type passRecord struct {
	// Passed is the digest of the inputs with which the tests passed last.
	Passed string `json:"passed,omitempty"`
	// NotRun is whether the last run had no time left for the package.
	NotRun bool `json:"notRun,omitempty"`
}

// Run runs what has changed. A test that fails runs once more, alone; if it passes then, it is reported as flaky, of
// which there may be mostFlaky. Packages that are left when the time is up are reported as not run, and go first in the
// next run; none may be left twice.
func (c *Changed) Run(ctx context.Context, entries []Entry, tier Tier) error {
	start := time.Now()
	defer c.Report.Watch()()
	ctx, cancel := context.WithTimeoutCause(ctx, c.Limit, errDeadline)
	defer cancel()
	c.tier = tier
	return c.conclude(c.runChanged(ctx, entries, tier), time.Since(start))
}

func (c *Changed) runChanged(ctx context.Context, entries []Entry, tier Tier) error {
	candidates, err := c.findChanged(entries, tier)
	if err != nil || len(candidates) == 0 {
		return err
	}
	if err := c.Components(ctx); err != nil {
		return err
	}
	if err := c.runCandidates(ctx, candidates); err != nil {
		return err
	}
	if err := c.rerun(ctx); err != nil {
		return err
	}
	return c.save(candidates)
}

// findChanged returns the packages whose tests have to run: first what the last run left, then what takes longest.
func (c *Changed) findChanged(entries []Entry, tier Tier) ([]*candidate, error) {
	jobs := jobsOf(entries, tier)
	c.Times.sortLongestFirst(jobs, tier)
	var left, rest []*candidate
	for _, job := range jobs {
		digest, err := c.Digest(job)
		if err != nil {
			return nil, err
		}
		last, err := c.load(job.Folders[0])
		if err != nil {
			return nil, err
		}
		one := &candidate{job: job, digest: digest, last: last}
		switch {
		case last.Passed == digest:
			c.Report.Printf("same  %s  unchanged since its tests passed", job.Folders[0])
		case last.NotRun:
			left = append(left, one)
		default:
			rest = append(rest, one)
		}
	}
	return append(left, rest...), nil
}

func (c *Changed) runCandidates(ctx context.Context, candidates []*candidate) error {
	group := errgroup.Group{}
	group.SetLimit(c.Parallel)
	for _, one := range candidates {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ignoreDeadline(ctx, ctx.Err())
			}
			return ignoreDeadline(ctx, c.Test(ctx, one.job, &untilDeadline{Changed: c, ctx: ctx, one: one}))
		})
	}
	return group.Wait()
}

// untilDeadline passes results on as long as there is time, and keeps what passed, so that a run that is killed loses
// nothing else. What ends later was interrupted.
type untilDeadline struct {
	*Changed
	ctx context.Context // of the call whose results these are
	one *candidate
}

// End implements Listener.
func (u *untilDeadline) End(p *Package) {
	if u.ctx.Err() == nil {
		u.one.result = p
		u.Runner.End(p)
		if p.Passed {
			_ = u.keep(u.one.job.Folders[0], passRecord{Passed: u.one.digest}) // save tells of an error
		}
	}
}

// ignoreDeadline returns no error where the time is up: what has not ended is reported as not run.
func ignoreDeadline(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errDeadline) {
		return nil
	}
	return err
}

// rerun runs failed tests once more, one at a time, unless there are too many for all of them to be flaky.
func (c *Changed) rerun(ctx context.Context) error {
	again := testsOfFailures(c.Report.Failures())
	if len(again) > mostFlaky {
		c.Report.Printf("%d tests failed: none runs once more, since %d may be flaky", len(again), mostFlaky)
		return nil
	}
	for _, test := range again {
		if ctx.Err() != nil {
			return ignoreDeadline(ctx, ctx.Err())
		}
		c.Report.Printf("once more, alone: %s", test.Name())
		job := Job{Module: moduleOf(test.Folder), Folders: []string{test.Folder}}
		if test.Test != "" {
			job.Run = selectTests([]string{test.Test})
		}
		var again lastResult
		if err := c.Test(ctx, job, &again); err != nil {
			return ignoreDeadline(ctx, err)
		}
		if again.Package != nil && again.Passed {
			if err := c.noteFlaky(test); err != nil {
				return err
			}
		}
	}
	return nil
}

// lastResult keeps the result of the package that ended last.
type lastResult struct{ *Package }

// Begin implements Listener.
func (*lastResult) Begin(string) {}

// End implements Listener.
func (l *lastResult) End(p *Package) { l.Package = p }

// testsOfFailures returns the tests to run again, without their subtests; of a package that failed beside its tests, no
// name: all of its tests of the tier run again then.
func testsOfFailures(failures []Failure) []Failure {
	var tests []Failure
	for _, f := range failures {
		name, _, _ := strings.Cut(f.Test, "/")
		test := Failure{Folder: f.Folder, Test: name}
		if !slices.ContainsFunc(tests, func(other Failure) bool { return other.Name() == test.Name() }) {
			tests = append(tests, test)
		}
	}
	return tests
}

// noteFlaky reports a test that failed and then passed, and keeps its name for `make test-times`.
func (c *Changed) noteFlaky(test Failure) error {
	c.Report.Printf("FLAKY %s", test.Name())
	c.Report.Forget(test.Folder, test.Test)
	return appendLine(c.flakyLog(), fmt.Sprintf("%s %s", time.Now().UTC().Format(time.RFC3339), test.Name()))
}

func (c *Changed) flakyLog() string { return filepath.Join(c.State, "flaky.log") }

// save keeps what passed, and reports what did not run.
func (c *Changed) save(candidates []*candidate) error {
	failed := map[string]bool{}
	for _, f := range c.Report.Failures() {
		failed[f.Folder] = true
	}
	for _, one := range candidates {
		folder, next := one.job.Folders[0], one.last
		switch {
		case one.result == nil:
			c.Report.Printf("NOT RUN %s", folder)
			if one.last.NotRun {
				c.Report.Fail(Failure{Folder: folder,
					Message: []string{"two runs in a row left it: give them more time (LIMIT), or make it faster"}})
			}
			next.NotRun = true
		case failed[folder]:
			next.NotRun = false
		default:
			next = passRecord{Passed: one.digest}
		}
		if err := c.keep(folder, next); err != nil {
			return err
		}
	}
	return nil
}

func (c *Changed) keep(folder string, record passRecord) error {
	text, err := json.Marshal(record)
	if err == nil {
		err = writeFile(c.recordOf(folder), text)
	}
	if err != nil {
		return fmt.Errorf("keep result of %s: %w", folder, err)
	}
	return nil
}

func (c *Changed) recordOf(folder string) string {
	return filepath.Join(c.State, strings.ReplaceAll(folder, "/", "_")+".json")
}

// load returns what is kept of a package. What cannot be read counts as nothing.
func (c *Changed) load(folder string) (passRecord, error) {
	var last passRecord
	text, err := os.ReadFile(c.recordOf(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return last, nil
	}
	if err != nil {
		return last, fmt.Errorf("read result of %s: %w", folder, err)
	}
	if json.Unmarshal(text, &last) != nil {
		last = passRecord{}
	}
	return last, nil
}
