// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package platform installs Bellwether on a testbed fleet the way its users do:
// with the command line and the Helm chart. The demo, the end-to-end tests and
// the benchmarks start here.
package platform

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/catalogs/registry"
	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/fleet"
	"github.com/bellwether-dev/bellwether/testbed/loopback"
	"github.com/bellwether-dev/bellwether/testbed/proxy"
)

// Names of the images that the charts and the sample operator's bundles ask
// for; the pod runner starts local programs for them.
const (
	imageHub          = charts.Registry + "/hub"
	imageAgent        = charts.Registry + "/agent"
	imageEchoOperator = "example.com/bellwether/echo-operator"
	imageEchoServer   = "example.com/bellwether/echo-server"
)

// MissingImage is an image of the sample operator that no cluster of a platform can pull.
const MissingImage = imageEchoOperator + ":missing"

// Namespace is the one on the hub that holds the demo's catalogs and operators.
const Namespace = "fleet"

// Member is a cluster of the fleet and its labels.
type Member struct {
	Name   string
	Labels map[string]string
}

// DefaultMembers are one canary and two production clusters in different
// regions.
func DefaultMembers() []Member {
	return []Member{
		{Name: "canary", Labels: map[string]string{"ring": "canary", "region": "eu"}},
		{Name: "prod-eu", Labels: map[string]string{"ring": "prod", "region": "eu"}},
		{Name: "prod-us", Labels: map[string]string{"ring": "prod", "region": "us"}},
	}
}

// Options say what to start.
type Options struct {
	// Name sets the fleet apart from others on this machine.
	Name string
	// Members of the fleet; nil means DefaultMembers.
	Members []Member
	// HubReplicas is how many hubs run; zero means one.
	HubReplicas int
	// Monitoring runs a Prometheus that scrapes everything and evaluates the rules that the hub writes; the hub is told
	// of it. Its alerts go to an Alertmanager with the configuration that the hub makes of PagingPolicies.
	Monitoring bool
	// Silencing, with Monitoring, starts the Alertmanager before the hub, and tells the hub its address: AlertSilences
	// come into force, also the hub's own about upgrades. Otherwise it starts with the first configuration.
	Silencing bool
	// HubProxies puts a proxy between each member's agent and the hub; Platform.HubProxy returns it.
	HubProxies bool
	// Images has hub and agent run from container images, which are made, pushed to a registry and pulled from it; the
	// chart names them by their digest. Otherwise pods run the programs as they were built.
	Images bool
	// MoreImages are programs for further images: of operators of a test's own, or of hub and agent with a tag.
	MoreImages map[string]cluster.Image
	// CommandLine is the path of the command line; empty means that of this tree.
	CommandLine string
	// Quick is that of cluster.Options.
	Quick bool
	// Out receives a line per step; nil means silence.
	Out io.Writer
}

// Platform is a fleet with Bellwether on it.
type Platform struct {
	Fleet *fleet.Fleet
	// Registry is the host:port of an OCI registry that speaks plain HTTP.
	Registry string

	opts         Options
	published    *published // nil without Options.Images
	monitoring   *monitoring
	proxies      map[string]*proxy.Proxy
	stopRegistry context.CancelFunc
	registryDone <-chan error
}

