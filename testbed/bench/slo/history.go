// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"iter"
	"maps"
	"slices"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/testbed/bench/slo/fleet"
)

// What rules read of what they recorded before has to be there, too, or else their long windows would cost nothing. The
// functions below say what each side's rules would have recorded of the fleet.

// sliName is the value of Bellwether's label sli.
func (o objective) sliName() string {
	if o.name == slo.Probe {
		return slo.Probe + "api"
	}
	return o.name
}

// recordedByUs are slices: all of them, the bad ones, and the bad ones by version and by who is to blame; and the
// objectives, of which changes are looked for. Those of the hub part do not make the slices that are sent.
func recordedByUs(f *fleet.Fleet, part slo.Part) iter.Seq[fleet.Series] {
	return func(yield func(fleet.Series) bool) {
		for op := range f.Size().Operators {
			for _, o := range objectives() {
				if !yieldAll(yield, objectiveHistory(f, o, op)) {
					return
				}
			}
		}
		for _, i := range instances(f) {
			if !yieldAll(yield, sliceHistory(f, i, part)) {
				return
			}
		}
	}
}

// sliceHistory are the slices of one SLI of an operator on a cluster that a part of the rules recorded.
func sliceHistory(f *fleet.Fleet, i instance, part slo.Part) []fleet.Series {
	end := f.Size().History
	var all []fleet.Series
	if part == slo.Whole || i.name == slo.Probe {
		all = slicesOf(f, i, end)
	}
	add := func(name string, bad []fleet.Span) {
		if len(bad) > 0 {
			all = append(all, recorded(name, i.objective, i.operator, fleet.Only(end, bad, 1),
				map[string]string{series.Cluster: fleet.Cluster(i.cluster)}))
		}
	}
	own, blamed := byBlame(f, i)
	add(series.SLIBadCluster, own)
	add(series.SLIBadBlamed, blamed)
	return all
}

// byBlame are the times in which an SLI was bad while no release was bad, and those for which one is blamed.
func byBlame(f *fleet.Fleet, i instance) (own, blamed []fleet.Span) {
	bad := f.Bad(i.cluster, i.operator, i.sli)
	for _, r := range f.Releases(i.cluster, i.operator) {
		if in := within(bad, r.Span); r.Bad {
			blamed = append(blamed, in...)
		} else {
			own = append(own, in...)
		}
	}
	return own, blamed
}

func yieldAll(yield func(fleet.Series) bool, all []fleet.Series) bool {
	for _, s := range all {
		if !yield(s) {
			return false
		}
	}
	return true
}

func objectiveHistory(f *fleet.Fleet, o objective, operator int) []fleet.Series {
	constant := func(name string, value float64) fleet.Series {
		return recorded(name, o, operator, fleet.Gauge(f.Size().History, nil, 0, value), nil)
	}
	return []fleet.Series{
		constant(series.SLOObjective, o.target.Ratio()), constant(series.SLOPeriod, slo.DefaultPeriod.Seconds()),
	}
}

// Minutes of history: those that our rules read of raw metrics and of all slices, and those that the peers have. Of bad
// slices our rules read the whole period.
const (
	recent  = 60
	slowest = 3 * 24 * 60
)

// slicesOf are the slices of an SLI of an operator on a cluster up to a minute: the bad ones from the beginning, and
// all of them for as long as rules read them.
func slicesOf(f *fleet.Fleet, i instance, end int) []fleet.Series {
	bad := f.Bad(i.cluster, i.operator, i.sli)
	cluster := map[string]string{series.Cluster: fleet.Cluster(i.cluster)}
	all := []fleet.Series{recorded(series.SLIBad, i.objective, i.operator, fleet.Gauge(end, bad, 1, 0),
		cluster).Hide(max(0, f.Size().History-recent))}
	if len(bad) > 0 {
		all = append(all, recorded(series.SLIBadSlice, i.objective, i.operator, fleet.Only(end, bad, 1), cluster))
	}
	for _, r := range f.Releases(i.cluster, i.operator) {
		if in := within(bad, r.Span); len(in) > 0 {
			s := recorded(series.SLIBadVersion, i.objective, i.operator, fleet.Only(end, in, 1), cluster)
			s.Labels[series.Version], s.Labels[series.Release] = r.Version, fleet.ReleaseOf(r.Version)
			all = append(all, s)
		}
	}
	return all
}

// sent is what the Prometheus of a cluster sends where it evaluates the edge part; begin is when the history ends.
func sent(f *fleet.Fleet, cluster int, begin time.Time) iter.Seq[fleet.Series] {
	end := f.Size().History + f.Size().Ahead
	first := float64(begin.Unix()) - 60*float64(f.Size().History)
	all := []fleet.Series{{
		Labels: map[string]string{fleet.Name: series.SlicesRecorded, series.Schema: series.SliceSchema},
		Runs:   []fleet.Run{{Count: end, First: first, Step: 60}},
	}}
	for s := range f.Exported(cluster) {
		if slices.Contains(series.Travelling(), s.Labels[fleet.Name]) {
			all = append(all, s)
		}
	}
	for op := range f.Size().Operators {
		for _, o := range objectives() {
			if o.name != slo.Probe {
				all = append(all, slicesOf(f, instance{o, cluster, op}, end)...)
			}
		}
	}
	return slices.Values(all)
}

// instance is one SLI of an operator on a cluster.
type instance struct {
	objective

	cluster, operator int
}

func instances(f *fleet.Fleet) []instance {
	var all []instance
	for c := range f.Size().Clusters {
		for op := range f.Size().Operators {
			for _, o := range objectives() {
				all = append(all, instance{o, c, op})
			}
		}
	}
	return all
}

func recorded(name string, o objective, operator int, runs []fleet.Run, labels map[string]string) fleet.Series {
	s := fleet.Series{Labels: map[string]string{fleet.Name: name, series.OperatorNamespace: fleet.Namespace,
		series.Operator: fleet.Operator(operator),
		series.SLI:      o.sliName()}, Runs: runs}
	maps.Copy(s.Labels, labels)
	return s
}

// within are the parts of spans that are in another one.
func within(spans []fleet.Span, in fleet.Span) []fleet.Span {
	var out []fleet.Span
	for _, s := range spans {
		if part := (fleet.Span{From: max(s.From, in.From), To: min(s.To, in.To)}); part.From < part.To {
			out = append(out, part)
		}
	}
	return out
}

// recordedBySloth are the ratios of 5 minutes, out of which it makes those of 30 days. If one objective is for all
// operators, their labels are, too.
func recordedBySloth(f *fleet.Fleet, groups []monitoringv1.RuleGroup, all bool) iter.Seq[fleet.Series] {
	const ratio = "slo:sli_error:ratio_rate5m"
	labels := map[string]map[string]string{}
	for _, g := range groups {
		for _, r := range g.Rules {
			if r.Record == ratio {
				labels[r.Labels["sloth_id"]] = r.Labels
			}
		}
	}
	return func(yield func(fleet.Series) bool) {
		for _, i := range instances(f) {
			s := fleet.Series{
				Labels: map[string]string{fleet.Name: ratio, series.Cluster: fleet.Cluster(i.cluster)},
				Runs:   fleet.Gauge(f.Size().History, f.Bad(i.cluster, i.operator, i.sli), fleet.ErrorRatio(i.sli), 0),
			}
			service := fleet.Operator(i.operator)
			if all {
				s.Labels[i.owner()], service = service, "fleet"
			}
			maps.Copy(s.Labels, labels[service+"-"+i.slug])
			if !yield(s) {
				return
			}
		}
	}
}
