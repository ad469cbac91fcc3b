// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package demo shows Bellwether's main job on real components: a hub and three
// clusters, an operator installed on all of them, and its next version rolled
// out in waves. Whatever it shows, it has asked the clusters for.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/alertmanager"
	"github.com/bellwether-dev/bellwether/testbed/echo/bundle"
	"github.com/bellwether-dev/bellwether/testbed/platform"
)

const (
	operatorName = "echo"
	catalogName  = "demo"
	before       = "1.0.0"
	after        = "1.1.0"

	patience = 5 * time.Minute
	look     = 500 * time.Millisecond
)

// Options of the demo.
type Options struct {
	// Keep leaves the fleet up until ctx ends.
	Keep bool
	// Name sets the fleet apart from others on this machine.
	Name string
	// Images installs hub and agents from container images.
	Images bool
	// Brownfield has one of the clusters run the operator already, installed by an ordinary Subscription. It is taken
	// over.
	Brownfield bool
	Out        io.Writer
	// Started, if there is one, is called when the clusters are up, before anything is installed.
	Started func(context.Context, *platform.Platform) error
	// Protected, if there is one, is told what the bad version did.
	Protected func(Protection)
	// After, if there is one, is called when all is shown, while the fleet is still up.
	After func(context.Context, *platform.Platform) error
}

// Run shows it all. It stops everything that it started, also on an error and
// when ctx ends.
func Run(ctx context.Context, o Options) (err error) {
	d := &demo{Options: o}
	defer func() { err = errors.Join(err, d.stop(ctx, err)) }()
	for _, s := range d.steps() {
		if err := d.step(ctx, s); err != nil {
			return err
		}
	}
	if err := d.summary(ctx); err != nil {
		return err
	}
	if o.After != nil {
		if err := o.After(ctx, d.platform); err != nil {
			return err
		}
	}
	if o.Keep {
		d.keep(ctx)
	}
	return nil
}

// stop stops everything. Logs stay where there was an error that nobody asked for.
func (d *demo) stop(ctx context.Context, cause error) error {
	if d.webhooks != nil {
		defer d.webhooks.Close()
	}
	if d.existing != nil {
		d.existing.end()
	}
	if d.platform == nil {
		return nil
	}
	failed := cause != nil && ctx.Err() == nil
	err := d.platform.Stop(context.WithoutCancel(ctx), failed)
	if failed {
		d.say("logs stay for a day in %s", d.platform.Fleet.Dir())
	}
	return err
}

type demo struct {
	Options
	platform *platform.Platform
	hub      client.Client
	author   *platform.Author
	took     []timing
	asked    []answers
	// services, stopped and exposed tell of the bad version: what users saw, when it was stopped, and how many clusters
	// had it.
	services []service
	stopped  time.Time
	exposed  int
	// webhooks have what the tracker got, and the heartbeats. The incident about the bad version was opened, and ended.
	webhooks      *alertmanager.Webhooks
	opened, ended time.Time
	// existing is what somebody had installed; nil for nothing. There were so many rollouts that took it over.
	existing  *installed
	adoptions int64
}

type timing struct {
	what string
	time.Duration
}

type step struct {
	what string
	do   func(context.Context) error
}

func (d *demo) steps() []step {
	all := []step{
		{"start a hub and three clusters, each with its own API server and OLM", d.startFleet},
		{"install Bellwether's hub with its chart", d.installHub},
		{"lint, sign and publish echo-operator " + before, d.publish},
	}
	if d.Brownfield {
		all = append(all, []step{
			{"somebody installs echo-operator " + before + " on " + existing + ", by an ordinary Subscription",
				d.preinstall},
			{"join the clusters to the fleet: canary, prod-eu, prod-us", d.join},
			{"scan the fleet: what runs there already?", d.scan},
			{"take over what runs, in place; then install " + before + " on the other clusters", d.adopt},
			{"nobody has noticed", d.uninterrupted},
		}...)
	} else {
		all = append(all, []step{
			{"join the clusters to the fleet: canary, prod-eu, prod-us", d.join},
			{"install " + before + " everywhere", d.install},
		}...)
	}
	return append(all, []step{
		{"create an EchoServer on each cluster and ask it", d.greet},
		{"look at the objectives and probes that came by themselves", d.watched},
		{"say who is paged, and where tickets go: a PagingPolicy", d.route},
		{"lint, sign and publish " + after + "; the hub notices it", d.release},
		{"roll " + after + " out in waves: canary first, then production one by one", d.upgrade},
		{"ask the echo servers again", d.greetAgain},
		{"look at the budgets, and at what the upgrade took of them", d.budgets},
		{"lint, sign and publish " + bad + ", half of whose reconciles fail; no linter can see that", d.publishBad},
		{"roll " + bad + " out: a gate of the canary stops it, and it is rolled back in place", d.breakCanary},
		{"somebody is paged: one incident, with what changed and what to do", d.paged},
		{"publish the fix, " + fixed + ", and roll it out through the same gate", d.fix},
		{"the incident is resolved, as the fleet is healthy: the ledger of PagerDuty's Events API", d.resolved},
	}...)
}

