// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// WindowCluster has the data of a FleetCluster that a window can depend on.
type WindowCluster struct {
	Name   string
	Labels map[string]string
	// TimeZone is the cluster's time zone; empty means UTC.
	TimeZone string
}

// WindowSummary is the state of one window at a time.
type WindowSummary struct {
	State v1alpha1.ChangeWindowState
	// Until is the latest end on all clusters, and Next is the earliest begin on all clusters. Zero means not known
	// or never.
	Until, Next time.Time
	// Failure is why the window cannot be evaluated, for all clusters or for the clusters that the error names.
	// Rollouts admit no operator on these clusters.
	Failure error
}

// SummarizeWindow returns the state of a window. It is in force if it is in force in any of its time zones. If the
// window uses the time zones of clusters, only the clusters that it selects count.
func SummarizeWindow(o *v1alpha1.ChangeWindow, clusters []WindowCluster, now time.Time) WindowSummary {
	w := readWindow(o, now)
	if w.failure != nil {
		return WindowSummary{Failure: w.failure}
	}
	set := &WindowSet{now: now, zones: map[string]*time.Location{}}
	zones, failure := set.listZones(&w, clusters)
	summary := WindowSummary{Failure: failure}
	endless := false
	for _, zone := range zones {
		end, next, isEndless := zonedWindow{window: &w, zone: zone}.findTimes(now)
		endless = endless || isEndless
		if !end.IsZero() {
			summary.State = v1alpha1.WindowInForce
			if end.After(summary.Until) {
				summary.Until = end
			}
		}
		summary.Next = minTime(summary.Next, next)
	}
	switch {
	case len(zones) == 0, summary.State != "": // the state is not known, or is InForce
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

// listZones returns the time zones in which a window is evaluated. The error names the clusters whose time zone does
// not exist.
func (s *WindowSet) listZones(w *window, clusters []WindowCluster) ([]*time.Location, error) {
	if w.spec.TimeZone != v1alpha1.TimeZoneOfCluster {
		zone, err := s.loadZone(w.spec.TimeZone, WindowTarget{})
		if err != nil {
			return nil, err
		}
		return []*time.Location{zone}, nil
	}
	var zones []*time.Location
	var invalid []string
	for _, c := range clusters {
		if !w.clusters.Matches(labels.Set(c.Labels)) {
			continue
		}
		zone, err := s.loadZone(w.spec.TimeZone, WindowTarget{TimeZone: c.TimeZone})
		switch {
		case err != nil:
			invalid = append(invalid, fmt.Sprintf("%s (%q)", c.Name, c.TimeZone))
		case !slices.Contains(zones, zone):
			zones = append(zones, zone)
		}
	}
	if len(invalid) > 0 {
		slices.Sort(invalid)
		return zones, fmt.Errorf("%w: correct the annotation %s of %s", errClusterZone, v1alpha1.AnnotationTimeZone,
			phrase.First(invalid, maxNamedClusters))
	}
	if len(zones) == 0 {
		zones = append(zones, time.UTC) // the window selects no cluster yet
	}
	return zones, nil
}

const maxNamedClusters = 5

var errClusterZone = errors.New("clusters have a time zone that is not in the IANA time zone database")
