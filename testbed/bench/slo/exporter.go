// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
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

// exporter answers scrapes of all clusters of a fleet: the minutes after its history are those after its start.
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

// metricsPath is where the metrics of a cluster are.
func metricsPath(cluster int) string { return "/" + fleet.Cluster(cluster) + "/metrics" }

func startExporter(ctx context.Context, f *fleet.Fleet, start time.Time) (*exporter, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", loopback.Address(0))
	if err != nil {
		return nil, fmt.Errorf("listen for scrapes: %w", err)
	}
	mux := http.NewServeMux()
	for c := range f.Size().Clusters {
		var all []exported
		for s := range f.Exported(c) {
			all = append(all, exported{identity(s), s})
		}
		slices.SortStableFunc(all, func(a, b exported) int {
			return strings.Compare(a.Labels[fleet.Name],
				b.Labels[fleet.Name])
		})
		mux.HandleFunc("GET "+metricsPath(c), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			expose(w, all, f.Size().History+int(time.Since(start)/time.Minute))
		})
	}
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

// jobs are what has to be scraped: a target for each cluster.
func (e *exporter) jobs(clusters int) []prometheus.Job {
	var all []prometheus.Job
	for c := range clusters {
		labels := fleet.Target(c)
		labels["__metrics_path__"] = metricsPath(c)
		all = append(all, prometheus.Job{Name: fleet.Cluster(c), Targets: []string{e.address}, Labels: labels})
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