func (d *demo) step(ctx context.Context, s step) error {
	d.say("\n=== %s", s.what)
	began := time.Now()
	if err := s.do(ctx); err != nil {
		return fmt.Errorf("%s: %w", s.what, err)
	}
	took := time.Since(began)
	d.took = append(d.took, timing{s.what, took})
	d.say("=== done in %s", took.Round(100*time.Millisecond))
	return nil
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.Out, format+"\n", args...) }

func (d *demo) startFleet(ctx context.Context) error {
	p, err := platform.StartFleet(ctx, platform.Options{Name: d.Name, Monitoring: true, Silencing: true,
		Images: d.Images, Out: d.Out})
	if err != nil {
		return err
	}
	d.platform = p
	if d.hub, err = p.Client("hub", platform.Scheme()); err != nil || d.Started == nil {
		return err
	}
	return d.Started(ctx, p)
}

func (d *demo) installHub(ctx context.Context) error {
	if err := d.platform.InstallHub(ctx); err != nil {
		return err
	}
	return client.IgnoreAlreadyExists(d.hub.Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: platform.Namespace}}))
}

func (d *demo) publish(ctx context.Context) error {
	var err error
	if d.author, err = d.platform.Author(ctx, catalogName); err != nil {
		return err
	}
	d.author.Run = func(ctx context.Context, args ...string) error {
		return d.run(d.author.Command(ctx, d.Out, args...), args)
	}
	if err := d.publishVersion(ctx, before); err != nil {
		return err
	}
	key, err := d.author.PublicKey()
	if err != nil {
		return fmt.Errorf("read public key: %w", err)
	}
	if err := d.hub.Create(ctx, &v1alpha1.OperatorCatalog{
		ObjectMeta: metav1.ObjectMeta{Namespace: platform.Namespace, Name: catalogName},
		Spec: v1alpha1.OperatorCatalogSpec{
			Source:       v1alpha1.CatalogSource{Image: d.author.Ref, Insecure: true},
			Verification: &v1alpha1.CatalogVerification{PublicKeys: []string{key}},
			PollInterval: &metav1.Duration{Duration: 5 * time.Second},
		},
	}); err != nil {
		return fmt.Errorf("create OperatorCatalog: %w", err)
	}
	return d.noticed(ctx, before)
}

func (d *demo) publishVersion(ctx context.Context, version string) error {
	if err := d.author.Release(ctx, version); err != nil {
		return err
	}
	return d.author.Publish(ctx)
}

// release publishes the next version behind the tag that the hub watches.
func (d *demo) release(ctx context.Context) error {
	if err := d.publishVersion(ctx, after); err != nil {
		return err
	}
	if err := d.noticed(ctx, after); err != nil {
		return err
	}
	return d.show(ctx, "catalog", "graph", d.author.Ref, bundle.Package, "--installed", "hub")
}

// noticed waits until the hub has read and verified a catalog whose head is that version.
func (d *demo) noticed(ctx context.Context, head string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	catalog := &v1alpha1.OperatorCatalog{}
	if err := wait.PollUntilContextCancel(ctx, look, true, func(ctx context.Context) (bool, error) {
		err := d.hub.Get(ctx, client.ObjectKey{Namespace: platform.Namespace, Name: catalogName}, catalog)
		return slices.ContainsFunc(catalog.Status.Packages, func(p v1alpha1.CatalogPackage) bool {
			return slices.ContainsFunc(p.Channels,
				func(c v1alpha1.CatalogChannel) bool { return c.Name == bundle.Channel && c.Head == head })
		}), err
	}); err != nil {
		return errors.Join(fmt.Errorf("wait for %s in the catalog: %w", head, err),
			d.show(context.WithoutCancel(ctx), "catalog", "list"))
	}
	return d.show(ctx, "catalog", "list")
}

func (d *demo) join(ctx context.Context) error {
	for _, m := range platform.DefaultMembers() {
		if err := d.platform.Join(ctx, m); err != nil {
			return err
		}
	}
	return d.show(ctx, "fleet", "list")
}

func (d *demo) install(ctx context.Context) error {
	if err := d.create(ctx, func(*v1alpha1.ManagedOperatorSpec) {}); err != nil {
		return err
	}
	return d.follow(ctx, 1)
}

