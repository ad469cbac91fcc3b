// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/bench/slo/fleet"
	"github.com/bellwether-dev/bellwether/testbed/loopback"
	"github.com/bellwether-dev/bellwether/testbed/prometheus"
)

// exporter answers scrapes of the hub and of all clusters of a fleet: the minutes after its history are those after its
// start.
type exporter struct {
	address string
	server  *http.Server
	done    chan error
}

// exported is a series with its labels already written.
type exported struct {
	id string
	fleet.Series
}

// metricsPath is where the metrics of a cluster are, and hubPath where those of the hub are.
func metricsPath(cluster int) string { return "/" + fleet.Cluster(cluster) + "/metrics" }

const hubPath = "/hub/metrics"

// startExporter exposes what a function yields of each cluster.
func startExporter(ctx context.Context, f *fleet.Fleet, of func(cluster int) iter.Seq[fleet.Series],
	start time.Time) (*exporter, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", loopback.Address(0))
	if err != nil {
		return nil, fmt.Errorf("listen for scrapes: %w", err)
	}
	mux := http.NewServeMux()
	handle := func(path string, from iter.Seq[fleet.Series]) {
		var all []exported
		for s := range from {
			// What is before is in the history, and takes memory here.
			all = append(all, exported{identity(s), fleet.Series{Runs: s.Drop(f.Size().History).Runs}})
		}
		slices.SortStableFunc(all, func(a, b exported) int { return strings.Compare(a.id, b.id) })
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			expose(w, all, int(time.Since(start)/time.Minute))
		})
	}
	for c := range f.Size().Clusters {
		handle(metricsPath(c), of(c))
	}
	handle(hubPath, f.Hub())
	e := &exporter{address: listener.Addr().String(),
		server: &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}, done: make(chan error, 1)}
	go func() { e.done <- e.server.Serve(listener) }()
	return e, nil
}

func (e *exporter) stop() error {
	err := e.server.Close()
	if served := <-e.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// jobs are what has to be scraped: the hub, and a target for each cluster. What the Prometheus of a cluster sends has
// no labels of a target.
func (e *exporter) jobs(clusters int, sent bool) []prometheus.Job {
	all := []prometheus.Job{{Name: "hub", Targets: []string{e.address},
		Labels: map[string]string{"__metrics_path__": hubPath, "instance": "hub"}}}
	drop := ""
	if sent {
		drop = "instance|job"
	}
	for c := range clusters {
		labels := fleet.Target(c)
		labels["__metrics_path__"] = metricsPath(c)
		all = append(all, prometheus.Job{Name: fleet.Cluster(c), Targets: []string{e.address}, Labels: labels,
			DropLabels: drop})
	}
	return all
}

// identity is a series as the text format has it.
func identity(s fleet.Series) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		if name != fleet.Name {
			pairs = append(pairs, name+"="+strconv.Quote(s.Labels[name]))
		}
	}
	return s.Labels[fleet.Name] + "{" + strings.Join(pairs, ",") + "} "
}

// expose writes the samples of a minute. A scraper that has gone away is no reason to complain.
func expose(to io.Writer, all []exported, minute int) {
	out := bufio.NewWriterSize(to, 64<<10)
	var number []byte
	for _, s := range all {
		value, ok := s.At(minute)
		if !ok {
			continue
		}
		number = strconv.AppendFloat(number[:0], value, 'f', -1, 64)
		_, _ = out.WriteString(s.id)
		_, _ = out.Write(append(number, '\n'))
	}
	_ = out.Flush()
}
