// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package paging measures how long it takes from the first bad minute of a release to the page, and from its recovery
// to the end of the incident, and how often somebody is notified: with Bellwether's rules and routing, and with the
// rules of sloth and of pyrra and the routing that Alertmanager's documentation shows. Each has a real Prometheus and a
// real Alertmanager, all have the strict local Events API, and see the same fleet in real time.
package paging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/pagerduty"
	"github.com/bellwether-dev/bellwether/testbed/poll"
)

const (
	// limit is how long anything may take. The peers' pages end half an hour after the recovery.
	limit = 2 * time.Hour
	look  = time.Second
	// scrape is the default interval of the chart's PodMonitors, and how often the peers' rules are evaluated.
	scrape = 30 * time.Second
	// history is what the peers' pages look back at: 6 hours in sloth's rules, and 6 hours and 26 minutes in pyrra's.
	history = 6*time.Hour + 30*time.Minute
	// verdict is how long a gate takes to judge the wave of a canary (decision 0040).
	verdict = 2 * time.Minute
)

// Options say what to measure.
type Options struct {
	// Sizes are numbers of clusters that a bad release is on. With one, it is a canary whose wave is judged failed.
	Sizes []int
	// Phases is how many releases are bad for each objective whose times are measured, at as many phases of a minute.
	// Each is on three clusters.
	Phases int
	// Faster divides all times. With 60, an hour takes a minute; figures are of use with 1 only.
	Faster int
}

// Measure breaks releases, waits until all of them page, mends them, and waits until all incidents are resolved.
func Measure(ctx context.Context, out io.Writer, o Options) (section figure.Section, err error) {
	m, err := measure(ctx, out, o)
	if err != nil {
		return section, err
	}
	return m.report(), nil
}

// measurement is what is measured, and its outcome: a tally of each release by each way of routing.
type measurement struct {
	Options
	fleet   *fleet
	events  *pagerduty.Server
	sides   []side
	tallies map[string][]tally
}

func measure(ctx context.Context, out io.Writer, o Options) (m *measurement, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	dir, err := os.MkdirTemp("", "bellwether-bench-")
	if err != nil {
		return nil, fmt.Errorf("create folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	paths, err := build.Ensure(ctx, out, build.Prometheus, build.Promtool, build.Alertmanager)
	if err != nil {
		return nil, err
	}
	m = &measurement{Options: o, fleet: newFleet(o)}
	defer m.fleet.close()
	if m.events, err = pagerduty.Start(ctx, pagerduty.Options{Services: services()}); err != nil {
		return nil, err
	}
	defer m.events.Close()
	s := starter{measurement: m, dir: dir, paths: paths}
	defer s.stop(context.WithoutCancel(ctx))
	if m.sides, err = s.start(ctx); err != nil {
		return nil, err
	}
	return m, m.run(ctx, out)
}

// run breaks one release after the other, and mends them when all have paged.
func (m *measurement) run(ctx context.Context, out io.Writer) error {
	fmt.Fprintf(out, "waiting until %d clusters have objectives and slices ...\n", len(m.fleet.members))
	for _, s := range m.sides {
		if err := m.until(ctx, func() error { return s.ready(ctx) }); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%d bad releases ...\n", len(m.fleet.releases))
	if err := m.inTurn(ctx, m.fleet.fail); err != nil {
		return err
	}
	fmt.Fprintln(out, "waiting until all page ...")
	if err := m.until(ctx, m.paged); err != nil {
		return err
	}
	fmt.Fprintln(out, "all are mended ...")
	if err := m.inTurn(ctx, m.fleet.mend); err != nil {
		return err
	}
	fmt.Fprintln(out, "waiting until all incidents are resolved, which takes the peers' half an hour ...")
	if err := m.until(ctx, func() error { return m.resolved(ctx) }); err != nil {
		return err
	}
	var err error
	m.tallies, err = m.tally()
	return err
}

func (m *measurement) until(ctx context.Context, check func() error) error {
	return poll.Until(ctx, look, check)
}

// inTurn does something to all releases within the time of a slice, at times that are equally far apart.
func (m *measurement) inTurn(ctx context.Context, do func(i int, at time.Time)) error {
	ticker := time.NewTicker(m.quick(slo.Step) / time.Duration(len(m.fleet.releases)))
	defer ticker.Stop()
	for i := range m.fleet.releases {
		select {
		case at := <-ticker.C:
			do(i, at)
		case <-ctx.Done():
			return fmt.Errorf("wait for the next release: %w", context.Cause(ctx))
		}
	}
	return nil
}

// quick is what a duration takes in this run.
func (m *measurement) quick(d time.Duration) time.Duration { return d / time.Duration(m.Faster) }

// paged fails while a release has no incident, or where one is made of each cluster, not as many as it has clusters.
func (m *measurement) paged() error {
	tallies, err := m.tally()
	if err != nil {
		return err
	}
	for service, of := range tallies {
		for i, t := range of {
			if want := incidents(service, m.fleet.releases[i]); t.open < want {
				return fmt.Errorf("%s: %d incidents of %s are open, want %d", service, t.open,
					m.fleet.releases[i].operator, want)
			}
		}
	}
	return nil
}

// resolved fails while an incident is open, or will be opened. pyrra's second pair of windows begins to burn during the
// outage, and its alert waits for 16 minutes, so that it pages once more after the first page has ended.
func (m *measurement) resolved(ctx context.Context) error {
	for _, s := range m.sides {
		if err := s.rests(ctx); err != nil {
			return err
		}
	}
	tallies, err := m.tally()
	if err != nil {
		return err
	}
	for service, of := range tallies {
		if i := slices.IndexFunc(of, func(t tally) bool { return t.open > 0 }); i >= 0 {
			return fmt.Errorf("%s: %d incidents of %s are open", service, of[i].open, m.fleet.releases[i].operator)
		}
	}
	return nil
}
