// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package viewserver

import (
	"fmt"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
)

func report(o Options, large, small samples) figure.Section {
	big, little := size(o.Large.Packages, o.Large.Versions), size(o.Small.Packages, o.Small.Versions)
	var rows []figure.Row
	compare := func(name string, of samples, ours, peer server, promise figure.Promise) {
		for _, aspect := range []struct {
			what  string
			value func([]sample) figure.Quantity
		}{{"resident memory once ready", resident}, {"time to ready", ready}} {
			a, b := aspect.value(of[ours]), aspect.value(of[peer])
			rows = append(rows, figure.Row{
				Name: name + ", " + aspect.what, Ours: a, Peer: b, Ratio: figure.Ratio(a, b), Promise: promise,
				Runs: len(of[ours]),
			})
		}
	}
	compare("view server and `opm serve`, "+big, large, view, opm, figure.AtMost(maxRatio))
	compare("the same with opm's cache built before", large, view, opmCached, figure.Promise{})
	compare("whole catalog and `opm serve`, "+big, large, whole, opm, figure.AtMost(maxWhole))
	compare("whole catalog and `opm serve` with opm's cache built before", large, whole, opmCached, figure.Promise{})
	for _, c := range calls {
		a, b := slowest(large[whole], c), slowest(large[opm], c)
		rows = append(rows, figure.Row{
			Name: "whole catalog and `opm serve`, " + big + ", p99 of " + c.String(), Ours: a, Peer: b,
			Ratio:   figure.Ratio(a, b),
			Promise: figure.AtMost(maxWhole), Runs: len(large[whole]),
		})
	}
	compare("view server and `opm serve`, "+little, small, view, opm, figure.Promise{})
	detail := "Medians of each server by itself. Anonymous memory is what no file backs, which the system cannot " +
		"take back under pressure; " +
		"opm's cache is a mapped file. The last column is the resident memory after one client listed all bundles, " +
		"as OLM does when it connects.\n\n"
	detail += figure.Grid(append([][]string{{"catalog", "server", "ready", "resident", "of which anonymous",
		"resident after a listing"}},
		append(lines(big, large), lines(little, small)...)...))
	detail += fmt.Sprintf("\nHow long answers take, from the %s catalog. Each run asks %d times for a package, %d "+
		"times for a bundle, both at random "+
		"but the same of every server, and lists all bundles %d times; one client asks one question after another. "+
		"The p99 of so few listings is the slowest one.\n\n",
		big, singleCalls, singleCalls, listings)
	detail += figure.Grid(append([][]string{{"server", "call", "median", "p99"}}, latencies(large)...))
	return figure.Section{Key: "view", Title: "Catalog servers, against `opm serve` on the same catalog", Rows: rows,
		Detail: detail}
}

func size(packages, versions int) string { return fmt.Sprintf("%d × %d bundles", packages, versions) }

func lines(name string, of samples) [][]string {
	var out [][]string
	for _, s := range servers {
		out = append(out, []string{
			name, s.String(), ready(of[s]).String(), resident(of[s]).String(),
			memory(of[s], func(one sample) int64 { return one.anonymous }).String(),
			memory(of[s], func(one sample) int64 { return one.read }).String(),
		})
	}
	return out
}

func latencies(of samples) [][]string {
	var out [][]string
	for _, s := range servers {
		if s == view {
			continue
		}
		for _, c := range calls {
			all := timesOf(of[s], c)
			out = append(out, []string{s.String(), c.String(), figure.Duration(figure.Median(all)).String(),
				slowest(of[s], c).String()})
		}
	}
	return out
}

// slowest is the 99th percentile over all runs.
func slowest(of []sample, c call) figure.Quantity {
	return figure.Duration(figure.Quantile(timesOf(of, c), 0.99))
}

func timesOf(of []sample, c call) []time.Duration {
	var all []time.Duration
	for _, one := range of {
		all = append(all, one.took[c]...)
	}
	return all
}

func resident(of []sample) figure.Quantity {
	return memory(of, func(one sample) int64 { return one.resident })
}

func ready(of []sample) figure.Quantity {
	values := make([]time.Duration, len(of))
	for i, one := range of {
		values[i] = one.ready
	}
	return figure.Duration(figure.Median(values))
}

func memory(of []sample, value func(sample) int64) figure.Quantity {
	values := make([]int64, len(of))
	for i, one := range of {
		values[i] = value(one)
	}
	return figure.Bytes(figure.Median(values))
}
