// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs one Kubernetes cluster as processes on loopback: etcd, kube-apiserver and, as asked for,
// kube-controller-manager, OLM and a runner of pods. All of it is upstream's own code, with RBAC, ServiceAccount tokens
// and admission as in any cluster. There are no kubelets; the addresses of pods and Services are on loopback.
//
// Inputs are binaries (package build) and an empty folder. It never touches a cluster it did not start.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/loopback"
	"github.com/bellwether-dev/bellwether/testbed/process"
)

// Options say what a cluster consists of.
type Options struct {
	// Name is a DNS label; it names the cluster in kubeconfigs and messages.
	Name string
	// Dir is an empty folder of the cluster's own. It is not removed by Stop.
	Dir string
	// Binaries maps the names of package build to paths; Components says which ones are needed.
	Binaries map[string]string
	// Etcd is a server shared with other clusters; nil starts one for this cluster alone.
	Etcd *Etcd
	// EtcdQuota is how many bytes the cluster's own etcd takes before it refuses writes; 0 means etcd's default.
	EtcdQuota int64
	// APIServerOnly leaves the controller-manager out. Nothing then acts on Deployments, deleted namespaces or owner
	// references, and no ServiceAccounts appear; enough for tests of clients and CRDs.
	APIServerOnly bool
	// OLM runs both OLM operators.
	OLM bool
	// Quick trades likeness and memory for time, for tests: OLM's clients send as many requests as they want, where
	// upstream's keep to five a second, and the servers' garbage is collected less often.
	Quick bool
	// Pods runs a node whose pods are processes, and serves Services at their cluster IPs.
	Pods bool
	// Images says which program stands for which image; pods of other images are stubs that run nothing.
	Images map[string]Image
	// Out receives a line per step; nil means silence.
	Out io.Writer
}

// Image is the program that stands for a container image.
type Image struct {
	// Path of the binary, which takes the place of the container's command.
	Path string `json:"path"`
	// Missing says that no registry has the image, and that there is no program.
	Missing bool `json:"missing,omitempty"`
}

// Components returns the names of the upstream components that a cluster of these options needs.
func (o Options) Components() []string {
	names := []string{build.Etcd, build.KubeAPIServer}
	if !o.APIServerOnly {
		names = append(names, build.KubeControllerManager)
	}
	if o.OLM {
		names = append(names, build.OLM, build.OLMCatalog, build.OLMCRDs)
	}
	return names
}

func (o Options) validate() error {
	if o.Name == "" || o.Dir == "" {
		return errors.New("check options: Name and Dir are required")
	}
	if o.APIServerOnly && (o.OLM || o.Pods) {
		return errors.New("check options: OLM and Pods need the controller-manager")
	}
	if o.Etcd != nil && o.EtcdQuota != 0 {
		return errors.New("check options: EtcdQuota needs an etcd of the cluster's own")
	}
	names := o.Components()
	if o.Pods {
		names = append(names, build.PodRunner)
	}
	for _, name := range names {
		if o.Binaries[name] == "" {
			return fmt.Errorf("check options: no binary for %s", name)
		}
	}
	return nil
}

// Cluster is a running cluster.
type Cluster struct {
	opts    Options
	ca      *authority
	etcd    *Etcd
	ownEtcd bool
	port    int
	config  *rest.Config
	ranges  ranges
	claim   net.Listener

	mu        sync.Mutex // guards what follows; RestartAPIServer may run beside readers
	apiServer *process.Process
	kept      []*process.Kept
}

// Start runs a cluster and returns when all its parts are ready. On an error everything is stopped again, and the error
// carries the end of the failing component's log.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	if opts.Out == nil {
		opts.Out = io.Discard
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	c := &Cluster{opts: opts, etcd: opts.Etcd}
	if err := c.start(ctx); err != nil {
		c.Stop(context.WithoutCancel(ctx))
		return nil, fmt.Errorf("start cluster %s: %w", opts.Name, err)
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	if err := makeFolders(c.opts.Dir, "logs", "run", "pki", "kubeconfig", "pods", "programs"); err != nil {
		return err
	}
	if c.etcd == nil {
		var flags []string
		if c.opts.EtcdQuota != 0 {
			flags = []string{"--quota-backend-bytes", strconv.FormatInt(c.opts.EtcdQuota, 10)}
		}
		etcd, err := StartEtcd(ctx, c.opts.Dir, c.opts.Binaries[build.Etcd], flags...)
		if err != nil {
			return err
		}
		c.etcd, c.ownEtcd = etcd, true
	}
	ca, err := newPKI(c.opts.Name, c.path("pki"))
	if err != nil {
		return err
	}
	c.ca = ca
	if err := c.claimRanges(ctx); err != nil {
		return err
	}
	steps := []struct {
		name   string
		wanted bool
		run    func(context.Context) error
	}{
		{"API server", true, c.startAPIServer},
		{"controller-manager", !c.opts.APIServerOnly, c.startControllerManager},
		{"OLM", c.opts.OLM, c.startOLM},
		{"pod runner", c.opts.Pods, c.startPodRunner},
	}
	for _, step := range steps {
		if !step.wanted {
			continue
		}
		began := time.Now()
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("start %s: %w", step.name, err)
		}
		c.say("%s ready in %s", step.name, time.Since(began).Round(100*time.Millisecond))
	}
	return nil
}

