// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package badrelease measures what a bad release does to a fleet: it plays the demo, in which a gate of the first wave
// stops a version half of whose reconciles fail, and the version is rolled back in place.
package badrelease

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
	"github.com/bellwether-dev/bellwether/testbed/demo"
)

// Measure plays the demo some times; out receives a line per run.
func Measure(ctx context.Context, out io.Writer, runs int) (figure.Section, error) {
	var all []demo.Protection
	for i := range runs {
		p, err := play(ctx, i)
		if err != nil {
			return figure.Section{}, err
		}
		_, _ = fmt.Fprintf(out, "run %d/%d: stopped after %s, recovered after %s, %d of %d clusters exposed\n", i+1,
			runs, p.Stopped.Round(time.Second), p.Recovered.Round(time.Second), p.Exposed, p.Clusters)
		all = append(all, p)
	}
	return report(all), nil
}

func play(ctx context.Context, run int) (demo.Protection, error) {
	var p demo.Protection
	err := demo.Run(ctx, demo.Options{Name: fmt.Sprintf("bench-bad-release-%d-%d", os.Getpid(), run), Out: io.Discard,
		Protected: func(seen demo.Protection) { p = seen }})
	if err != nil {
		return p, fmt.Errorf("play the demo: %w", err)
	}
	return p, nil
}

// report has the medians; of clusters and requests it has the worst run.
func report(all []demo.Protection) figure.Section {
	var stopped, recovered, paged, resolved []time.Duration
	var worst demo.Protection
	for _, p := range all {
		stopped, recovered = append(stopped, p.Stopped), append(recovered, p.Recovered)
		paged, resolved = append(paged, p.Paged), append(resolved, p.Resolved)
		worst.Exposed = max(worst.Exposed, p.Exposed)
		worst.Clusters = p.Clusters
		worst.FailedElsewhere = max(worst.FailedElsewhere, p.FailedElsewhere)
		worst.RequestsElsewhere = max(worst.RequestsElsewhere, p.RequestsElsewhere)
	}
	row := func(name string, q figure.Quantity) figure.Row {
		return figure.Row{Name: name, Ours: q, Runs: len(all)}
	}
	rows := []figure.Row{
		row("bad release, first failed request to the stop of the rollout", figure.Duration(figure.Median(stopped))),
		row("bad release, first failed request to the last", figure.Duration(figure.Median(recovered))),
		row(fmt.Sprintf("bad release, clusters of %d that got it", worst.Clusters), figure.Count(worst.Exposed)),
		row(fmt.Sprintf("bad release, failed requests of %d to other clusters", worst.RequestsElsewhere),
			figure.Count(worst.FailedElsewhere)),
		row("bad release, first failed request to the page", figure.Duration(figure.Median(paged))),
		row("bad release, last failed request to the resolved incident", figure.Duration(figure.Median(resolved))),
	}
	rows[2].Promise = figure.Below(figure.Count(2))
	rows[3].Promise = figure.Below(figure.Count(1))
	return figure.Section{Key: "bad-release", Title: "A bad release", Rows: rows,
		Detail: "The gate asks for a window of one minute with less than 10 % failing reconciles. Times are medians, " +
			"numbers are those of the worst run. Alertmanager gathers groups for 5 s and repeats after 10 s, in " +
			"place of 30 s and 5 minutes."}
}
