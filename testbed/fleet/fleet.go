// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet runs a hub and any number of fleet clusters side by side on one machine, sharing one etcd. The demo,
// the end-to-end tests and the benchmarks stand on it.
//
// It brings up clusters, not Bellwether: that is installed into them as into any other cluster.
package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/process"
	"github.com/bellwether-dev/bellwether/testbed/runs"
)

// HubName is the name of the hub among the clusters of a fleet.
const HubName = "hub"

// DefaultClusters is one canary and two clusters of production in different regions.
var DefaultClusters = []string{"canary", "prod-eu", "prod-us"}

// Options say what a fleet consists of.
type Options struct {
	// Name sets the fleet apart from others on this machine. Required.
	Name string
	// Clusters names the members, without the hub; nil means DefaultClusters.
	Clusters []string
	// Images says which program stands for which image in every cluster's pods.
	Images map[string]cluster.Image
	// Quick is that of cluster.Options.
	Quick bool
	// WithoutPods leaves the pod runners out: workloads then stay pending.
	WithoutPods bool
	// Programs are programs of this repository (package build) to build beside the pod runner; Fleet.Binary tells
	// where.
	Programs []string
	// Prepare, if set, runs after the programs were built and before a cluster starts. It returns further images.
	Prepare func(binaries map[string]string) (map[string]cluster.Image, error)
	// Out receives a line per step; nil means silence.
	Out io.Writer
}

// Fleet is a running fleet.
type Fleet struct {
	// Hub has an API server, a controller-manager and pods, but no OLM.
	Hub *cluster.Cluster
	// Clusters are the members in the order of Options.
	Clusters []*cluster.Cluster

	opts     Options
	run      *runs.Run
	etcd     *cluster.Etcd
	binaries map[string]string
	replaced int
	mu       sync.Mutex // guards Hub and Clusters while they start
}

// quiet gives controller-runtime's log, which envtest writes to, an end: without one it prints a long complaint.
var quiet = sync.OnceFunc(func() { ctrllog.SetLogger(logr.Discard()) })

// Start builds what is missing, starts everything and returns when all clusters are ready. On an error, and when ctx
// ends before, everything is stopped and removed again but the logs, which the error names.
func Start(ctx context.Context, opts Options) (*Fleet, error) {
	if opts.Clusters == nil {
		opts.Clusters = DefaultClusters
	}
	out := opts.Out
	if out == nil {
		out = io.Discard
	}
	opts.Out = &lines{out: out}
	quiet()
	if err := validate(opts); err != nil {
		return nil, err
	}
	run, err := runs.Claim(ctx, opts.Name)
	if err != nil {
		return nil, err
	}
	f := &Fleet{opts: opts, run: run}
	if err := f.start(ctx); err != nil {
		cancelled := ctx.Err() != nil
		_ = f.stop(context.WithoutCancel(ctx), !cancelled)
		if cancelled {
			return nil, fmt.Errorf("start fleet: %w", ctx.Err())
		}
		return nil, fmt.Errorf("start fleet (logs stay in %s for a day): %w", run.Dir(), err)
	}
	return f, nil
}

func validate(opts Options) error {
	seen := map[string]bool{HubName: true}
	for _, name := range opts.Clusters {
		if seen[name] {
			return fmt.Errorf("check options: cluster name %q is taken", name)
		}
		seen[name] = true
	}
	return nil
}

func (f *Fleet) start(ctx context.Context) error {
	if err := f.build(ctx); err != nil {
		return err
	}
	if err := f.prepare(); err != nil {
		return err
	}
	began := time.Now()
	etcd, err := cluster.StartEtcd(ctx, f.etcdDir(), f.binaries[build.Etcd])
	if err != nil {
		return err
	}
	f.etcd = etcd
	if err := f.startClusters(ctx); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(f.opts.Out, "fleet %s: hub and %d clusters ready in %s\n", f.opts.Name, len(f.Clusters),
		time.Since(began).Round(100*time.Millisecond))
	return f.writeState()
}

// build makes all binaries: upstream's from the cache, our own into the run's folder, so that a later build of the same
// tree does not change a running fleet.
func (f *Fleet) build(ctx context.Context) error {
	components := cluster.Options{OLM: len(f.opts.Clusters) > 0}.Components()
	binaries, err := build.Ensure(ctx, f.opts.Out, components...)
	if err != nil {
		return err
	}
	programs := slices.Clone(f.opts.Programs)
	if !f.opts.WithoutPods {
		programs = append(programs, build.PodRunner)
	}
	own, err := build.Local(ctx, f.opts.Out, filepath.Join(f.run.Dir(), "bin"), programs...)
	if err != nil {
		return err
	}
	maps.Copy(binaries, own)
	f.binaries = binaries
	return nil
}

// prepare adds the images that depend on the binaries just built.
func (f *Fleet) prepare() error {
	images := map[string]cluster.Image{}
	maps.Copy(images, f.opts.Images)
	if f.opts.Prepare != nil {
		more, err := f.opts.Prepare(maps.Clone(f.binaries))
		if err != nil {
			return fmt.Errorf("prepare images: %w", err)
		}
		maps.Copy(images, more)
	}
	f.opts.Images = images
	return nil
}

// startClusters starts as many clusters at a time as there are cores; more would only wait for each other.
func (f *Fleet) startClusters(ctx context.Context) error {
	f.Clusters = make([]*cluster.Cluster, len(f.opts.Clusters))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(2, runtime.NumCPU()))
	group.Go(func() error {
		hub, err := f.startCluster(ctx, HubName, false)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.Hub = hub
		return err
	})
	for i, name := range f.opts.Clusters {
		group.Go(func() error {
			c, err := f.startCluster(ctx, name, true)
			f.mu.Lock()
			defer f.mu.Unlock()
			f.Clusters[i] = c
			return err
		})
	}
	return group.Wait()
}

