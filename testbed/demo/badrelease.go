// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"sync"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/echo"
	"github.com/bellwether-dev/bellwether/testbed/echo/bundle"
	"github.com/bellwether-dev/bellwether/testbed/platform"
)

const (
	bad   = "1.2.0"
	fixed = "1.3.0"
	// failingReconciles is the share of reconciles that fail on the clusters of a wave. Every second one of the bad
	// version does.
	failingReconciles = `sum(rate(controller_runtime_reconcile_errors_total{` + onTheWave + `}[1m]))
  / sum(rate(controller_runtime_reconcile_total{` + onTheWave + `}[1m]))`
	onTheWave = `cluster=~"${clusters}",namespace="${namespace}"`
)

// service is what the users of a cluster's echo server saw.
type service struct {
	cluster          string
	answered, failed int
	// firstFailure and lastFailure are zero where every request was answered.
	firstFailure, lastFailure time.Time
}

// protect has the canary wave judged by what it does, and bad versions taken back.
func (d *demo) protect(ctx context.Context) error {
	return d.change(ctx, func(spec *v1alpha1.ManagedOperatorSpec) {
		spec.Strategy.OnFailure = v1alpha1.FailureRollback
		spec.Strategy.Waves[0].Gates = []v1alpha1.Gate{{Name: "reconciles", PromQL: &v1alpha1.PromQLGate{
			Query: failingReconciles, Operator: v1alpha1.LessThan, Threshold: "0.1",
			Window: &metav1.Duration{Duration: time.Minute},
		}}}
	})
}

// change edits the ManagedOperator.
func (d *demo) change(ctx context.Context, edit func(*v1alpha1.ManagedOperatorSpec)) error {
	mo := &v1alpha1.ManagedOperator{}
	if err := d.hub.Get(ctx, client.ObjectKey{Namespace: platform.Namespace, Name: operatorName}, mo); err != nil {
		return fmt.Errorf("get ManagedOperator: %w", err)
	}
	patch := client.MergeFrom(mo.DeepCopy())
	edit(&mo.Spec)
	if err := d.hub.Patch(ctx, mo, patch); err != nil {
		return fmt.Errorf("change ManagedOperator: %w", err)
	}
	return nil
}

// publishBad publishes the bad version and waits until the hub has noticed it.
func (d *demo) publishBad(ctx context.Context) error {
	if err := d.publishVersion(ctx, bad); err != nil {
		return err
	}
	return d.noticed(ctx, bad)
}

// breakCanary rolls the bad version out, asks all echo servers meanwhile, and waits until the hub has taken it back.
func (d *demo) breakCanary(ctx context.Context) error {
	if err := d.protect(ctx); err != nil {
		return err
	}
	asking, stop := context.WithCancel(ctx)
	defer stop()
	var asked sync.WaitGroup
	d.services = make([]service, len(d.asked))
	for i := range d.asked {
		c, err := d.platform.Client(d.asked[i].cluster, platform.Scheme())
		if err != nil {
			return err
		}
		d.services[i].cluster = d.asked[i].cluster
		asked.Go(func() { d.services[i].ask(asking, c) })
	}
	err := d.rollBack(ctx)
	stop()
	asked.Wait()
	return err
}

func (d *demo) rollBack(ctx context.Context) error {
	if err := d.change(ctx, func(spec *v1alpha1.ManagedOperatorSpec) { spec.Version = bad }); err != nil {
		return err
	}
	if err := d.watch(ctx, 3); err != nil {
		return err
	}
	if err := d.takenBack(ctx); err != nil {
		return err
	}
	c, err := d.platform.Client(d.asked[0].cluster, platform.Scheme())
	if err != nil {
		return err
	}
	answer, err := d.ask(ctx, c, after)
	if err != nil {
		return fmt.Errorf("ask the echo server of %s: %w", d.asked[0].cluster, err)
	}
	d.say("%s answers %q with version %s again", d.asked[0].cluster, answer.Message, answer.Version)
	return d.show(ctx, "operator", "get", operatorName)
}

