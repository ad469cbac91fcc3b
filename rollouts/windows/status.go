// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package windows

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// Cluster is what a window may depend on of a FleetCluster.
type Cluster struct {
	Name   string
	Labels map[string]string
	// TimeZone is the cluster's; empty means UTC.
	TimeZone string
}

// Summary is what one window is at a time.
type Summary struct {
	State v1alpha1.ChangeWindowState
	// Until is when it ends, the last on all clusters, and Next when it begins, the first on all clusters. Zero: not
	// known, or never.
	Until, Next time.Time
	// Failure is why it cannot be evaluated: for no cluster, or for those that it names. Rollouts admit no operator
	// there.
	Failure error
}

// Summarize says what a window is. A window in the time zones of clusters is that on the clusters which it selects.
func Summarize(o *v1alpha1.ChangeWindow, clusters []Cluster, now time.Time) Summary {
	w := read(o, now)
	if w.failure != nil {
		return Summary{Failure: w.failure}
	}
	set := &Set{now: now, zones: map[string]*time.Location{}}
	zones, failure := set.zonesOf(&w, clusters)
	summary := Summary{Failure: failure}
	endless := false
	for _, zone := range zones {
		end, next, isEndless := timed{window: &w, zone: zone}.around(now)
		endless = endless || isEndless
		if !end.IsZero() {
			summary.State = v1alpha1.WindowInForce
			if end.After(summary.Until) {
				summary.Until = end
			}
		}
		summary.Next = earliest(summary.Next, next)
	}
	switch {
	case len(zones) == 0, summary.State != "":
	case summary.Next.IsZero():
		summary.State = v1alpha1.WindowOver
	default:
		summary.State = v1alpha1.WindowScheduled
	}
	if endless {
		summary.Until = time.Time{}
	}
	return summary
}

// zonesOf returns the time zones in which a window is evaluated. The error names the clusters whose time zone does not
// exist.
func (s *Set) zonesOf(w *window, clusters []Cluster) ([]*time.Location, error) {
	if w.spec.TimeZone != v1alpha1.TimeZoneOfCluster {
		zone, err := s.zone(w.spec.TimeZone, Target{})
		if err != nil {
			return nil, err
		}
		return []*time.Location{zone}, nil
	}
	var zones []*time.Location
	var wrong []string
	for _, c := range clusters {
		if !w.clusters.Matches(labels.Set(c.Labels)) {
			continue
		}
		zone, err := s.zone(w.spec.TimeZone, Target{TimeZone: c.TimeZone})
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Sprintf("%s (%q)", c.Name, c.TimeZone))
		case !slices.Contains(zones, zone):
			zones = append(zones, zone)
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return zones, fmt.Errorf("%w: correct the annotation %s of %s", errClusterZone, v1alpha1.AnnotationTimeZone,
			phrase.First(wrong, maxNamed))
	}
	if len(zones) == 0 {
		zones = append(zones, time.UTC) // it selects no cluster yet
	}
	return zones, nil
}

const maxNamed = 5

var errClusterZone = errors.New("clusters have a time zone that is not in the IANA time zone database")
