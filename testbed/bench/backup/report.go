// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
)

// report writes the figures of all runs: medians, and the median of the runs' ratios.
func report(all []run, objects int) figure.Section {
	times := func(name string, ours, peer func(run) time.Duration) figure.Row {
		row := figure.Row{Name: name, Runs: len(all), Ours: figure.Duration(median(all, ours)),
			Peer: figure.Duration(median(all, peer))}
		row.Ratio = median(all, func(r run) float64 { return float64(ours(r)) / float64(peer(r)) })
		return row
	}
	memory := func(name string, ours, peer func(run) int64) figure.Row {
		row := figure.Row{Name: name, Runs: len(all), Ours: figure.Bytes(int64(median(all, inBytes(ours))))}
		if peer != nil {
			row.Peer = figure.Bytes(int64(median(all, inBytes(peer))))
			row.Ratio = figure.Ratio(row.Ours, row.Peer)
		}
		return row
	}
	above := memory("backup, memory of the agent above its own", func(r run) int64 { return r.memory },
		func(r run) int64 { return r.getMemory })
	above.Promise = figure.Below(figure.Bytes(maxMemory))
	return figure.Section{
		Key: "backup", Title: fmt.Sprintf("Backup and restore of %d custom resources, against kubectl", objects),
		Rows: []figure.Row{
			times("backup, written and read back", func(r run) time.Duration { return r.backup },
				func(r run) time.Duration { return r.get }),
			above,
			times("restore into an empty cluster", func(r run) time.Duration { return r.restore },
				func(r run) time.Duration { return r.apply }),
			memory("restore, memory", func(r run) int64 { return r.restoreMemory },
				func(r run) int64 { return r.applyMemory }),
		},
		Detail: "The peers are `kubectl get -o json` into a file, and `kubectl apply -f` of it.",
	}
}

func inBytes(of func(run) int64) func(run) float64 {
	return func(r run) float64 { return float64(of(r)) }
}

func median[T ~int64 | ~float64](all []run, of func(run) T) T {
	values := make([]T, len(all))
	for i, r := range all {
		values[i] = of(r)
	}
	return figure.Median(values)
}
