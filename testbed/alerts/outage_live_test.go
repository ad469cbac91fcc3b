// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package alerts

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/testbed/prometheus"
	"github.com/bellwether-dev/bellwether/testbed/proxy"
)

// A receiver in which an hour takes a minute takes samples that are two minutes old. The data of its last hour are in
// memory, and without the window it would refuse what is older than half of that.
const window = slo.OutOfOrderWindow / faster

// receiving is what the guide asks of a Prometheus that clusters send to, in the faster time.
func receiving() prometheus.Options {
	return prometheus.Options{
		Receive: true,
		Further: []byte("storage: {tsdb: {out_of_order_time_window: " + model.Duration(window).String() + "}}\n"),
		Args:    []string{"--storage.tsdb.min-block-duration=2m", "--storage.tsdb.max-block-duration=2m"},
	}
}

// sending is the configuration that the command line writes, in the faster time.
func sending(t *testing.T, cluster, address string) []byte {
	t.Helper()
	text, err := slo.Sender{Cluster: cluster, URL: "http://" + address + "/api/v1/write"}.Configuration()
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	write := config["remote_write"].([]any)[0].(map[string]any)
	write["remote_timeout"] = "2s"
	queue := write["queue_config"].(map[string]any)
	queue["batch_send_deadline"], queue["max_backoff"] = "50ms", "500ms"
	queue["sample_age_limit"] = model.Duration(window).String()
	if text, err = yaml.Marshal(config); err != nil {
		t.Fatal(err)
	}
	return text
}

