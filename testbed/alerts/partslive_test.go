// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package alerts

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/prometheus"
)

// startPart starts a Prometheus in the faster time with a part of the rules of the default profile.
func startPart(t *testing.T, part slo.Part, opts prometheus.Options) live {
	t.Helper()
	rules, err := slo.BuildPart(slo.Set{Default: slo.DefaultProfile()}, part)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := Compress(rules.All(), faster)
	if err != nil {
		t.Fatal(err)
	}
	text, err := slo.RuleFile(groups)
	if err != nil {
		t.Fatal(err)
	}
	opts.Dir, opts.Binary, opts.Rules = t.TempDir(), binary(t, build.Prometheus), map[string][]byte{"slo.yaml": text}
	opts.Interval, opts.Lookback = time.Second, 5*time.Second
	server, err := prometheus.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop(context.Background()) })
	return live{server, t}
}

// TestLiveParts has a Prometheus in each cluster send slices to that of the hub, which scrapes no cluster.
func TestLiveParts(t *testing.T) {
	t.Parallel() // it waits most of the time
	f := newFixture(t, map[string]*agent{"good": {version: "1.0.0", csv: "1"}, "outage": {version: "1.1.0", csv: "1"},
		"lost": {version: "1.2.0", csv: "1"}})
	ofHub, ofClusters := prometheus.Job{Name: "hub"}, map[string]live{}
	ofHub.Targets = []string{strings.TrimPrefix(f.servers["hub"].URL, "http://")}
	hub := startPart(t, slo.Hub, prometheus.Options{Jobs: []prometheus.Job{ofHub}, Receive: true})
	for name := range f.clusters {
		ofClusters[name] = startPart(t, slo.Edge, prometheus.Options{SendTo: hub.Server, Send: slo.TravellingRegex(),
			Jobs: []prometheus.Job{{Name: "agent",
				Targets: []string{strings.TrimPrefix(f.servers[name].URL, "http://")}}}})
	}

	hub.eventually("every cluster has slices and a whole budget", func(ctx context.Context) error {
		n, err := hub.one(ctx, `count(bellwether:slo_budget_left:ratio{sli="csv"} == 1) + `+
			`count(bellwether:sli_bad:bool{sli="csv"} == 0) + count(bellwether:slices_recorded:timestamp)`)
		if err == nil && n != 9 {
			return fmt.Errorf("have %v, want 3 of each", n)
		}
		return err
	})
	if _, err := hub.Evaluated(t.Context()); err != nil {
		t.Error(err)
	}
	if sent, err := hub.Query(t.Context(), `{__name__=~"bellwether_operator_.+",__name__!~"`+slo.TravellingRegex()+`"}`,
		time.Time{}); err != nil || len(sent) > 0 {
		t.Errorf("the hub has raw metrics of clusters: %v, %v", sent, err)
	}
	hub.never("nothing is wrong yet", `severity=~"page|ticket"`)

	f.change(bad, "outage")
	ofClusters["lost"].Stop(t.Context())
	hub.firing("a page of the cluster with an outage", `alertname="BellwetherOperatorSLOBurn",severity="page"`,
		"cluster", "outage")
	hub.firing("one page of a cluster that sends nothing", `alertname="BellwetherClusterFailing"`, "cluster", "lost")
	f.change(good, "outage")
	hub.firing("the page ends", `alertname="BellwetherOperatorSLOBurn",severity="page"`, "cluster")
	hub.firing("the lost cluster stays lost", `severity="page"`, "cluster", "lost")
}
