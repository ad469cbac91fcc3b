// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package detection measures how long a total outage of an operator lasts until its page fires: with the rules as they
// are made for users, in a real Prometheus and in real time.
package detection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/poll"
	"github.com/bellwether-dev/bellwether/testbed/prometheus"
)

const (
	// limit is how long anything may take.
	limit = 15 * time.Minute
	look  = time.Second
	// scrape is the default interval of the chart's PodMonitors, and criticalScrape the one for critical operators.
	scrape         = 30 * time.Second
	criticalScrape = slo.CriticalStep
)

// Options say what to measure.
type Options struct {
	// Outages begin at phases of a slice that are equally far apart, each on another cluster.
	Outages int
}

// Measure has as many outages as asked for, and says how long each took to fire.
func Measure(ctx context.Context, out io.Writer, o Options) (section figure.Section, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	dir, err := os.MkdirTemp("", "bellwether-bench-")
	if err != nil {
		return section, fmt.Errorf("create folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fleet := newFleet(o.Outages)
	defer fleet.close()
	sides := []side{
		{name: "standard operator", criticality: "Standard", scrape: scrape, promised: promised},
		{name: "critical operator", criticality: slo.Critical, scrape: criticalScrape, promised: promisedCritical},
	}
	paths, err := build.Ensure(ctx, out, build.Prometheus)
	if err != nil {
		return section, err
	}
	for i := range sides {
		s := &sides[i]
		rules, err := ruleFile(s.criticality)
		if err != nil {
			return section, err
		}
		if s.server, err = prometheus.Start(ctx, prometheus.Options{
			Dir: filepath.Join(dir, fmt.Sprint(i)), Binary: paths[build.Prometheus], Jobs: fleet.jobs(),
			Rules: map[string][]byte{"slo.yaml": rules}, Interval: s.scrape,
		}); err != nil {
			return section, err
		}
		defer s.server.Stop(context.WithoutCancel(ctx))
	}
	if err := run(ctx, out, fleet, sides); err != nil {
		return section, err
	}
	return report(sides), nil
}

// side is one Prometheus with the rules of an operator of a criticality, and how long each outage took to fire. The
// median of these is promised to be below a bound.
type side struct {
	name, criticality string
	scrape, promised  time.Duration
	server            *prometheus.Server
	took              []time.Duration
}

// ruleFile has the rules of a fleet with one operator.
func ruleFile(criticality string) ([]byte, error) {
	rules, err := slo.Build(slo.Set{Default: slo.DefaultProfile(), Operators: []slo.Operator{
		{Namespace: "fleet", Name: "echo", Criticality: criticality},
	}})
	if err != nil {
		return nil, fmt.Errorf("build rules: %w", err)
	}
	return slo.RuleFile(rules.All())
}

// run breaks one cluster after the other, and waits until all pages fire.
func run(ctx context.Context, out io.Writer, f *fleet, sides []side) error {
	fmt.Fprintf(out, "waiting until %d clusters have objectives and slices ...\n", len(f.clusters))
	for _, s := range sides {
		if err := poll.Until(ctx, look, func() error { return s.ready(ctx, len(f.clusters)) }); err != nil {
			return err
		}
	}
	pause := slo.Step / time.Duration(len(f.clusters))
	fmt.Fprintf(out, "an outage each %s ...\n", pause)
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for i := range f.clusters {
		select {
		case at := <-ticker.C:
			f.fail(i, at)
		case <-ctx.Done():
			return fmt.Errorf("wait for the next outage: %w", context.Cause(ctx))
		}
	}
	fmt.Fprintln(out, "waiting until all page ...")
	for i := range sides {
		s := &sides[i]
		if err := poll.Until(ctx, look, func() error { return s.fired(ctx, f) }); err != nil {
			return err
		}
	}
	return nil
}

// ready fails while a cluster has no slice, or while there is no threshold.
func (s side) ready(ctx context.Context, clusters int) error {
	found, err := s.server.Query(ctx, fmt.Sprintf("count(bellwether:sli_bad:bool{sli=%[1]q} == 0) * "+
		"count(bellwether:slo_threshold:ratio{sli=%[1]q,tier=\"1h\"}) * "+
		"count(bellwether:slo_guard:slices{sli=%[1]q})", sli), time.Time{})
	if err != nil {
		return err
	}
	if len(found) != 1 || int(found[0].Value) != clusters {
		return fmt.Errorf("%s: clusters with slices: %v, want %d", s.name, found, clusters)
	}
	return nil
}

// fired takes down how long each outage took, once all fire.
func (s *side) fired(ctx context.Context, f *fleet) error {
	client, err := s.server.API()
	if err != nil {
		return err
	}
	alerts, err := client.Alerts(ctx)
	if err != nil {
		return fmt.Errorf("read alerts: %w", err)
	}
	s.took = nil
	for _, alert := range alerts.Alerts {
		if string(alert.Labels["alertname"]) != slo.AlertOperator || string(alert.Labels["sli"]) != sli ||
			alert.State != promv1.AlertStateFiring {
			continue
		}
		i := slices.IndexFunc(f.clusters, func(c *member) bool { return c.name == string(alert.Labels["cluster"]) })
		if i < 0 {
			return fmt.Errorf("%s: an alert about the cluster %q", s.name, alert.Labels["cluster"])
		}
		s.took = append(s.took, alert.ActiveAt.Sub(f.clusters[i].since()))
	}
	if len(s.took) < len(f.clusters) {
		return fmt.Errorf("%s: %d of %d outages page", s.name, len(s.took), len(f.clusters))
	}
	return nil
}

// sli is the one that fails.
const sli = "available"

// member is a cluster of the fleet. Each runs another version, so that no release is blamed.
type member struct {
	name   string
	server *httptest.Server
	mu     sync.Mutex
	failed time.Time
}

func (m *member) since() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failed
}

// fleet exports what agents and the hub would.
type fleet struct {
	clusters []*member
	hub      *httptest.Server
}

func newFleet(clusters int) *fleet {
	f := &fleet{}
	for i := range clusters {
		m := &member{name: fmt.Sprintf("cluster-%d", i)}
		m.server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
			m.export(out, i)
		}))
		f.clusters = append(f.clusters, m)
	}
	f.hub = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { f.export(out) }))
	return f
}