// TestLiveOutage cuts the network between the Prometheus of a cluster and that of the hub, which are configured as the
// guide says. What an outage of 40 minutes held up arrives late, and budgets are those of the cluster itself. Of an
// outage of four hours, two are lost, and it is said how much.
func TestLiveOutage(t *testing.T) {
	t.Parallel() // it waits most of the time
	f := newFixture(t, map[string]*agent{"cut": {version: "1.0.0", csv: "1"}, "well": {version: "1.0.0", csv: "1"}})
	ofHub := prometheus.Job{Name: "hub", Targets: []string{strings.TrimPrefix(f.servers["hub"].URL, "http://")}}
	opts := receiving()
	opts.Jobs = []prometheus.Job{ofHub}
	hub := startPart(t, slo.Hub, opts)
	address, err := url.Parse(hub.URL())
	if err != nil {
		t.Fatal(err)
	}
	network, err := proxy.Start(t.Context(), "remote-write", address.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(network.Stop)
	through := map[string]string{"cut": network.Address(), "well": address.Host}
	ofClusters := map[string]live{}
	for name := range f.clusters {
		agent := strings.TrimPrefix(f.servers[name].URL, "http://")
		ofClusters[name] = startPart(t, slo.Edge, prometheus.Options{Further: sending(t, name, through[name]),
			Self: true, Jobs: []prometheus.Job{{Name: "agent", Targets: []string{agent}}}})
	}
	cluster := ofClusters["cut"]
	hub.eventually("both clusters have slices", func(ctx context.Context) error {
		return hub.gives(ctx, `count(bellwether:sli_bad:bool{sli="csv"})`, 2)
	})

	// 40 minutes without a network, in which the operator is bad for 20.
	network.Refuse()
	cut := time.Now()
	f.change(bad, "cut")
	cluster.eventually("20 slices are bad on the cluster", func(ctx context.Context) error {
		return cluster.atLeast(ctx, badSlicesOf, 20)
	})
	f.change(good, "cut")
	cluster.eventually("40 slices were made", func(ctx context.Context) error {
		return cluster.atLeast(ctx, fmt.Sprintf(`count_over_time(bellwether:slices_recorded:timestamp[%ds])`,
			int(time.Since(cut).Seconds())), 40)
	})
	if n, err := hub.one(t.Context(), badSlicesOf+" or vector(0)"); err != nil || n != 0 {
		t.Errorf("the hub knows of %v bad slices during the outage, %v", n, err)
	}
	if err := network.Heal(t.Context()); err != nil {
		t.Fatal(err)
	}
	hub.eventually("all slices of the outage have arrived, and the bad ones count", func(ctx context.Context) error {
		want, err := cluster.one(ctx, badSlicesOf)
		if err != nil {
			return err
		}
		if err := hub.gives(ctx, badSlicesOf, want); err != nil {
			return err
		}
		return hub.gives(ctx, `round((1 - bellwether:slo_budget_left:ratio{cluster="cut",sli="csv"}) * 43200 * 0.005)`,
			want)
	})
	same := func(what string, begin, end time.Time) {
		t.Helper()
		query := fmt.Sprintf(`count_over_time(bellwether:sli_bad:bool{cluster="cut",sli="csv"}[%ds])`,
			int(end.Sub(begin).Seconds()))
		hub.eventually(what, func(ctx context.Context) error {
			there, err := cluster.Query(ctx, query, end)
			if err != nil || len(there) != 1 {
				return fmt.Errorf("slices of the cluster: %v, %w", there, err)
			}
			here, err := hub.Query(ctx, query, end)
			if err != nil || len(here) != 1 || here[0].Value != there[0].Value {
				return fmt.Errorf("the hub has %v, the cluster %v, %w", here, there, err)
			}
			return nil
		})
	}
	same("no slice of the outage is missing", cut, time.Now())

	// Four hours in which nothing comes through, and nobody is told.
	if err := network.Cut(); err != nil {
		t.Fatal(err)
	}
	cut = time.Now()
	cluster.eventually("four hours pass", func(ctx context.Context) error {
		return cluster.atLeast(ctx, fmt.Sprintf(`count_over_time(bellwether:slices_recorded:timestamp[%ds])`,
			int(time.Since(cut).Seconds())), 2*window.Seconds())
	})
	if err := network.Heal(t.Context()); err != nil {
		t.Fatal(err)
	}
	healed := time.Now()
	// A part of the window passes until everything is sent.
	same("what is younger than the window has arrived", healed.Add(-window*2/3), healed)
	lost := fmt.Sprintf(`count_over_time(bellwether:sli_bad:bool{cluster="cut",sli="csv"}[%ds])`,
		int((window * 2 / 3).Seconds()))
	if there, err := hub.Query(t.Context(), lost, healed.Add(-window*7/6)); err != nil || len(there) > 0 {
		t.Errorf("slices that are older than the window: %v, %v", there, err)
	}
	if err := cluster.atLeast(t.Context(), `sum(prometheus_remote_storage_samples_dropped_total{reason="too_old"})`,
		1); err != nil {
		t.Errorf("the sender says nothing of what it dropped: %v", err)
	}
	hub.eventually("it is said that a whole hour is missing", func(ctx context.Context) error {
		return hub.atLeast(ctx, `bellwether:slices_missing:ratio{cluster="cut"}`, 1)
	})
	hub.eventually("it is said that no later hour is missing", func(ctx context.Context) error {
		// On a busy machine single evaluations are missed.
		return hub.gives(ctx, `sum(bellwether:slices_missing:ratio{cluster="cut"} > 0.5) or vector(0)`, 0)
	})
	// Between one and three hours: two are lost, and each of their slices is in 60 hours that slide.
	share, err := hub.one(t.Context(), `sum_over_time(bellwether:slices_missing:ratio{cluster="cut"}[15m]) * 4 / 60`)
	if err != nil || share < 1 || share > 3 {
		t.Errorf("%v hours are missing, want 2: %v", share, err)
	}
	if found, err := hub.Query(t.Context(), `max_over_time(bellwether:slices_missing:ratio{cluster="well"}[15m]) > 0.5`,
		time.Time{}); err != nil || len(found) > 0 {
		t.Errorf("slices of the other cluster are missing: %v, %v", found, err)
	}
}

// badSlicesOf is how often the operator was bad, as its budget counts it.
const badSlicesOf = `sum(sum_over_time(bellwether:sli_bad:slice{cluster="cut",sli="csv"}[30m]))`

// gives wants one value.
func (l live) gives(ctx context.Context, query string, want float64) error {
	got, err := l.one(ctx, query)
	if err == nil && got != want {
		return fmt.Errorf("%s gives %v, want %v", query, got, want)
	}
	return err
}

// atLeast wants a value that is not less.
func (l live) atLeast(ctx context.Context, query string, want float64) error {
	got, err := l.one(ctx, query)
	if err == nil && got < want {
		return fmt.Errorf("%s gives %v, want at least %v", query, got, want)
	}
	return err
}