// create makes the ManagedOperator.
func (d *demo) create(ctx context.Context, change func(*v1alpha1.ManagedOperatorSpec)) error {
	mo := &v1alpha1.ManagedOperator{
		ObjectMeta: metav1.ObjectMeta{Namespace: platform.Namespace, Name: operatorName},
		Spec: v1alpha1.ManagedOperatorSpec{
			Package: bundle.Package, Catalog: v1alpha1.LocalReference{Name: catalogName}, Version: before,
			Strategy: v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{
				{
					Name: "canary", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"ring": "canary"}},
					Soak: &metav1.Duration{Duration: 5 * time.Second}, Deadline: &metav1.Duration{Duration: patience},
				},
				{
					Name: "production", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"ring": "prod"}},
					SortBy:         "region",
					MaxConcurrency: ptr.To(intstr.FromInt32(1)), Deadline: &metav1.Duration{Duration: patience},
				},
			}},
		},
	}
	change(&mo.Spec)
	if err := d.hub.Create(ctx, mo); err != nil {
		return fmt.Errorf("create ManagedOperator: %w", err)
	}
	return nil
}

func (d *demo) upgrade(ctx context.Context) error {
	if err := d.show(ctx, "rollout", "plan", operatorName, "--version", after); err != nil {
		return err
	}
	if err := d.change(ctx, func(spec *v1alpha1.ManagedOperatorSpec) { spec.Version = after }); err != nil {
		return err
	}
	return d.follow(ctx, 2)
}

// rollout is the name of the n-th rollout since everything was adopted that was there.
func (d *demo) rollout(n int64) string { return fmt.Sprintf("%s-%d", operatorName, d.adoptions+n) }

// follow shows the n-th rollout live until it ends, and holds it to success.
func (d *demo) follow(ctx context.Context, n int64) error {
	if err := d.watch(ctx, n); err != nil {
		return err
	}
	return d.show(ctx, "rollout", "status", d.rollout(n))
}

// watch shows the n-th rollout live until it ends.
func (d *demo) watch(ctx context.Context, n int64) error {
	name := d.rollout(n)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rollout := &v1alpha1.OperatorRollout{}
	if err := wait.PollUntilContextCancel(ctx, look, true, func(ctx context.Context) (bool, error) {
		err := d.hub.Get(ctx, client.ObjectKey{Namespace: platform.Namespace, Name: name}, rollout)
		return err == nil, client.IgnoreNotFound(err)
	}); err != nil {
		return errors.Join(fmt.Errorf("wait for rollout %s: %w", name, err),
			d.show(context.WithoutCancel(ctx), "operator", "get", operatorName))
	}
	return d.show(ctx, "rollout", "get", name, "-w")
}

// show runs the command line and lets it write to the demo's output.
func (d *demo) show(ctx context.Context, args ...string) error { return d.showIn(ctx, "", args...) }

func (d *demo) showIn(ctx context.Context, dir string, args ...string) error {
	c := d.platform.Command(ctx, d.Out, args...)
	c.Dir = dir
	return d.run(c, args)
}

func (d *demo) run(c *exec.Cmd, args []string) error {
	d.say("$ bellwether %s", strings.Join(args, " "))
	if err := c.Run(); err != nil {
		return fmt.Errorf("bellwether %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

func (d *demo) summary(ctx context.Context) error {
	d.say("\n=== what happened")
	if err := d.show(ctx, "versions", operatorName, "-o", "wide"); err != nil {
		return err
	}
	d.say("")
	w := tabwriter.NewWriter(d.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CLUSTER\tBEFORE\tAFTER\tANSWER")
	for _, a := range d.asked {
		fmt.Fprintf(w, "%s\t%s\t%s\t%q\n", a.cluster, a.before.Version, a.after.Version, a.after.Message)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := d.showProtection(); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nSTEP\tTOOK")
	var total time.Duration
	for _, t := range d.took {
		fmt.Fprintf(w, "%s\t%s\n", t.what, t.Round(100*time.Millisecond))
		total += t.Duration
	}
	fmt.Fprintf(w, "total\t%s\n", total.Round(100*time.Millisecond))
	return w.Flush()
}

// keep leaves everything up until the user has enough.
func (d *demo) keep(ctx context.Context) {
	d.say("\nThe fleet stays up until Ctrl-C. In another terminal:")
	for _, c := range d.platform.Fleet.All() {
		d.say("  export KUBECONFIG=%s   # %s", c.Kubeconfig(), c.Name())
	}
	d.say("  %s -n %s operator list   # with the hub's", d.platform.Fleet.Binary("bellwether"), platform.Namespace)
	d.say("  export BELLWETHER_PROMETHEUS=%s   # for slo list and slo get", d.platform.Prometheus().URL())
	d.say("  export BELLWETHER_ALERTMANAGER=%s   # for page explain", d.platform.Alertmanager().URL())
	<-ctx.Done()
}
