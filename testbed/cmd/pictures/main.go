// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command pictures records the data of which the pictures of dashboards in the documentation are drawn. It runs the
// demo, in which a fleet of three clusters is upgraded, has an endpoint of one cluster fail until that pages, and asks
// the fleet's Prometheus every query of every dashboard. It takes about ten minutes, and leaves nothing running.
//
// Afterwards run go generate ./dashboards in the root of the repository.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	grafana "github.com/bellwether-dev/bellwether/dashboards"
	"github.com/bellwether-dev/bellwether/testbed/alertmanager"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/dashboards"
	"github.com/bellwether-dev/bellwether/testbed/demo"
	"github.com/bellwether-dev/bellwether/testbed/platform"
)

const (
	cluster  = "prod-eu"
	patience = 15 * time.Minute
	look     = 5 * time.Second
	// before and after the outage there is something to see, too.
	before, after = 3 * time.Minute, 2 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := &recorder{}
	err := demo.Run(ctx, demo.Options{
		Name: fmt.Sprintf("pictures-%d", os.Getpid()), Out: os.Stdout, Started: r.started, After: r.record,
	})
	err = errors.Join(err, r.stop())
	if err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1) //nolint:gocritic // stop only restores the signals
	}
}

// recorder is one run.
type recorder struct {
	from    time.Time // when there were clusters
	dir     string
	hooks   *alertmanager.Webhooks
	manager *alertmanager.Server
}

// started starts an Alertmanager beside the fleet's own, which notifies of every page at once.
func (r *recorder) started(ctx context.Context, _ *platform.Platform) error {
	paths, err := build.Ensure(ctx, os.Stderr, build.Alertmanager)
	if err != nil {
		return err
	}
	if r.dir, err = os.MkdirTemp("", "pictures-"); err != nil {
		return fmt.Errorf("create folder: %w", err)
	}
	r.hooks = alertmanager.NewWebhooks()
	config := fmt.Sprintf(`
route:
  receiver: pager
  group_by: [alertname, scope, operator_namespace, operator, cluster, version, recovered_clusters]
  group_wait: 5s
receivers:
- name: pager
  webhook_configs: [{url: "%s/pager"}]
`, r.hooks.URL())
	if r.manager, err = alertmanager.Start(ctx, alertmanager.Options{Dir: r.dir, Binary: paths[build.Alertmanager],
		Config: []byte(config)}); err != nil {
		return err
	}
	r.from = time.Now()
	return nil
}

// stop ends what started started.
func (r *recorder) stop() error {
	if r.manager != nil {
		r.manager.Stop(context.Background())
	}
	if r.hooks != nil {
		r.hooks.Close()
	}
	return os.RemoveAll(r.dir)
}

// record has an endpoint fail, and asks all queries at the end.
func (r *recorder) record(ctx context.Context, p *platform.Platform) error {
	if err := p.Prometheus().SetAlertmanagers(ctx, p.Alertmanager().Address(), r.manager.Address()); err != nil {
		return err
	}
	if err := r.outage(ctx, p); err != nil {
		return err
	}
	root, err := build.Root()
	if err != nil {
		return err
	}
	api, err := p.Prometheus().API()
	if err != nil {
		return err
	}
	chosen := map[string]string{"operator_namespace": platform.Namespace, "operator": "echo"}
	to := time.Now()
	for _, d := range grafana.All() {
		if ptr.Deref(d.Uid, "") == grafana.UIDCluster {
			chosen["cluster"] = cluster
		} else {
			delete(chosen, "cluster")
		}
		data, err := dashboards.Record(ctx, api, d, r.from, to, chosen)
		if err != nil {
			return err
		}
		text, err := json.Marshal(data)
		if err != nil {
			return fmt.Errorf("encode data: %w", err)
		}
		path := filepath.Join(root, "dashboards", "draw", "data", grafana.FileName(d))
		if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
			return fmt.Errorf("write data: %w", err)
		}
	}
	return nil
}

// outage probes an endpoint from one cluster, has it fail until Alertmanager notifies of it, and repairs it.
func (r *recorder) outage(ctx context.Context, p *platform.Platform) error {
	var down atomic.Bool
	endpoint := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			http.Error(out, "down", http.StatusServiceUnavailable)
		}
	}))
	defer endpoint.Close()
	client, err := p.Client(cluster, platform.Scheme())
	if err != nil {
		return err
	}
	if err := client.Create(ctx, &v1alpha1.EndpointProbe{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "checkout"},
		Spec: v1alpha1.EndpointProbeSpec{
			Operator: v1alpha1.OperatorReference{Namespace: platform.Namespace, Name: "echo"},
			Target:   v1alpha1.ProbeTarget{URL: endpoint.URL + "/"}, AllowPrivate: true,
			Interval: &metav1.Duration{Duration: look}, Timeout: &metav1.Duration{Duration: time.Second},
		},
	}); err != nil {
		return fmt.Errorf("create EndpointProbe: %w", err)
	}
	fmt.Println("\n=== an endpoint of", cluster, "is probed, fails, and is repaired")
	if err := pause(ctx, before); err != nil {
		return err
	}
	down.Store(true)
	if err := r.paged(ctx); err != nil {
		return err
	}
	down.Store(false)
	return pause(ctx, after)
}

// paged waits for a notification about the endpoint.
func (r *recorder) paged(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("there was no page"))
	defer cancel()
	for {
		for _, n := range r.hooks.At("/pager") {
			for _, alert := range n.Alerts {
				if alert.Labels["severity"] == "page" && strings.HasPrefix(alert.Labels["sli"], "probe:") {
					return nil
				}
			}
		}
		if err := pause(ctx, look); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
