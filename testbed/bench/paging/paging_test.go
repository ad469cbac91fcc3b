// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/testbed/pagerduty"
)

// sloth is a service.
const sloth = "sloth-by-cluster"

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// incident is one of a release that was opened, updated and resolved so many seconds after noon.
func incident(service, component string, seconds ...int) pagerduty.Incident {
	i := pagerduty.Incident{Service: service, State: pagerduty.Open, Opened: 1,
		Last: pagerduty.Alert{Payload: pagerduty.Payload{Component: component, Summary: "it burns"}}}
	for n, s := range seconds {
		kind := []pagerduty.Kind{pagerduty.WasOpened, pagerduty.WasUpdated, pagerduty.WasResolved}[n]
		i.Timeline = append(i.Timeline, pagerduty.Entry{At: noon.Add(time.Duration(s) * time.Second), Kind: kind})
	}
	if len(seconds) > 1 {
		i.Updates = 1
	}
	if len(seconds) > 2 {
		i.State, i.Resolved = pagerduty.Resolved, 1
	}
	return i
}

func TestTallyAddsIncidents(t *testing.T) {
	var got tally
	got.add(incident(sloth, "a", 60, 70, 300))
	got.add(incident(sloth, "a", 30, 80, 400))
	got.add(incident(sloth, "a", 90))
	want := tally{incidents: 3, open: 1, triggers: 5, resolves: 2, first: noon.Add(30 * time.Second),
		last: noon.Add(400 * time.Second)}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(tally{})); diff != "" {
		t.Errorf("tally (-want +got):\n%s", diff)
	}
}

// TestReportJudges has a release that pages twice with our routing, which is one incident too many, and a peer that
// pages and resolves sooner than the other one.
func TestReportJudges(t *testing.T) {
	m := &measurement{Options: Options{Sizes: []int{3, 30}, Phases: 1, Faster: 1}}
	m.fleet = newFleet(m.Options)
	defer m.fleet.close()
	m.tallies = map[string][]tally{}
	for i, r := range m.fleet.releases {
		m.fleet.fail(i, noon)
		m.fleet.mend(i, noon.Add(10*time.Minute))
		for _, service := range services() {
			n, paged, resolved := incidents(service, r), 3*time.Minute, 20*time.Minute
			switch {
			case service == ours && i == 1:
				n = 2
			case service == "pyrra-by-cluster":
				paged, resolved = 2*time.Minute, 18*time.Minute
			}
			m.tallies[service] = append(m.tallies[service], tally{incidents: n, triggers: 2 * n, resolves: n,
				first: noon.Add(paged), last: noon.Add(resolved)})
		}
	}
	section := m.report()
	want := []string{
		"99.9 % (`available`): first bad minute to page, median, and pyrra v0.10.1",
		"99.9 % (`available`): recovery to resolve, median, and pyrra v0.10.1",
		"incidents of a bad release, clusters: 30, and sloth v0.16.0",
		"incidents of a bad release, clusters: 30, and pyrra v0.10.1",
	}
	if diff := cmp.Diff(want, section.Missed()); diff != "" {
		t.Errorf("missed (-want +got):\n%s", diff)
	}
	if got := section.Rows[0]; got.Ours.String() != "180.00 s" || got.Peer.String() != "180.00 s" || got.Runs != 1 {
		t.Errorf("time to the page: %+v", got)
	}
	if got := section.Rows[3]; got.Ours.String() != "600.00 s" || got.Peer.String() != "480.00 s" {
		t.Errorf("time to the resolve: %+v", got)
	}
	for _, row := range []string{
		"| sloth, `group_by: [alertname, cluster]` | 30 | 30 | 60 | 30 | 180.00 s | 600.00 s |",
		"| pyrra, `group_by: [alertname, cluster]` | 30 | 30 | 60 | 30 | 120.00 s | 480.00 s |",
		"| pyrra, `group_by: [slo]` | 30 | 1 | 2 | 1 | 180.00 s | 600.00 s |",
	} {
		if !strings.Contains(section.Detail, row) {
			t.Errorf("%q is not in\n%s", row, section.Detail)
		}
	}
}

// TestUnknownIncidentIsAnError has the ledger of another operator than those that were broken.
func TestUnknownIncidentIsAnError(t *testing.T) {
	m := &measurement{Options: Options{Sizes: []int{1}, Faster: 1}}
	m.fleet = newFleet(m.Options)
	defer m.fleet.close()
	_, err := m.count(pagerduty.Ledger{Incidents: []pagerduty.Incident{incident(ours, "another", 60)}})
	if !errors.Is(err, errUnexpected) {
		t.Errorf("error %v, want %v", err, errUnexpected)
	}
}
