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
	"github.com/bellwether-dev/bellwether/phrase"
)

// measured is what one cluster reports of an SLI: any numbers.
type measured struct{ bad, samples float64 }

// isPossible tells whether a cluster can have measured that: false for what is not a number. More may be bad than there
// is: requests are recorded a slice before those of them that are bad, and may be fewer and fewer.
func (m measured) isPossible() bool {
	return m.bad >= 0 && m.samples >= 0 && !math.IsInf(m.samples, 0) && (m.samples > 0 || m.bad == 0)
}

// share is how much is bad, from 0 to 1.
func (m measured) share() float64 { return min(m.bad/m.samples, 1) }

// byCluster are the measurements of an SLI.
type byCluster map[string]measured

// measurements reads bad and all samples, by SLI and cluster. A cluster without bad samples has none in that result.
func (e evidence) measurements(bad, all string) (map[string]byCluster, error) {
	out := map[string]byCluster{}
	for _, name := range []string{all, bad} {
		samples, err := e.vector(name)
		if err != nil {
			return nil, err
		}
		seen := map[[2]string]bool{}
		for _, s := range samples {
			sli, cluster := s.Labels[series.SLI], s.Labels[series.Cluster]
			if seen[[2]string{sli, cluster}] {
				return nil, fmt.Errorf("query %q has several results for SLI %q of cluster %q", name, sli, cluster)
			}
			seen[[2]string{sli, cluster}] = true
			if out[sli] == nil {
				out[sli] = byCluster{}
			}
			m := out[sli][cluster]
			if name == all {
				m.samples = s.Value
			} else {
				m.bad = s.Value
			}
			out[sli][cluster] = m
		}
	}
	return out, nil
}

// enough is how many samples of a cluster count at least, so that one with next to none does not make those of others
// count for nothing.
const enough = 30

// weighed are the bad and all samples of clusters together, with those of a cluster that has more than the median of
// them counted as if it had the median: no cluster counts for more than its share, whatever it reports. Of two clusters
// the median is the smaller one, since nobody knows which of them is right.
func (c byCluster) weighed() measured {
	var numbers []float64
	for _, m := range c {
		if m.isPossible() && m.samples > 0 {
			numbers = append(numbers, m.samples)
		}
	}
	if len(numbers) == 0 {
		return measured{}
	}
	slices.Sort(numbers)
	limit := numbers[0]
	if len(numbers) > 2 {
		limit = numbers[len(numbers)/2]
	}
	limit = max(limit, enough)
	var sum measured
	for _, cluster := range slices.Sorted(maps.Keys(c)) {
		if m := c[cluster]; m.isPossible() && m.samples > 0 {
			weight := min(m.samples, limit)
			sum.samples += weight
			sum.bad += weight * m.share()
		}
	}
	return sum
}

// total are the samples as they were reported.
func (c byCluster) total() measured {
	var sum measured
	for _, m := range c {
		if m.isPossible() {
			sum.samples += m.samples
			sum.bad += min(m.bad, m.samples)
		}
	}
	return sum
}

// impossible names the clusters whose measurements cannot be.
func (c byCluster) impossible(sli string) []string {
	var out []string
	for _, cluster := range slices.Sorted(maps.Keys(c)) {
		if m := c[cluster]; !m.isPossible() {
			out = append(out, fmt.Sprintf("%s reports %s bad of %s measurements of %s", cluster, format(m.bad),
				format(m.samples), sli))
		}
	}
	return out
}

// maxWorst is how many clusters a text names that most of it comes from.
const maxWorst = 3

// worst names the clusters with the largest shares of bad samples; empty where there is one cluster, or nothing bad.
func (c byCluster) worst() string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(c)), func(cluster string) bool {
		return !c[cluster].isPossible() || c[cluster].bad == 0 || c[cluster].samples == 0
	})
	if len(c) < 2 || len(names) == 0 {
		return ""
	}
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Compare(c[b].share(), c[a].share())
	})
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = fmt.Sprintf("%s (%s of %s)", name, format(c[name].bad), format(c[name].samples))
	}
	return "; most on " + phrase.First(texts, maxWorst)
}