// takenBack waits until the bad rollout and its rollback have ended, and remembers when the first was stopped.
func (d *demo) takenBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var failed, back v1alpha1.OperatorRollout
	err := wait.PollUntilContextCancel(ctx, look, true, func(ctx context.Context) (bool, error) {
		for n, rollout := range map[int64]*v1alpha1.OperatorRollout{3: &failed, 4: &back} {
			key := client.ObjectKey{Namespace: platform.Namespace, Name: d.rollout(n)}
			if err := d.hub.Get(ctx, key, rollout); err != nil {
				return false, client.IgnoreNotFound(err)
			}
		}
		return failed.Status.Phase == v1alpha1.RolloutRolledBack && back.Status.Phase == v1alpha1.RolloutSucceeded, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the rollback: %w (%s: %s; %s: %s)", err, failed.Status.Phase, failed.Status.Message,
			back.Status.Phase, back.Status.Message)
	}
	d.stopped, d.exposed = failed.Status.EndedAt.Time, int(back.Status.Clusters.Total)
	return d.show(ctx, "rollout", "get", failed.Name)
}

// fix publishes the version that puts it right, and rolls it out.
func (d *demo) fix(ctx context.Context) error {
	if err := d.author.Run(ctx, "catalog", "block", "ladders/"+bundle.Package+".yaml", bad, "--reason",
		"half of its reconciles fail"); err != nil {
		return err
	}
	if err := d.publishVersion(ctx, fixed); err != nil {
		return err
	}
	if err := d.noticed(ctx, fixed); err != nil {
		return err
	}
	if err := d.change(ctx, func(spec *v1alpha1.ManagedOperatorSpec) { spec.Version = fixed }); err != nil {
		return err
	}
	return d.follow(ctx, 5)
}

// ask asks until ctx ends.
func (s *service) ask(ctx context.Context, c client.Client) {
	for ctx.Err() == nil {
		_, err := echo.Ask(ctx, c, greetNamespace)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			s.answered++
		default:
			s.failed++
			s.lastFailure = time.Now()
			if s.firstFailure.IsZero() {
				s.firstFailure = s.lastFailure
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(look):
		}
	}
}

// Protection is what the gate and the rollback made of the bad release.
type Protection struct {
	// Exposed clusters of all Clusters got the bad version.
	Exposed, Clusters int
	// Stopped and Recovered count from the first request that failed: until the gate stopped the rollout, and until
	// requests were answered again.
	Stopped, Recovered time.Duration
	// Paged is from the first request that failed until somebody was paged, and Resolved from the last one until the
	// incident was resolved. Groups of alerts are gathered sooner than in a fleet that lives longer (package platform).
	Paged, Resolved time.Duration
	// Failed of the Requests to the exposed cluster failed, and FailedElsewhere of the RequestsElsewhere.
	Requests, Failed, RequestsElsewhere, FailedElsewhere int
}

// protection is what was seen of the bad release; the first of the services is that of the canary.
func (d *demo) protection() (Protection, error) {
	canary := d.services[0]
	if canary.firstFailure.IsZero() {
		return Protection{}, fmt.Errorf("no request to %s failed, although it ran %s", canary.cluster, bad)
	}
	p := Protection{
		Exposed: d.exposed, Clusters: len(d.services), Stopped: d.stopped.Sub(canary.firstFailure),
		Recovered: canary.lastFailure.Sub(canary.firstFailure), Requests: canary.answered + canary.failed,
		Failed: canary.failed, Paged: d.opened.Sub(canary.firstFailure), Resolved: d.ended.Sub(canary.lastFailure),
	}
	for _, s := range d.services[1:] {
		p.RequestsElsewhere += s.answered + s.failed
		p.FailedElsewhere += s.failed
	}
	return p, nil
}

// showProtection says what the bad release did.
func (d *demo) showProtection() error {
	d.say("")
	w := tabwriter.NewWriter(d.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "CLUSTER\tREQUESTS WHILE %s WAS ROLLED OUT\tFAILED\n", bad)
	for _, s := range d.services {
		fmt.Fprintf(w, "%s\t%d\t%d\n", s.cluster, s.answered+s.failed, s.failed)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	p, err := d.protection()
	if err != nil {
		return err
	}
	d.say("\nFrom the first failed request, the gate stopped %s after %s, and the echo servers answered again after "+
		"%s. It reached %d of %d clusters.", bad, p.Stopped.Round(time.Second), p.Recovered.Round(time.Second),
		p.Exposed, p.Clusters)
	d.say("Somebody was paged after %s. The incident was resolved %s after the last failed request.",
		p.Paged.Round(time.Second), p.Resolved.Round(time.Second))
	if p.FailedElsewhere > 0 {
		return fmt.Errorf("%d of %d requests to clusters failed that the bad version never reached", p.FailedElsewhere,
			p.RequestsElsewhere)
	}
	if d.Protected != nil {
		d.Protected(p)
	}
	return nil
}
