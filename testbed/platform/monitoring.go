// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/prometheus"
)

const (
	// scrapeInterval is shorter than most people's, so that a slice of a minute has several samples soon.
	scrapeInterval = 10 * time.Second
	// refusedPause is between two attempts to have Prometheus take rules that it refused.
	refusedPause = 2 * time.Second
)

// monitoring is a Prometheus that scrapes all pods with metrics, on all clusters, and evaluates the rules that the hub
// writes.
type monitoring struct {
	*prometheus.Server
	stopFollowing context.CancelFunc
	followed      chan struct{}
}

// startMonitoring starts Prometheus before anything is installed: the hub is told its address.
func (p *Platform) startMonitoring(ctx context.Context) error {
	binaries, err := build.Ensure(ctx, p.opts.Out, build.Prometheus)
	if err != nil {
		return err
	}
	var jobs []prometheus.Job
	for _, c := range p.Fleet.All() {
		jobs = append(jobs, prometheus.PodsOf(c.Name(), c.Kubeconfig()))
	}
	server, err := prometheus.Start(ctx, prometheus.Options{
		Dir: filepath.Join(p.Fleet.Dir(), "prometheus"), Binary: binaries[build.Prometheus], Jobs: jobs,
		Interval: scrapeInterval, Self: true,
	})
	if err != nil {
		return err
	}
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	p.monitoring = &monitoring{Server: server, stopFollowing: stop, followed: make(chan struct{})}
	go func() {
		defer close(p.monitoring.followed)
		p.followRules(following)
	}()
	return nil
}

// stop ends the server and what feeds it.
func (m *monitoring) stop(ctx context.Context) {
	m.stopFollowing()
	<-m.followed
	m.Stop(ctx)
}

// followRules brings the rule files in ConfigMaps of the hub to Prometheus until ctx ends, as a sidecar that reloads it
// does.
func (p *Platform) followRules(ctx context.Context) {
	client, err := kubernetes.NewForConfig(p.Fleet.Hub.RESTConfig())
	if err != nil {
		p.say("prometheus: no rules: %v", err)
		return
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.LabelSelector = v1alpha1.LabelRules + "=true"
		}))
	configMaps := factory.Core().V1().ConfigMaps().Informer()
	changed := make(chan struct{}, 1)
	note := func(any) {
		select {
		case changed <- struct{}{}:
		default: // what is there already will see this change as well
		}
	}
	if _, err := configMaps.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: note, UpdateFunc: func(_, after any) { note(after) }, DeleteFunc: note,
	}); err != nil {
		p.say("prometheus: no rules: %v", err)
		return
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	p.loadRules(ctx, configMaps.GetStore(), changed)
}

// loadRules sets Prometheus's rules each time they changed. Rules that it refuses are tried again, since a fleet that
// is starting may be short of file handles or time; what is wrong is said once.
func (p *Platform) loadRules(ctx context.Context, store cache.Store, changed <-chan struct{}) {
	var retry <-chan time.Time
	var have map[string][]byte
	var complaint string
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-retry:
		}
		retry = nil
		want, err := ruleFiles(store.List())
		if err == nil && maps.EqualFunc(want, have, bytes.Equal) {
			continue
		}
		if err == nil {
			err = p.monitoring.SetRules(ctx, want)
		}
		if err == nil {
			have, complaint = want, ""
			continue
		}
		if text := err.Error(); text != complaint && ctx.Err() == nil {
			p.say("prometheus: %s", text)
			complaint = text
		}
		retry = time.After(refusedPause)
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
