// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/prometheus"
)

// scrapeInterval is shorter than most people's, so that a slice of a minute has several samples soon.
const scrapeInterval = 10 * time.Second

// monitoring is a Prometheus that scrapes all pods with metrics, on all clusters, and evaluates the rules that the hub
// writes. It sends alerts to an Alertmanager that has the configuration that the hub writes.
type monitoring struct {
	*prometheus.Server
	rules *follower
	pager *pager
}

// startMonitoring starts Prometheus, and with Options.Silencing Alertmanager, before anything is installed: the hub is
// told their addresses.
func (p *Platform) startMonitoring(ctx context.Context) error {
	binaries, err := build.Ensure(ctx, p.opts.Out, build.Prometheus, build.Alertmanager)
	if err != nil {
		return err
	}
	var jobs []prometheus.Job
	for _, c := range p.Fleet.All() {
		jobs = append(jobs, prometheus.PodsOf(c.Name(), c.Kubeconfig()))
	}
	client, err := kubernetes.NewForConfig(p.Fleet.Hub.RESTConfig())
	if err != nil {
		return fmt.Errorf("make client of the hub: %w", err)
	}
	server, err := prometheus.Start(ctx, prometheus.Options{
		Dir: filepath.Join(p.Fleet.Dir(), "prometheus"), Binary: binaries[build.Prometheus], Jobs: jobs,
		Interval: scrapeInterval, Self: true,
	})
	if err != nil {
		return err
	}
	p.monitoring = &monitoring{Server: server}
	if p.monitoring.pager, err = p.startPaging(ctx, client, binaries[build.Alertmanager]); err != nil {
		return err
	}
	rules := &follower{
		server: "prometheus", label: v1alpha1.LabelRules, files: ruleFiles, load: server.SetRules, say: p.say,
		informer: func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Core().V1().ConfigMaps().Informer()
		},
	}
	if err := rules.start(ctx, client); err != nil {
		return err
	}
	p.monitoring.rules = rules
	return nil
}

// stop ends the servers and what feeds them.
func (m *monitoring) stop(ctx context.Context) {
	if m.rules != nil {
		m.rules.end()
	}
	m.Stop(ctx)
	if m.pager != nil {
		m.pager.stop(ctx)
	}
}

// Prometheus returns the server that watches the platform, or nil without Options.Monitoring.
func (p *Platform) Prometheus() *prometheus.Server {
	if p.monitoring == nil {
		return nil
	}
	return p.monitoring.Server
}

// say shows progress. That nobody can see it is no reason to stop.
func (p *Platform) say(format string, args ...any) {
	_, _ = fmt.Fprintf(p.opts.Out, format+"\n", args...)
}
