// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
)

const (
	// maxRatio is what was promised: faster than opm, and with less memory.
	maxRatio = 1.0
	// maxLint is what was promised of the lint of the largest bundle.
	maxLint = time.Second
)

func report(o Options, all samples, linted []sample) figure.Section {
	size := fmt.Sprintf("%d × %d bundles", o.Catalog.Packages, o.Catalog.Versions)
	var rows []figure.Row
	compare := func(name string, ours, peer work, promise figure.Promise) {
		for _, aspect := range []struct {
			what  string
			value func([]sample) figure.Quantity
		}{{"time", took}, {"peak memory", peak}} {
			a, b := aspect.value(all[ours]), aspect.value(all[peer])
			rows = append(rows, figure.Row{
				Name: name + ", " + aspect.what, Ours: a, Peer: b, Ratio: figure.Ratio(a, b), Promise: promise,
				Runs: len(all[ours]),
			})
		}
	}
	compare("validate all packages, and `opm validate`, "+size, validate, opmValidate, figure.AtMost(maxRatio))
	compare("compile and validate all packages, and `opm validate`, "+size, compileAll, opmValidate,
		figure.AtMost(maxRatio))
	compare("compile and validate all packages, and `opm render`, "+size, compileAll, opmRender, figure.Promise{})
	rows = append(rows, figure.Row{
		Name: "lint of the bundle " + bundleName(o.Bundle), Ours: took(linted),
		Promise: figure.Below(figure.Duration(maxLint)), Runs: len(linted),
	})
	detail := "Medians. Processor time is that of all cores together, in user and system mode; it depends less on " +
		"what else the machine does.\n\n"
	grid := [][]string{{"what", "time", "processor time", "peak memory"}}
	for _, w := range works {
		grid = append(grid, []string{w.String(), took(all[w]).String(), processor(all[w]).String(),
			peak(all[w]).String()})
	}
	grid = append(grid, []string{"`bellwether bundle lint`", took(linted).String(), processor(linted).String(),
		peak(linted).String()})
	return figure.Section{Key: "catalogs", Title: "Work on whole catalogs, against opm on the same files", Rows: rows,
		Detail: detail + figure.Grid(grid)}
}

// bundleName is the last two folders: the operator's and the version's.
func bundleName(dir string) string {
	return filepath.Base(filepath.Dir(dir)) + " " + filepath.Base(dir)
}

func took(of []sample) figure.Quantity {
	return duration(of, func(s sample) time.Duration { return s.took })
}

func processor(of []sample) figure.Quantity {
	return duration(of, func(s sample) time.Duration { return s.user })
}

func duration(of []sample, value func(sample) time.Duration) figure.Quantity {
	values := make([]time.Duration, len(of))
	for i, one := range of {
		values[i] = value(one)
	}
	return figure.Duration(figure.Median(values))
}

func peak(of []sample) figure.Quantity {
	values := make([]int64, len(of))
	for i, one := range of {
		values[i] = one.peak
	}
	return figure.Bytes(figure.Median(values))
}
