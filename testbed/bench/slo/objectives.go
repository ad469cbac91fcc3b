// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/testbed/bench/slo/fleet"
)

// objective is what all three have to watch over, for every operator on every cluster.
type objective struct {
	sli fleet.SLI
	// name is Bellwether's of the SLI; slug is the part of the peers' names.
	name, slug string
	target     slo.PPM
	// gauge is 1 while all is well, where the SLI is time; else it is requests.
	gauge, bad, total string
	// good are the requests that are not bad, for who counts these.
	good string
}

// objectives are five SLIs with the default profile's targets, over 30 days.
func objectives() []objective {
	return []objective{
		{sli: fleet.CSV, name: "csv", slug: "csv", target: 995_000, gauge: series.OperatorCSVSucceeded + "{operator=%q}"},
		{sli: fleet.Catalog, name: "catalog", slug: "catalog", target: 990_000, gauge: series.OperatorCatalogReady + "{operator=%q}"},
		{sli: fleet.Probe, name: slo.Probe, slug: "probe", target: 999_000, gauge: series.ProbeSuccess + "{operator=%q,probe=\"api\"}"},
		{sli: fleet.Reconcile, name: "reconcile", slug: "reconcile", target: 990_000,
			bad: series.ReconcileErrorsTotal + "{namespace=%q}", total: series.ReconcileTotal + "{namespace=%q}"},
		{sli: fleet.Latency, name: "latency", slug: "latency", target: 990_000,
			good: series.ReconcileTimeBucket + "{namespace=%q,le=\"10.0\"}", total: series.ReconcileTimeCount + "{namespace=%q}"},
	}
}

// ours are the objectives as Bellwether takes them.
func ours() slo.Set {
	var s slo.Set
	for _, o := range objectives() {
		s.Default = append(s.Default, slo.Objective{SLI: o.name, Target: o.target})
	}
	return s
}

// of fills an operator's name into a selector.
func of(selector, operator string) string { return fmt.Sprintf(selector, operator) }