func (f *Fleet) startCluster(ctx context.Context, name string, olm bool) (*cluster.Cluster, error) {
	return cluster.Start(ctx, cluster.Options{
		Name:     name,
		Dir:      filepath.Join(f.run.Dir(), "clusters", name),
		Binaries: f.binaries,
		Etcd:     f.etcd,
		OLM:      olm,
		Quick:    f.opts.Quick,
		Pods:     !f.opts.WithoutPods,
		Images:   f.opts.Images,
		Out:      f.opts.Out,
	})
}

// ReplaceHub ends the hub with everything on it, and starts another one with an etcd, certificates and keys of its own:
// nothing of the hub before is left. It returns when the new hub is ready.
func (f *Fleet) ReplaceHub(ctx context.Context) error {
	f.Hub.Stop(ctx)
	f.replaced++
	hub, err := cluster.Start(ctx, cluster.Options{
		Name: HubName, Dir: filepath.Join(f.run.Dir(), "clusters", fmt.Sprintf("%s-%d", HubName, f.replaced)),
		Binaries: f.binaries, Pods: !f.opts.WithoutPods, Images: f.opts.Images, Out: f.opts.Out,
	})
	if err != nil {
		return fmt.Errorf("replace hub: %w", err)
	}
	f.mu.Lock()
	f.Hub = hub
	f.mu.Unlock()
	return f.writeState()
}

func (f *Fleet) etcdDir() string { return filepath.Join(f.run.Dir(), "etcd") }

// Failure returns an error once an API server has ended without having been told to, and nil otherwise.
func (f *Fleet) Failure() error {
	for _, c := range f.All() {
		if err := c.Failure(); err != nil {
			return fmt.Errorf("watch cluster %s: %w", c.Name(), err)
		}
	}
	return nil
}

// Name returns the fleet's name.
func (f *Fleet) Name() string { return f.opts.Name }

// Dir returns the private folder of the fleet. It is removed by Stop.
func (f *Fleet) Dir() string { return f.run.Dir() }

// Binary returns the path of a program or component that the fleet uses, or "".
func (f *Fleet) Binary(name string) string { return f.binaries[name] }

// Cluster returns the hub or a member by name, or nil.
func (f *Fleet) Cluster(name string) *cluster.Cluster {
	for _, c := range f.All() {
		if c.Name() == name {
			return c
		}
	}
	return nil
}

// All returns the hub and the members.
func (f *Fleet) All() []*cluster.Cluster {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(append([]*cluster.Cluster{f.Hub}, f.Clusters...),
		func(c *cluster.Cluster) bool { return c == nil })
}

// Stop ends all processes and removes the fleet's folder.
func (f *Fleet) Stop(ctx context.Context) error { return f.stop(ctx, false) }

// StopKeepingLogs does the same, but leaves the folder for a day.
func (f *Fleet) StopKeepingLogs(ctx context.Context) error { return f.stop(ctx, true) }

func (f *Fleet) stop(ctx context.Context, keepLogs bool) error {
	var group sync.WaitGroup
	for _, c := range f.All() {
		group.Go(func() { c.Stop(ctx) })
	}
	group.Wait()
	if f.etcd != nil {
		f.etcd.Stop(ctx)
	}
	if err := f.run.Release(keepLogs); err != nil {
		return fmt.Errorf("release fleet %s: %w", f.opts.Name, err)
	}
	return nil
}

// State is what other processes can know about a fleet that is up.
type State struct {
	Name     string         `json:"name"`
	Owner    process.Record `json:"owner"`
	EtcdDir  string         `json:"etcdDir"`
	Clusters []Member       `json:"clusters"` // the hub first
}

// Member is a cluster of a fleet.
type Member struct {
	Name       string `json:"name"`
	URL        string `json:"url"`
	Kubeconfig string `json:"kubeconfig"`
	Dir        string `json:"dir"`
}

const stateFile = "fleet.json"

func (f *Fleet) writeState() error {
	owner, err := process.Self()
	if err != nil {
		return fmt.Errorf("identify owner: %w", err)
	}
	state := State{Name: f.opts.Name, Owner: owner, EtcdDir: f.etcdDir()}
	for _, c := range f.All() {
		state.Clusters = append(state.Clusters, Member{Name: c.Name(), URL: c.URL(), Kubeconfig: c.Kubeconfig(),
			Dir: c.Dir()})
	}
	content, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return fmt.Errorf("encode state: %w", err)
	}
	path := filepath.Join(f.run.Dir(), stateFile)
	if err := os.WriteFile(path+".part", content, 0o600); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	if err := os.Rename(path+".part", path); err != nil {
		return fmt.Errorf("finish state: %w", err)
	}
	return nil
}

// Read returns the state of the named fleet. It is os.ErrNotExist if no such fleet is up and ready.
func Read(name string) (State, error) {
	dir, ok := runs.Folder(name)
	if !ok {
		return State{}, fmt.Errorf("find fleet %s: %w", name, os.ErrNotExist)
	}
	content, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		return State{}, fmt.Errorf("read state of fleet %s: %w", name, err)
	}
	var state State
	if err := json.Unmarshal(content, &state); err != nil {
		return State{}, fmt.Errorf("decode state of fleet %s: %w", name, err)
	}
	return state, nil
}

// Names returns the names of all fleets that are up and ready.
func Names() ([]string, error) {
	names, err := runs.List()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(names, func(name string) bool {
		_, err := Read(name)
		return err != nil
	}), nil
}

// lines keeps the lines of clusters that start side by side apart.
type lines struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}