// StartFleet starts the clusters and the registry, without Bellwether.
func StartFleet(ctx context.Context, o Options) (*Platform, error) {
	if o.Members == nil {
		o.Members = DefaultMembers()
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	names := make([]string, len(o.Members))
	for i, m := range o.Members {
		names[i] = m.Name
	}
	p := &Platform{opts: o}
	var err error
	p.Fleet, err = fleet.Start(ctx, fleet.Options{Name: o.Name, Clusters: names, Programs: build.Platform(),
		Quick: o.Quick, Out: o.Out, Images: o.MoreImages,
		Prepare: func(binaries map[string]string) (map[string]cluster.Image, error) { return p.images(ctx, binaries) }})
	if err != nil {
		return nil, errors.Join(err, p.published.stop())
	}
	if err := p.startServers(ctx); err != nil {
		return nil, errors.Join(err, p.Stop(context.WithoutCancel(ctx), true))
	}
	return p, nil
}

// startServers starts what the clusters use and is not on them.
func (p *Platform) startServers(ctx context.Context) error {
	err := loopback.OnFreePorts(ctx, 1, func(ports []int) error {
		p.Registry = loopback.Address(ports[0])
		return p.StartRegistry(ctx)
	})
	if err != nil {
		return err
	}
	if err := p.startProxies(ctx); err != nil {
		return err
	}
	if !p.opts.Monitoring {
		return nil
	}
	return p.startMonitoring(ctx)
}

// images maps each image to the program that was built for it, or that was pulled with it.
func (p *Platform) images(ctx context.Context, binaries map[string]string) (map[string]cluster.Image, error) {
	all := map[string]cluster.Image{
		imageEchoOperator: {Path: binaries[build.EchoOperator]},
		MissingImage:      {Missing: true},
		imageEchoServer:   {Path: binaries[build.EchoServer]},
	}
	if !p.opts.Images {
		all[imageHub] = cluster.Image{Path: binaries[build.Hub]}
		all[imageAgent] = cluster.Image{Path: binaries[build.Agent]}
		return all, nil
	}
	var err error
	if p.published, err = publish(ctx, binaries); err != nil {
		return nil, err
	}
	maps.Copy(all, p.published.pulled)
	return all, nil
}

// StartRegistry starts the registry after StopRegistry, with the same address and content.
func (p *Platform) StartRegistry(ctx context.Context) error {
	ctx, p.stopRegistry = context.WithCancel(context.WithoutCancel(ctx))
	ready, done := make(chan string, 1), make(chan error, 1)
	go func() {
		done <- registry.Serve(ctx, registry.Options{
			Addr: p.Registry, Root: filepath.Join(p.Fleet.Dir(), "registry"),
			Ready: func(addr string) { ready <- addr },
		})
	}()
	p.registryDone = done
	select {
	case <-ready:
		return nil
	case err := <-done:
		p.stopRegistry = nil
		return fmt.Errorf("start registry: %w", err)
	}
}

// StopRegistry ends the registry: connections to it are refused. Stopping it again is no error.
func (p *Platform) StopRegistry() error {
	if p.stopRegistry == nil {
		return nil
	}
	p.stopRegistry()
	p.stopRegistry = nil
	if err := <-p.registryDone; err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("stop registry: %w", err)
	}
	return nil
}

func (p *Platform) startProxies(ctx context.Context) error {
	if !p.opts.HubProxies {
		return nil
	}
	hub, err := url.Parse(p.Fleet.Hub.URL())
	if err != nil {
		return fmt.Errorf("find the hub's address: %w", err)
	}
	p.proxies = map[string]*proxy.Proxy{}
	for _, m := range p.opts.Members {
		if p.proxies[m.Name], err = proxy.Start(ctx, m.Name, hub.Host); err != nil {
			return err
		}
	}
	return nil
}

// HubProxy returns the proxy through which a member's agent reaches the hub, or nil without Options.HubProxies.
func (p *Platform) HubProxy(member string) *proxy.Proxy { return p.proxies[member] }

// ReplaceAgent has another program be a member's agent from its next start on.
func (p *Platform) ReplaceAgent(member, program string) error {
	return p.Fleet.Cluster(member).ReplaceProgram(p.published.name(build.Agent, imageAgent), program)
}

// HubPath is the path by which the hub's pods are started.
func (p *Platform) HubPath() string {
	return p.Fleet.Hub.Program(p.published.name(build.Hub, imageHub))
}

// AgentPath is the path by which a member's agent is started, also after ReplaceAgent.
func (p *Platform) AgentPath(member string) string {
	return p.Fleet.Cluster(member).Program(p.published.name(build.Agent, imageAgent))
}

// UseCommandLine has another program be the command line from now on; empty means that of this tree.
func (p *Platform) UseCommandLine(program string) { p.opts.CommandLine = program }

