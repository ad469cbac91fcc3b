// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// ErrFailed says that tests failed; the report has said which.
var ErrFailed = errors.New("tests failed")

// Runner runs the tests of a tier.
type Runner struct {
	// Test runs one job.
	Test func(ctx context.Context, job Job, listener Listener) error
	// Components builds what tests of the testbed run.
	Components func(ctx context.Context) error
	// Parallel is how many calls of the go command run at a time.
	Parallel int
	Report   *Report
	Times    *Times
	// tier is the one whose tests run.
	tier Tier
}

// Run runs all tests of a tier once: those of the product beside those of the testbed, which mostly wait.
func (r Runner) Run(ctx context.Context, entries []Entry, tier Tier) error {
	start := time.Now()
	defer r.Report.Watch()()
	r.tier = tier
	jobs := mergeWhole(jobsOf(entries, tier))
	r.Times.sortLongestFirst(jobs, tier)
	testbed := slices.DeleteFunc(slices.Clone(jobs), func(j Job) bool { return j.Module == "." })
	product := slices.DeleteFunc(jobs, func(j Job) bool { return j.Module != "." })

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.runAll(ctx, product, 1) })
	group.Go(func() error {
		if len(testbed) == 0 {
			return nil
		}
		if err := r.Components(ctx); err != nil {
			return err
		}
		return r.runAll(ctx, testbed, r.Parallel)
	})
	return r.conclude(group.Wait(), time.Since(start))
}

// conclude reports a run that ended with err and keeps its times.
func (r Runner) conclude(err error, took time.Duration) error {
	if err != nil {
		r.Report.Fail(Failure{Folder: "tier " + string(r.tier), Message: []string{err.Error()}})
	}
	r.Report.Print(took)
	if err == nil && len(r.Report.Failures()) > 0 {
		err = ErrFailed
	}
	return errors.Join(err, r.Times.Save())
}

func (r Runner) runAll(ctx context.Context, jobs []Job, parallel int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, job := range jobs {
		group.Go(func() error { return r.Test(ctx, job, r) })
	}
	return group.Wait()
}

// Begin implements Listener.
func (r Runner) Begin(folder string) { r.Report.Begin(folder) }

// End implements Listener.
func (r Runner) End(p *Package) {
	r.Report.Add(p)
	r.Times.Add(p, r.tier)
}
