// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"strings"

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
	gauge, bad, total *selector
	// good are the requests that are not bad, for who counts these.
	good *selector
}

// selector selects series of an operator.
type selector struct {
	metric string
	// owner is the label that says whose they are, and more another matcher.
	owner, more string
}

// of selects an operator's series, or those of all operators if it is empty.
func (s selector) of(operator string) string {
	var matchers []string
	if operator != "" {
		matchers = append(matchers, fmt.Sprintf("%s=%q", s.owner, operator))
	}
	if s.more != "" {
		matchers = append(matchers, s.more)
	}
	return s.metric + "{" + strings.Join(matchers, ",") + "}"
}

// objectives are eleven SLIs with the default profile's targets, over 30 days.
func objectives() []objective {
	ofAgent := func(metric, more string) *selector { return &selector{metric, series.Operator, more} }
	ofController := func(metric, more string) *selector { return &selector{metric, series.Namespace, more} }
	return []objective{
		{sli: fleet.CSV, name: "csv", slug: "csv", target: 995_000, gauge: ofAgent(series.OperatorCSVSucceeded, "")},
		{sli: fleet.Catalog, name: "catalog", slug: "catalog", target: 990_000,
			gauge: ofAgent(series.OperatorCatalogReady, "")},
		{sli: fleet.Probe, name: slo.Probe, slug: "probe", target: 999_000,
			gauge: ofAgent(series.ProbeSuccess, `probe="api"`)},
		{sli: fleet.Reconcile, name: "reconcile", slug: "reconcile", target: 990_000,
			bad: ofController(series.ReconcileErrorsTotal, ""), total: ofController(series.ReconcileTotal, "")},
		{sli: fleet.Latency, name: "latency", slug: "latency", target: 990_000,
			good:  ofController(series.ReconcileTimeBucket, `le="10.0"`),
			total: ofController(series.ReconcileTimeCount, "")},
		// The peers cannot tell these three from several metrics, and are given a gauge that is 0 or 1.
		{sli: fleet.Available, name: "available", slug: "available", target: 999_000,
			gauge: ofAgent(series.OperatorConditionStatus, `type="Available"`)},
		{sli: fleet.Queue, name: "queue", slug: "queue", target: 990_000,
			gauge: ofAgent(series.OperatorConditionStatus, `type="QueueShort"`)},
		{sli: fleet.Operands, name: "operands", slug: "operands", target: 990_000,
			gauge: ofAgent(series.OperatorConditionStatus, `type="OperandsReady"`)},
		{sli: fleet.Panic, name: "panic", slug: "panic", target: 999_000,
			bad: ofController(series.ReconcilePanicsTotal, ""), total: ofController(series.ReconcileTotal, "")},
		{sli: fleet.Leader, name: "leader", slug: "leader", target: 999_000,
			gauge: ofController(series.LeaderStatus, "")},
		{sli: fleet.Webhook, name: "webhook", slug: "webhook", target: 999_000,
			bad:   ofController(series.WebhookRequestsTotal, `code=~"5.."`),
			total: ofController(series.WebhookRequestsTotal, "")},
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

// owner is the label that says whose the series are.
func (o objective) owner() string {
	if o.gauge != nil {
		return o.gauge.owner
	}
	return o.total.owner
}
