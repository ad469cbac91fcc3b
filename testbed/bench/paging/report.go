// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
	"github.com/bellwether-dev/bellwether/testbed/pagerduty"
)

// tally is what the ledger has of a release by one way of routing.
type tally struct {
	// incidents is how often somebody was notified; open is how many incidents are open.
	incidents, open int
	// triggers and resolves are how often the Events API was called.
	triggers, resolves int
	// first is when the first incident was opened, and last when the last one was resolved.
	first, last time.Time
}

var errUnexpected = errors.New("the ledger has what it should not have")

// tally counts what the ledger has now.
func (m *measurement) tally() (map[string][]tally, error) { return m.count(m.events.Ledger()) }

// count counts what a ledger has of each release by each service.
func (m *measurement) count(l pagerduty.Ledger) (map[string][]tally, error) {
	if len(l.Anomalies) > 0 {
		return nil, fmt.Errorf("%w: %+v", errUnexpected, l.Anomalies[0])
	}
	out := map[string][]tally{}
	for _, service := range services() {
		out[service] = make([]tally, len(m.fleet.releases))
	}
	for _, incident := range l.Incidents {
		i := slices.IndexFunc(m.fleet.releases, func(r *release) bool {
			return r.operator == incident.Last.Payload.Component
		})
		if i < 0 {
			return nil, fmt.Errorf("%w: service %s got an incident about none of the releases: %s", errUnexpected,
				incident.Service, incident.Last.Payload.Summary)
		}
		out[incident.Service][i].add(incident)
	}
	return out, nil
}

func (t *tally) add(incident pagerduty.Incident) {
	t.incidents += incident.Opened
	t.triggers += incident.Opened + incident.Updates
	t.resolves += incident.Resolved
	if incident.State == pagerduty.Open {
		t.open++
	}
	for _, e := range incident.Timeline {
		switch {
		case e.Kind == pagerduty.WasOpened && (t.first.IsZero() || e.At.Before(t.first)):
			t.first = e.At
		case e.Kind == pagerduty.WasResolved && e.At.After(t.last):
			t.last = e.At
		}
	}
}

// times are how long those releases took to page, and after their recovery to be resolved, whose times are measured for
// an objective.
func (m *measurement) times(service string, o objective) (page, resolve []time.Duration) {
	for i, r := range m.fleet.releases {
		if r.timed && r.objective == o {
			page = append(page, m.tallies[service][i].first.Sub(r.failed))
			resolve = append(resolve, m.tallies[service][i].last.Sub(r.mended))
		}
	}
	return page, resolve
}

// Promises for an outage with a target of 99.9 %: how many times as long as with each of the peers, and so as with the
// fastest of them, it takes to page somebody, and from the recovery until the last incident is resolved.
const (
	pageAtMost    = 1.15
	resolveAtMost = 1.2
)

// report judges what was measured.
func (m *measurement) report() figure.Section {
	var rows []figure.Row
	for _, o := range objectives {
		page, resolve := m.times(ours, o)
		for _, p := range peers {
			peerPage, peerResolve := m.times(p.byCluster(), o)
			rows = append(rows, timeRow(fmt.Sprintf("%s: first bad minute to page, median, and %s", o.text, p), page,
				peerPage), timeRow(fmt.Sprintf("%s: recovery to resolve, median, and %s", o.text, p), resolve,
				peerResolve))
			if o == available {
				rows[len(rows)-2].Promise = figure.AtMost(pageAtMost)
				rows[len(rows)-1].Promise = figure.AtMost(resolveAtMost)
			}
		}
	}
	for i, r := range m.fleet.releases {
		if r.timed {
			continue
		}
		for _, p := range peers {
			a, b := m.tallies[ours][i].incidents, m.tallies[p.byCluster()][i].incidents
			rows = append(rows, figure.Row{Name: fmt.Sprintf("incidents of a bad release, clusters: %d, and %s",
				r.clusters, p), Ours: figure.Count(a), Peer: figure.Count(b),
				Ratio: figure.Ratio(figure.Count(a), figure.Count(b)), Promise: figure.Below(figure.Count(2)), Runs: 1})
		}
	}
	return figure.Section{Key: "paging", Title: "Pages, against the rules of sloth and pyrra with plain routing",
		Rows: rows, Detail: m.detail()}
}

func timeRow(name string, took, peer []time.Duration) figure.Row {
	a, b := figure.Duration(figure.Median(took)), figure.Duration(figure.Median(peer))
	return figure.Row{Name: name, Ours: a, Peer: b, Ratio: figure.Ratio(a, b), Runs: len(took)}
}

func (m *measurement) detail() string {
	begin, end := m.fleet.lasted()
	return fmt.Sprintf("In real time: %d releases that are bad at once, each of another operator on clusters of its "+
		"own. All were bad for %s to %s, until all had paged on all sides. Times are those of %d releases for each "+
		"objective, on three clusters each and at as many phases of a minute: from the moment at which the exporter "+
		"says so until the Events API has the first trigger, and from the recovery until it has the last resolve. "+
		"The peers' incidents are those by `alertname` and `cluster`.\n\n"+
		"What the Events API got of each release, and when, by the way of routing:\n\n%s",
		len(m.fleet.releases), begin.Round(time.Second), end.Round(time.Second), m.Phases, figure.Grid(m.cells()))
}

// cells are a table of the releases whose notifications are counted.
func (m *measurement) cells() [][]string {
	called := names()
	cells := [][]string{{"routing", "clusters", "incidents", "triggers", "resolves", "to the first page",
		"to the last resolve"}}
	for i, r := range m.fleet.releases {
		if r.timed {
			continue
		}
		for _, service := range services() {
			t := m.tallies[service][i]
			cells = append(cells, []string{called[service], fmt.Sprint(r.clusters), fmt.Sprint(t.incidents),
				fmt.Sprint(t.triggers), fmt.Sprint(t.resolves), figure.Duration(t.first.Sub(r.failed)).String(),
				figure.Duration(t.last.Sub(r.mended)).String()})
		}
	}
	return cells
}
