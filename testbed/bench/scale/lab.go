// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scale measures what a large fleet costs the hub, with hollow agents (package hollow) against the real hub and
// a real API server, each a process of its own.
package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/hollow"
	"github.com/bellwether-dev/bellwether/testbed/hollow/stage"
	"github.com/bellwether-dev/bellwether/testbed/runs"
)

const (
	fleetName = "scale"
	// versions of each package in the catalog.
	versions = 12
)

// HubArgs are the flags of the hubs that are measured: no limit of requests but the API server's own, and any number of
// operators of a cluster at a time.
var HubArgs = []string{"--kube-api-qps=5000", "--kube-api-burst=5000", "--max-changes-per-cluster=-1"}

// lab is a hub with a fleet of hollow agents.
type lab struct {
	*stage.Stage
	run   *runs.Run
	etcd  *cluster.Etcd
	api   *cluster.Cluster
	hub   *stage.Hub
	fleet *hollow.Fleet
	names []string
	out   io.Writer

	hubs, servers int

	agentsStarted time.Time
}

// setup says what a lab consists of.
type setup struct {
	clusters, operators int
	hollow              hollow.Options
}

// startLab starts everything, and returns when all clusters are online.
func startLab(ctx context.Context, out io.Writer, s setup) (*lab, error) {
	run, err := runs.Claim(ctx, fmt.Sprintf("bench-scale-%d", os.Getpid()))
	if err != nil {
		return nil, err
	}
	l := &lab{run: run, out: out, names: stage.ClusterNames(fleetName, s.clusters)}
	if err := l.start(ctx, s); err != nil {
		return nil, errors.Join(fmt.Errorf("start fleet of %d clusters (logs stay in %s for a day): %w", s.clusters,
			run.Dir(), err), l.stop(context.WithoutCancel(ctx), ctx.Err() == nil))
	}
	return l, nil
}

func (l *lab) start(ctx context.Context, s setup) error {
	if err := l.prepare(ctx); err != nil {
		return err
	}
	return l.populate(ctx, s)
}

// prepare starts an API server that has nothing but what the chart installs.
func (l *lab) prepare(ctx context.Context) error {
	hubProgram, err := l.startServers(ctx)
	if err != nil {
		return err
	}
	l.Stage, err = stage.Prepare(ctx, l.api, l.run.Dir(), hubProgram)
	return err
}

// populate starts a hub there, registers the clusters, publishes the catalog and starts the agents.
func (l *lab) populate(ctx context.Context, s setup) error {
	if err := l.startHub(ctx); err != nil {
		return err
	}
	began := time.Now()
	if err := l.Register(ctx, fleetName, l.names); err != nil {
		return err
	}
	l.say("%d clusters registered in %s", s.clusters, time.Since(began).Round(time.Second))
	if err := l.Publish(ctx, catalogtest.Options{Packages: s.operators, Versions: versions}); err != nil {
		return err
	}
	s.hollow.Config, s.hollow.Scheme, s.hollow.Clusters = l.api.RESTConfig(), stage.Scheme(), l.names
	l.agentsStarted = time.Now()
	var err error
	if l.fleet, err = hollow.Start(ctx, s.hollow); err != nil {
		return err
	}
	ctx, release := whileRuns(ctx, l.hub)
	defer release()
	return l.UntilOnline(ctx, fleetName, len(l.names))
}

// startServers builds what is missing, starts etcd and the API server and returns the hub's program.
func (l *lab) startServers(ctx context.Context) (string, error) {
	binaries, err := build.Ensure(ctx, l.out, cluster.Options{APIServerOnly: true}.Components()...)
	if err != nil {
		return "", err
	}
	own, err := build.Local(ctx, l.out, filepath.Join(l.run.Dir(), "bin"), build.Hub)
	if err != nil {
		return "", err
	}
	maps.Copy(binaries, own)
	l.servers++
	dir := filepath.Join(l.run.Dir(), fmt.Sprintf("servers-%d", l.servers))
	l.etcd, err = cluster.StartEtcd(ctx, filepath.Join(dir, "etcd"), binaries[build.Etcd])
	if err != nil {
		return "", err
	}
	l.api, err = cluster.Start(ctx, cluster.Options{Name: "hub", Dir: filepath.Join(dir, "api"),
		Binaries: binaries, Etcd: l.etcd, APIServerOnly: true, Out: l.out})
	return own[build.Hub], err
}

// startHub starts the hub anew; the one before must have ended.
func (l *lab) startHub(ctx context.Context) (err error) {
	l.hub, err = l.anotherHub(ctx)
	return err
}

func (l *lab) anotherHub(ctx context.Context) (*stage.Hub, error) {
	l.hubs++
	return l.StartHub(ctx, fmt.Sprintf("hub-%d", l.hubs), HubArgs...)
}

// whileRuns returns a context that ends when the hub ends by itself, as one does that loses its lock on a machine that
// is too slow: what is measured from then on would be nothing.
func whileRuns(ctx context.Context, hub *stage.Hub) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-hub.Done():
			cancel(fmt.Errorf("the hub ended while it was measured: %w", hub.Failure()))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// stop ends everything and removes the files, but for logs if keepLogs is set.
func (l *lab) stop(ctx context.Context, keepLogs bool) error {
	var errs []error
	if l.fleet != nil {
		errs = append(errs, l.fleet.Stop())
	}
	if l.hub != nil {
		l.hub.Stop(ctx)
	}
	if l.api != nil {
		l.api.Stop(ctx)
	}
	if l.etcd != nil {
		l.etcd.Stop(ctx)
	}
	return errors.Join(append(errs, l.run.Release(keepLogs))...)
}

// say shows progress. That nobody can see it is no reason to stop.
func (l *lab) say(format string, args ...any) {
	_, _ = fmt.Fprintf(l.out, format+"\n", args...)
}

// rollOut sets a version of the first n operators on all clusters at once and waits until all of their rollouts have
// succeeded. It returns how long each took, from just before its ManagedOperator was written.
func (l *lab) rollOut(ctx context.Context, n, version, waves int) (time.Duration, error) {
	ctx, release := whileRuns(ctx, l.hub)
	defer release()
	began := time.Now()
	for i := range n {
		o := stage.Operator(i, version, map[string]string{stage.LabelFleet: fleetName},
			stage.Waves(waves, len(l.names)))
		if err := l.Set(ctx, o); err != nil {
			return 0, err
		}
	}
	_, err := l.UntilRolledOut(ctx, catalogtest.Version(version), n, v1alpha1.RolloutSucceeded)
	return time.Since(began), err
}
