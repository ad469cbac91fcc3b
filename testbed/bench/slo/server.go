// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/testbed/bench/slo/fleet"
	"github.com/bellwether-dev/bellwether/testbed/prometheus"
)

// blockRanges are the sizes of the blocks of history, as Prometheus has them if it keeps samples for 30 days: 54 hours,
// but smaller ones of the last 54 hours. A query reads all series of its metric in each block that its window touches,
// so short windows would cost too much with large blocks only.
const blockRanges = "54h,18h,6h,2h"

// fill writes history into the data folder of a server: what was scraped until begin, and what its rules recorded.
func fill(ctx context.Context, writer, dir string, s side, begin time.Time) error {
	start := begin.Add(-time.Duration(s.history) * time.Minute)
	cmd := exec.CommandContext(ctx, writer, "--dir", filepath.Join(dir, "data"), "--start",
		strconv.FormatInt(start.Unix(), 10),
		"--samples", strconv.Itoa(s.history), "--blocks", blockRanges)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("connect to the block writer: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the block writer: %w", err)
	}
	if err := errors.Join(send(in, s, begin), cmd.Wait()); err != nil {
		return fmt.Errorf("write history: %w\n%s", err, complaint.Bytes())
	}
	return nil
}

// send writes what is scraped, of which only the end is there, and what was recorded.
func send(to io.WriteCloser, s side, begin time.Time) error {
	encoder := json.NewEncoder(to)
	before := s.fleet.Size().History - s.history
	encode := func(one fleet.Series, hidden int) error { return encoder.Encode(one.Drop(before).Hide(hidden)) }
	all := []iter.Seq[fleet.Series]{labelled(s.fleet.Hub(), map[string]string{"instance": "hub", "job": "hub"})}
	for c := range s.fleet.Size().Clusters {
		all = append(all, labelled(s.exposed(c, begin), s.target(c)))
	}
	for _, from := range all {
		for one := range from {
			hidden := s.history - s.raw
			if name := one.Labels[fleet.Name]; name == series.SLIBadSlice || name == series.SLIBadVersion {
				hidden = 0
			}
			if err := encode(one, hidden); err != nil {
				return errors.Join(err, to.Close())
			}
		}
	}
	for one := range s.recorded {
		if err := encode(one, 0); err != nil {
			return errors.Join(err, to.Close())
		}
	}
	return to.Close()
}

// labelled adds labels to series.
func labelled(all iter.Seq[fleet.Series], labels map[string]string) iter.Seq[fleet.Series] {
	return func(yield func(fleet.Series) bool) {
		for s := range all {
			maps.Copy(s.Labels, labels)
			if !yield(s) {
				return
			}
		}
	}
}

// reading is what a server says of itself at one moment.
type reading struct {
	cpu time.Duration
	// series are those that are being written.
	series int
	// least is how often the group with the fewest evaluations has been evaluated.
	least  int
	groups map[string]group
}

// group is what is known of a group of rules.
type group struct {
	// evaluations of its rules so far.
	evaluations float64
	// last is how long the last evaluation of the group took, which began at began, in seconds since 1970.
	last, began float64
}

func read(ctx context.Context, s *prometheus.Server) (reading, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/metrics", nil)
	if err != nil {
		return reading{}, fmt.Errorf("build request: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return reading{}, fmt.Errorf("read metrics of Prometheus: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return reading{}, fmt.Errorf("read metrics of Prometheus: %w", err)
	}
	r := reading{least: least(families["prometheus_rule_group_iterations_total"]), groups: map[string]group{}}
	for _, m := range families["prometheus_tsdb_head_series"].GetMetric() {
		r.series = int(value(m))
	}
	for _, m := range families["process_cpu_seconds_total"].GetMetric() {
		r.cpu = time.Duration(value(m) * float64(time.Second))
	}
	note := func(family string, set func(g *group, v float64)) {
		for _, m := range families[family].GetMetric() {
			if v := value(m); v == v { // else it was not evaluated yet
				g := r.groups[groupOf(m)]
				set(&g, v)
				r.groups[groupOf(m)] = g
			}
		}
	}
	note("prometheus_rule_evaluations_total", func(g *group, v float64) { g.evaluations = v })
	note("prometheus_rule_group_last_duration_seconds", func(g *group, v float64) { g.last = v })
	note("prometheus_rule_group_last_evaluation_timestamp_seconds", func(g *group, v float64) { g.began = v })
	return r, nil
}

// groupOf is the name of a metric's group. Prometheus puts the file before it.
func groupOf(m *dto.Metric) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == "rule_group" {
			_, name, _ := strings.Cut(l.GetValue(), ";")
			return name
		}
	}
	return ""
}

// value of a counter or a gauge.
func value(m *dto.Metric) float64 { return m.GetCounter().GetValue() + m.GetGauge().GetValue() }

func least(f *dto.MetricFamily) int {
	found := -1
	for _, m := range f.GetMetric() {
		if v := int(value(m)); found < 0 || v < found {
			found = v
		}
	}
	return max(found, 0)
}

// anonymous is the memory of a process that is no file's, or 0.
func anonymous(pid int) int64 {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "RssAnon:" {
			kilobytes, _ := strconv.ParseInt(fields[1], 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}
