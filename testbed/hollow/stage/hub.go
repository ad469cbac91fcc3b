// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/loopback"
	"github.com/bellwether-dev/bellwether/testbed/process"
)

// hubUser is the identity that the chart gives the hub.
const hubUser = "system:serviceaccount:" + HubNamespace + ":bellwether-hub"

// hubLimit is how long a hub may take to answer.
const hubLimit = time.Minute

// Hub is a running hub: a process of its own.
type Hub struct {
	*process.Process
	metrics string
}

// StartHub runs the hub's program as the chart does, but for the addresses, with further arguments, and returns when it
// answers; whether it leads is another matter.
func (s *Stage) StartHub(ctx context.Context, name string, args ...string) (*Hub, error) {
	kubeconfig, err := s.API.WriteKubeconfig("bellwether-hub", hubUser, "system:serviceaccounts",
		"system:serviceaccounts:"+HubNamespace, "system:authenticated")
	if err != nil {
		return nil, err
	}
	h := &Hub{}
	err = loopback.OnFreePorts(ctx, 2, func(ports []int) error {
		h.metrics = "http://" + loopback.Address(ports[0]) + "/metrics"
		health := loopback.Address(ports[1])
		h.Process, err = process.Start(process.Spec{
			Name: name, Path: s.HubProgram, Dir: s.Dir, Log: filepath.Join(s.Dir, name+".log"),
			Args: append([]string{
				"--kubeconfig", kubeconfig, "--metrics-bind-address", loopback.Address(ports[0]),
				"--health-probe-bind-address", health, "--leader-elect=true",
				"--leader-election-namespace", HubNamespace, "--cache-dir", filepath.Join(s.Dir, name+"-cache"),
			}, args...),
		})
		if err != nil {
			return err
		}
		if err := h.WaitReady(ctx, hubLimit, func(ctx context.Context) error {
			response, err := get(ctx, "http://"+health+"/readyz")
			if err != nil {
				return err
			}
			return response.Body.Close()
		}); err != nil {
			h.Kill()
			return err
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", build.Hub, err)
	}
	return h, nil
}

// Metrics are those of a process, by name.
type Metrics map[string]*dto.MetricFamily

// Metrics reads the hub's metrics.
func (h *Hub) Metrics(ctx context.Context) (Metrics, error) {
	response, err := get(ctx, h.metrics)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	return ReadMetrics(response.Body)
}

// ReadMetrics reads Prometheus' text format.
func ReadMetrics(r io.Reader) (Metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(r)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	return families, nil
}

// Each calls f with the labels and the value of each counter and gauge of a metric.
func (m Metrics) Each(name string, f func(labels map[string]string, value float64)) {
	for _, one := range m[name].GetMetric() {
		labels := map[string]string{}
		for _, pair := range one.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		f(labels, one.GetCounter().GetValue()+one.GetGauge().GetValue())
	}
}

// Sum returns the sum of all counters and gauges of a metric that have the labels, given as names and values in turn.
func (m Metrics) Sum(name string, labels ...string) float64 {
	var sum float64
	m.Each(name, func(has map[string]string, value float64) {
		for i := 0; i+1 < len(labels); i += 2 {
			if has[labels[i]] != labels[i+1] {
				return
			}
		}
		sum += value
	})
	return sum
}

func get(ctx context.Context, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("build request: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("get %s: %s", url, response.Status)
	}
	return response, nil
}
