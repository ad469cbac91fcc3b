// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/series"
	benchfleet "github.com/bellwether-dev/bellwether/testbed/bench/slo/fleet"
	"github.com/bellwether-dev/bellwether/testbed/prometheus"
)

// namespace is that of all operators.
const namespace = "fleet"

// objective is one that a release misses.
type objective struct {
	// sli is the name of the SLI in the rules of both sides.
	sli, text string
	// metric is what sloth's rules read of it, of a type where conditions have one.
	metric, conditionType string
}

// objectives are two targets of the default profile.
var (
	available = objective{"available", "99.9 % (`available`)", series.OperatorConditionStatus, "Available"}
	succeeded = objective{"csv", "99.5 % (`csv`)", series.OperatorCSVSucceeded, ""}

	objectives = []objective{available, succeeded}
)

// release is a version of an operator, which runs on clusters of its own.
type release struct {
	objective
	operator string
	clusters int
	// timed: its times are measured, and its notifications are not listed.
	timed bool
	// failed and mended are when it was; zero: not yet.
	failed, mended time.Time
}

func (r *release) isBad() bool { return !r.failed.IsZero() && r.mended.IsZero() }

// labels are those of the release on a cluster.
func (r *release) labels(cluster string) string {
	return fmt.Sprintf("cluster=%q,%s", cluster, r.ofOperator())
}

func (r *release) ofOperator() string {
	return fmt.Sprintf("operator_namespace=%q,operator=%q", namespace, r.operator)
}

// member is a cluster.
type member struct {
	name    string
	release *release
	server  *httptest.Server
}

// target is where it is scraped.
func (m *member) target() string { return strings.TrimPrefix(m.server.URL, "http://") }

// fleet exports what agents and the hub would. A release does not change once the fleet is made, but for when it failed
// and was mended, which the lock is for.
type fleet struct {
	releases []*release
	members  []*member
	hub      *httptest.Server
	// verdict is how long it takes until the wave of a canary is judged failed.
	verdict time.Duration

	mu sync.Mutex
}

// newFleet has a release for each size, and those whose times are measured, of both objectives in turn.
func newFleet(o Options) *fleet {
	f := &fleet{verdict: verdict / time.Duration(o.Faster)}
	for _, size := range o.Sizes {
		f.add(available, size, false)
	}
	for range o.Phases {
		for _, of := range objectives {
			f.add(of, 3, true)
		}
	}
	f.hub = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { f.export(out) }))
	return f
}

func (f *fleet) add(o objective, clusters int, timed bool) {
	r := &release{objective: o, operator: benchfleet.Operator(len(f.releases)), clusters: clusters, timed: timed}
	f.releases = append(f.releases, r)
	for range clusters {
		m := &member{name: fmt.Sprintf("cluster-%d", len(f.members)), release: r}
		m.server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
			f.exportMember(out, m)
		}))
		f.members = append(f.members, m)
	}
}

func (f *fleet) close() {
	f.hub.Close()
	for _, m := range f.members {
		m.server.Close()
	}
}

// job is the name of the one that scrapes the fleet.
const job = "fleet"

func (f *fleet) jobs() []prometheus.Job {
	out := prometheus.Job{Name: job, Targets: []string{strings.TrimPrefix(f.hub.URL, "http://")}}
	for _, m := range f.members {
		out.Targets = append(out.Targets, m.target())
	}
	return []prometheus.Job{out}
}

// fail begins a bad release, and mend ends it.
func (f *fleet) fail(i int, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.releases[i].failed = at
}

func (f *fleet) mend(i int, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.releases[i].mended = at
}

// lasted is how long releases were bad, at least and at most.
func (f *fleet) lasted() (shortest, longest time.Duration) {
	for i, r := range f.releases {
		d := r.mended.Sub(r.failed)
		if i == 0 || d < shortest {
			shortest = d
		}
		longest = max(longest, d)
	}
	return shortest, longest
}

// past is the history of what sloth's rules read, which was good.
func (f *fleet) past(from, to time.Time, interval time.Duration) []prometheus.History {
	var out []prometheus.History
	for _, m := range f.members {
		r := m.release
		labels := map[string]string{"job": job, "instance": m.target(), series.Cluster: m.name,
			series.OperatorNamespace: namespace, series.Operator: r.operator}
		if r.conditionType != "" {
			labels[series.ConditionType] = r.conditionType
		}
		out = append(out, prometheus.History{Name: r.metric, Labels: labels, From: from, To: to, Interval: interval,
			Value: func(time.Time) (float64, bool) { return 1, true }})
	}
	return out
}

func (f *fleet) exportMember(out io.Writer, m *member) {
	f.mu.Lock()
	bad := m.release.isBad()
	f.mu.Unlock()
	good := map[objective]int{}
	for _, o := range objectives {
		good[o] = 1
	}
	if bad {
		good[m.release.objective] = 0
	}
	_, _ = fmt.Fprintf(out, `bellwether_operator_expected{%[1]s} 1
bellwether_operator_upgrading{%[1]s} 0
bellwether_operator_catalog_ready{%[1]s} 1
bellwether_operator_csv_succeeded{%[1]s} %[2]d
bellwether_operator_info{%[1]s,namespace="ns",csv="v2",version="2.0.0",release="second"} 1
bellwether_operator_deployment_replicas_desired{%[1]s,deployment="d"} 1
bellwether_operator_deployment_replicas_available{%[1]s,deployment="d"} %[3]d
bellwether_operator_condition{%[1]s,type="Available"} %[3]d
`, m.release.labels(m.name), good[succeeded], good[available])
}

func (f *fleet) export(out io.Writer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _ = fmt.Fprintf(out, "bellwether_fleet_clusters{state=\"online\"} %d\n", len(f.members))
	for _, m := range f.members {
		_, _ = fmt.Fprintf(out, "bellwether_fleet_cluster_online{cluster=%q} 1\nbellwether_operator_expected{%s} 1\n",
			m.name, m.release.labels(m.name))
	}
	for _, r := range f.releases {
		if r.clusters == 1 && !r.failed.IsZero() && time.Since(r.failed) >= f.verdict {
			_, _ = fmt.Fprintf(out, "bellwether_rollout_wave_failed{%s,wave=\"canary\",version=\"2.0.0\","+
				"release=\"second\"} 1\n", r.ofOperator())
		}
	}
}