// Install installs the hub, then joins every member.
func (p *Platform) Install(ctx context.Context) error {
	if err := p.InstallHub(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, m := range p.opts.Members {
		group.Go(func() error { return p.Join(ctx, m) })
	}
	return group.Wait()
}

// InstallHub installs the hub with its chart.
func (p *Platform) InstallHub(ctx context.Context) error {
	args := []string{
		"install", "hub", "--timeout", "5m",
		"--set", fmt.Sprintf("hub.replicas=%d", max(p.opts.HubReplicas, 1)), "--set", "hub.bindAddress=$(POD_IP)",
	}
	args = append(args, p.published.values(build.Hub)...)
	if p.monitoring != nil {
		args = append(args, "--set", "hub.slo.prometheusURL="+p.monitoring.URL(),
			"--set", "hub.paging.alertmanagerFolder="+p.monitoring.pager.folder,
			"--set", "hub.paging.pagerDutyHosts={"+p.Events().Host()+"}")
		args = append(args, readableSecrets()...)
		if p.opts.Silencing {
			args = append(args, "--set", "hub.paging.alertmanagerURL="+p.monitoring.pager.manager.URL())
		}
	}
	_, err := p.Bellwether(ctx, args...)
	return err
}

// Join joins a member to the fleet, with further arguments of fleet join.
func (p *Platform) Join(ctx context.Context, m Member, more ...string) error {
	labels := make([]string, 0, len(m.Labels))
	for key, value := range m.Labels {
		labels = append(labels, key+"="+value)
	}
	args := []string{
		"fleet", "join", m.Name, "--labels", strings.Join(labels, ","),
		"--cluster-kubeconfig", p.Fleet.Cluster(m.Name).Kubeconfig(), "--timeout", "5m",
		// There is no DNS on the testbed, and every pod shares one host.
		"--set", "agent.viewHost=$(POD_IP)", "--set", "agent.bindAddress=$(POD_IP)",
		"--set", "agent.extraArgs={--lease-renew-interval=5s,--lease-duration=30s}",
	}
	args = append(args, p.published.values(build.Agent)...)
	args = append(args, more...)
	if way := p.HubProxy(m.Name); way != nil {
		args = append(args, "--hub-server", "https://"+way.Address())
	}
	_, err := p.Bellwether(ctx, args...)
	return err
}

// Publish publishes a catalog with these versions of the sample operator, as its author does, and returns its
// reference.
func (p *Platform) Publish(ctx context.Context, name string, versions ...string) (string, error) {
	a, err := p.Author(ctx, name)
	if err != nil {
		return "", err
	}
	for _, v := range versions {
		if err := a.Release(ctx, v); err != nil {
			return "", err
		}
	}
	return a.Ref, a.Publish(ctx)
}

// Bellwether runs the command line against the hub and returns what it printed.
func (p *Platform) Bellwether(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	err := run(p.Command(ctx, &out, args...))
	return out.String(), err
}

// run runs the command line; its error has what was printed.
func run(c *exec.Cmd) error {
	if err := c.Run(); err != nil {
		return fmt.Errorf("bellwether %s: %w\n%s", strings.Join(c.Args[1:], " "), err,
			strings.TrimSpace(fmt.Sprint(c.Stdout)))
	}
	return nil
}

// Command is the command line with the hub's kubeconfig and the platform's
// namespace, ready to run.
func (p *Platform) Command(ctx context.Context, out io.Writer, args ...string) *exec.Cmd {
	return p.Program(ctx, out, append(slices.Clone(args), "-n", Namespace)...)
}

// Program is Command without the namespace, for commands that are about no cluster.
func (p *Platform) Program(ctx context.Context, out io.Writer, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, cmp.Or(p.opts.CommandLine, p.Fleet.Binary(build.Bellwether)), args...)
	c.Env = append(os.Environ(), "KUBECONFIG="+p.Fleet.Hub.Kubeconfig())
	if p.monitoring != nil {
		c.Env = append(c.Env, "BELLWETHER_PROMETHEUS="+p.monitoring.URL())
	}
	if manager := p.Alertmanager(); manager != nil {
		c.Env = append(c.Env, "BELLWETHER_ALERTMANAGER="+manager.URL())
	}
	c.Stdout, c.Stderr = out, out
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 5 * time.Second
	return c
}

// Client returns a client with full access to the hub or a member.
func (p *Platform) Client(name string, scheme *runtime.Scheme) (client.WithWatch, error) {
	c := p.Fleet.Cluster(name)
	if c == nil {
		return nil, fmt.Errorf("there is no cluster %q", name)
	}
	return client.NewWithWatch(c.RESTConfig(), client.Options{Scheme: scheme})
}

// Stop ends everything. With keepLogs the fleet's folder stays for a day.
func (p *Platform) Stop(ctx context.Context, keepLogs bool) error {
	errs := []error{p.StopRegistry()}
	for _, way := range p.proxies {
		if way != nil {
			way.Stop()
		}
	}
	if p.monitoring != nil {
		p.monitoring.stop(ctx)
	}
	stop := p.Fleet.Stop
	if keepLogs {
		stop = p.Fleet.StopKeepingLogs
	}
	errs = append(errs, stop(ctx))
	return errors.Join(append(errs, p.published.stop())...)
}