// claimRanges gives the cluster its addresses; they stay the same over restarts of the API server.
func (c *Cluster) claimRanges(ctx context.Context) error {
	c.ranges = ranges{services: unservedRange}
	if !c.opts.Pods {
		return nil
	}
	var err error
	c.ranges, c.claim, err = claimRanges(ctx)
	return err
}

// memory is the environment that says how much of it Go programs may use before they collect garbage.
func (c *Cluster) memory() []string {
	if !c.opts.Quick {
		return nil
	}
	return []string{"GOGC=400", "GOMEMLIMIT=1500MiB"}
}

// say shows progress. That nobody can see it is no reason to stop.
func (c *Cluster) say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.opts.Out, c.opts.Name+": "+format+"\n", args...)
}

// Stop ends all processes of the cluster, clients before servers. The folder stays.
func (c *Cluster) Stop(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var group sync.WaitGroup
	for _, kept := range c.kept {
		group.Go(func() { kept.Stop(ctx) })
	}
	group.Wait()
	c.kept = nil
	if c.apiServer != nil {
		c.apiServer.Stop(ctx)
	}
	if c.ownEtcd {
		c.etcd.Stop(ctx)
	}
	if c.claim != nil {
		_ = c.claim.Close()
	}
}

// Name returns the cluster's name.
func (c *Cluster) Name() string { return c.opts.Name }

// Etcd returns the server that has the cluster's data.
func (c *Cluster) Etcd() *Etcd { return c.etcd }

// Dir returns the cluster's folder; logs are in its folder logs.
func (c *Cluster) Dir() string { return c.opts.Dir }

// URL returns the address of the API server. It stays the same over restarts.
func (c *Cluster) URL() string { return "https://" + loopback.Address(c.port) }

// Status tells how one process of the cluster is doing.
type Status struct {
	Name          string
	PID           int
	Running       bool
	Restarts      int
	ResidentBytes int64 // 0 if it does not run
}

// Processes returns the state of every process that belongs to the cluster alone, the API server first.
func (c *Cluster) Processes() []Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Status
	if c.ownEtcd {
		all = append(all, status(c.etcd.process, 0))
	}
	if c.apiServer != nil {
		all = append(all, status(c.apiServer, 0))
	}
	for _, kept := range c.kept {
		all = append(all, status(kept.Process(), kept.Restarts()))
	}
	return all
}

func status(p *process.Process, restarts int) Status {
	s := Status{Name: p.Name(), PID: p.PID(), Restarts: restarts, Running: true}
	select {
	case <-p.Done():
		s.Running = false
	default:
	}
	if bytes, err := process.ResidentBytes(p.PID()); err == nil && s.Running {
		s.ResidentBytes = bytes
	}
	return s
}

// PID returns the process id of a component, or 0 if the cluster has none of that name.
func (c *Cluster) PID(component string) int {
	for _, s := range c.Processes() {
		if s.Name == component {
			return s.PID
		}
	}
	return 0
}

// Kill ends a component as a crash would. All but etcd and the API server are started again after about a second.
func (c *Cluster) Kill(component string) error {
	if component == build.KubeAPIServer {
		c.KillAPIServer()
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, kept := range c.kept {
		if p := kept.Process(); p.Name() == component {
			p.Kill()
			return nil
		}
	}
	return fmt.Errorf("kill %s: cluster %s runs no such component", component, c.opts.Name)
}

func (c *Cluster) path(elements ...string) string {
	return filepath.Join(append([]string{c.opts.Dir}, elements...)...)
}

// run starts a component, waits until it is ready, and keeps it running from then on.
func (c *Cluster) run(ctx context.Context, spec process.Spec, limit time.Duration,
	ready func(context.Context) error) error {
	spec.Log, spec.Dir = process.LogPath(c.opts.Dir, spec.Name), c.path("run")
	spec.Env = append(spec.Env, c.memory()...)
	p, err := process.Start(spec)
	if err != nil {
		return err
	}
	if err := p.WaitReady(ctx, limit, ready); err != nil {
		p.Kill()
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, process.Keep(p))
	return nil
}
