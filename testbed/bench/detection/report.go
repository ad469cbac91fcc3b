// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package detection

import (
	"fmt"
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
)

// How long the median outage may take with slices of 60 s, and with those of 15 s of critical operators.
const (
	promised         = 180 * time.Second
	promisedCritical = 60 * time.Second
)

// report judges what was measured.
func report(sides []side) figure.Section {
	var rows []figure.Row
	for _, s := range sides {
		row := func(what string, took time.Duration, p figure.Promise) figure.Row {
			return figure.Row{Name: s.name + ": outage to page, " + what, Ours: figure.Duration(took), Promise: p,
				Runs: len(s.took)}
		}
		rows = append(rows, row("median", figure.Median(s.took), figure.Below(figure.Duration(s.promised))),
			row("shortest", slices.Min(s.took), figure.Promise{}), row("longest", slices.Max(s.took), figure.Promise{}))
	}
	detail := fmt.Sprintf("In real time, with one real Prometheus for each criticality: %[1]d clusters, on each of "+
		"which all replicas of an operator go away, at %[1]d different phases of a minute. The SLI is `%[2]s` at its "+
		"default target of 99.9 %%. Each cluster runs another version, so that no release is blamed. It counts from "+
		"the moment at which the exporter says so to the evaluation in which the page of the cluster fires; what "+
		"Alertmanager waits for (`group_wait`) comes on top. Exporters are scraped every %[3]s, the default of "+
		"the chart's PodMonitors, and every %[4]s for the critical operator, as the guide advises: see decision "+
		"[0029](decisions/0029-critical-operators-have-slices-of-15-seconds.md).",
		len(sides[0].took), sli, sides[0].scrape, sides[1].scrape)
	return figure.Section{Key: "detection", Title: "Time to detect a total outage", Rows: rows, Detail: detail}
}
