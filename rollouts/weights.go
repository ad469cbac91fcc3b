// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// measurement is the report of one cluster about an SLI. A cluster can report any numbers.
type measurement struct{ bad, samples float64 }

// isPossible reports whether a cluster can have measured these numbers. They must not be negative, infinite or NaN.
// bad can be larger than samples: requests are recorded one slice before the bad requests among them, and traffic
// can fall.
func (m measurement) isPossible() bool {
	return m.bad >= 0 && m.samples >= 0 && !math.IsInf(m.samples, 0) && (m.samples > 0 || m.bad == 0)
}

// computeShare returns the share of bad samples, from 0 to 1.
func (m measurement) computeShare() float64 { return min(m.bad/m.samples, 1) }

// clusterMeasurements are the measurements of an SLI, by cluster.
type clusterMeasurements map[string]measurement

// readMeasurements returns the measurements by SLI and cluster, from the results of the queries with these names. A
// cluster without bad samples is not in the result of badQuery.
func (e evidence) readMeasurements(badQuery, allQuery string) (map[string]clusterMeasurements, error) {
	out := map[string]clusterMeasurements{}
	for _, name := range []string{allQuery, badQuery} {
		samples, err := e.readVector(name)
		if err != nil {
			return nil, err
		}
		hasResult := map[[2]string]bool{}
		for _, s := range samples {
			sli, cluster := s.Labels[series.SLI], s.Labels[series.Cluster]
			if hasResult[[2]string{sli, cluster}] {
				return nil, fmt.Errorf("query %q has several results for SLI %q of cluster %q", name, sli, cluster)
			}
			hasResult[[2]string{sli, cluster}] = true
			if out[sli] == nil {
				out[sli] = clusterMeasurements{}
			}
			m := out[sli][cluster]
			if name == allQuery {
				m.samples = s.Value
			} else {
				m.bad = s.Value
			}
			out[sli][cluster] = m
		}
	}
	return out, nil
}

// minSampleLimit is the lowest limit of the samples that count of one cluster. Without it, a cluster with very few
// samples would make the samples of other clusters count almost nothing.
const minSampleLimit = 30

// sumWeighed adds up the samples of all clusters. A cluster with more samples than the median counts as if it had the
// median, so no report can outweigh the other clusters. The median of two clusters is the smaller number, because it
// is not known which of the two is right.
func (c clusterMeasurements) sumWeighed() measurement {
	var numbers []float64
	for _, m := range c {
		if m.isPossible() && m.samples > 0 {
			numbers = append(numbers, m.samples)
		}
	}
	if len(numbers) == 0 {
		return measurement{}
	}
	slices.Sort(numbers)
	limit := numbers[0] // with one or two clusters, the smallest number
	if len(numbers) > 2 {
		limit = numbers[len(numbers)/2]
	}
	limit = max(limit, minSampleLimit)
	var sum measurement
	for _, cluster := range slices.Sorted(maps.Keys(c)) {
		if m := c[cluster]; m.isPossible() && m.samples > 0 {
			weight := min(m.samples, limit)
			sum.samples += weight
			sum.bad += weight * m.computeShare()
		}
	}
	return sum
}

// sumCounts adds up the samples as the clusters reported them, without weights. Impossible measurements do not count,
// and a cluster has at most as many bad samples as samples.
func (c clusterMeasurements) sumCounts() measurement {
	var sum measurement
	for _, m := range c {
		if m.isPossible() {
			sum.samples += m.samples
			sum.bad += min(m.bad, m.samples)
		}
	}
	return sum
}

// listImpossible describes the clusters with impossible measurements.
func (c clusterMeasurements) listImpossible(sli string) []string {
	var out []string
	for _, cluster := range slices.Sorted(maps.Keys(c)) {
		if m := c[cluster]; !m.isPossible() {
			out = append(out, fmt.Sprintf("%s reports %s bad of %s measurements of %s", cluster, formatNumber(m.bad),
				formatNumber(m.samples), sli))
		}
	}
	return out
}

// maxWorst is the maximum number of clusters that explainWorst lists.
const maxWorst = 3

// explainWorst lists the clusters with the largest shares of bad samples, at most maxWorst, as the end of a sentence.
// It returns "" if there is only one cluster or no bad sample.
func (c clusterMeasurements) explainWorst() string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(c)), func(cluster string) bool {
		return !c[cluster].isPossible() || c[cluster].bad == 0 || c[cluster].samples == 0
	})
	if len(c) < 2 || len(names) == 0 {
		return ""
	}
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Compare(c[b].computeShare(), c[a].computeShare())
	})
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = fmt.Sprintf("%s (%s of %s)", name, formatNumber(c[name].bad), formatNumber(c[name].samples))
	}
	return "; most on " + phrase.First(texts, maxWorst)
}