func (f *fleet) close() {
	f.hub.Close()
	for _, m := range f.clusters {
		m.server.Close()
	}
}

func (f *fleet) jobs() []prometheus.Job {
	job := prometheus.Job{Name: "fleet", Targets: []string{strings.TrimPrefix(f.hub.URL, "http://")}}
	for _, m := range f.clusters {
		job.Targets = append(job.Targets, strings.TrimPrefix(m.server.URL, "http://"))
	}
	return []prometheus.Job{job}
}

// fail begins the total outage of a cluster's operator.
func (f *fleet) fail(i int, at time.Time) {
	m := f.clusters[i]
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed = at
}

const operator = `operator_namespace="fleet",operator="echo"`

func (m *member) export(out io.Writer, i int) {
	available := 1
	if !m.since().IsZero() {
		available = 0
	}
	labels := fmt.Sprintf("cluster=%q,%s", m.name, operator)
	_, _ = fmt.Fprintf(out, `bellwether_operator_expected{%[1]s} 1
bellwether_operator_upgrading{%[1]s} 0
bellwether_operator_catalog_ready{%[1]s} 1
bellwether_operator_csv_succeeded{%[1]s} 1
bellwether_operator_info{%[1]s,namespace="ns",csv="echo",version="1.%[2]d.0",release="%[2]d"} 1
bellwether_operator_deployment_replicas_desired{%[1]s,deployment="d"} 1
bellwether_operator_deployment_replicas_available{%[1]s,deployment="d"} %[3]d
`, labels, i, available)
}

func (f *fleet) export(out io.Writer) {
	_, _ = fmt.Fprintf(out, "bellwether_fleet_clusters{state=\"online\"} %d\n", len(f.clusters))
	for _, m := range f.clusters {
		_, _ = fmt.Fprintf(out, "bellwether_fleet_cluster_online{cluster=%[1]q} 1\n"+
			"bellwether_operator_expected{cluster=%[1]q,%[2]s} 1\n", m.name, operator)
	}
}
