// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package podrunner

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/testbed/podrunner/plan"
	"github.com/bellwether-dev/bellwether/testbed/podrunner/probe"
)

// eagerPeriod is how often a container that is not ready is asked whether it
// is. It may be shorter than the probe's period: that a failing readiness
// probe fails once more changes nothing, and success is seen sooner.
const eagerPeriod = time.Second

// probe runs the container's probes until ctx ends. An error means that the
// container has to be restarted.
func (c *container) probe(ctx context.Context, t probe.Target) error {
	if p := c.spec.StartupProbe; p != nil {
		if err := c.until(ctx, "startup", p, t, true); err != nil || ctx.Err() != nil {
			return err
		}
		c.w.set(c.index, func(s *corev1.ContainerStatus) {
			s.Started, s.Ready = ptr.To(true), c.spec.ReadinessProbe == nil
		})
	}
	g, ctx := errgroup.WithContext(ctx)
	if p := c.spec.LivenessProbe; p != nil {
		g.Go(func() error { return c.until(ctx, "liveness", p, t, false) })
	}
	if p := c.spec.ReadinessProbe; p != nil {
		g.Go(func() error { c.readiness(ctx, p, t); return nil })
	}
	return g.Wait()
}

// until probes until the verdict is Failing, which is an error, or ctx ends,
// or, if once is set, the verdict is Passing.
func (c *container) until(ctx context.Context, name string, p *corev1.Probe, t probe.Target, once bool) error {
	var count plan.ProbeCount
	for delay := initialDelay(p); wait(ctx, delay); delay = plan.Period(p) {
		verdict, err := c.judge(ctx, name, p, t, &count)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // a probe that was cut off says nothing
		case verdict == plan.Failing:
			return fmt.Errorf("%s probe failed: %w", name, err)
		case verdict == plan.Passing && once:
			return nil
		}
	}
	return nil
}

// judge probes once; the error is the probe's own.
func (c *container) judge(ctx context.Context, name string, p *corev1.Probe, t probe.Target,
	count *plan.ProbeCount) (plan.Verdict, error) {
	err := c.check(ctx, p, t)
	if err != nil && ctx.Err() == nil {
		c.unhealthy(name, err)
	}
	return count.Observe(p, err == nil), err
}

// readiness keeps the container's Ready as the probe says until ctx ends.
func (c *container) readiness(ctx context.Context, p *corev1.Probe, t probe.Target) {
	var count plan.ProbeCount
	if !wait(ctx, initialDelay(p)) {
		return
	}
	for ready := false; ; {
		err := c.check(ctx, p, t)
		if ctx.Err() != nil {
			return
		}
		switch verdict := count.Observe(p, err == nil); {
		case verdict == plan.Passing && !ready, verdict == plan.Failing && ready:
			ready = !ready
			c.w.set(c.index, func(s *corev1.ContainerStatus) { s.Ready = ready })
		case verdict == plan.Failing:
			c.unhealthy("readiness", err)
		}
		period := plan.Period(p)
		if !ready {
			period = min(period, eagerPeriod)
		}
		if !wait(ctx, period) {
			return
		}
	}
}

func (c *container) check(ctx context.Context, p *corev1.Probe, t probe.Target) error {
	ctx, cancel := context.WithTimeout(ctx, plan.Timeout(p))
	defer cancel()
	return probe.Check(ctx, p, t)
}

func (c *container) unhealthy(name string, err error) {
	c.w.event(corev1.EventTypeWarning, "Unhealthy",
		fmt.Sprintf("%s probe of container %s failed: %v", name, c.spec.Name, err))
}

func initialDelay(p *corev1.Probe) time.Duration {
	return time.Duration(p.InitialDelaySeconds) * time.Second
}
