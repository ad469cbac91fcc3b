// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// stepsCache keeps how InstallPlans differ from what is served, by install. The cache of the cluster has no
// manifests, so a plan is read from the API server, once for each of its resource versions.
type stepsCache struct {
	mu   sync.Mutex
	last map[client.ObjectKey]*planVerdicts
}

// planVerdicts are the differences of the existing plans of one install from one view.
type planVerdicts struct {
	view  string
	plans map[plan.Object]string
	// firstDiffering is the first plan that differed; empty if no plan differed.
	firstDiffering types.UID
}

// newStepsCache returns an empty cache.
func newStepsCache() *stepsCache { return &stepsCache{last: map[client.ObjectKey]*planVerdicts{}} }

// readSteps reads a plan that the agent may make OLM carry out, and adds its differences from what is served to an
// observation. Only one goroutine at a time observes an install.
func (c *stepsCache) readSteps(ctx context.Context, live client.Reader, install client.ObjectKey, o *Observation,
	name string) error {
	i := slices.IndexFunc(o.InstallPlans, func(p operatorsv1alpha1.InstallPlan) bool { return p.Name == name })
	if i < 0 {
		return errNotAsObserved
	}
	verdicts, p := c.getVerdicts(install, o), &o.InstallPlans[i]
	differs, isKnown := verdicts.plans[plan.ObjectOf(p)]
	if !isKnown {
		var err error
		if differs, isKnown, err = comparePlan(ctx, live, o, p); err != nil {
			return err
		}
	}
	steps := plan.Steps{IsKnown: isKnown}
	if isKnown {
		verdicts.plans[plan.ObjectOf(p)] = differs
		steps.Difference, steps.IsRepeated = differs, verdicts.recordDifference(p.UID, differs)
	}
	if o.Steps == nil {
		o.Steps = map[types.UID]plan.Steps{}
	}
	o.Steps[p.UID] = steps
	return nil
}

// getVerdicts returns the verdicts about the plans of an install for the view that is offered now. It removes the
// verdicts about plans that do not exist.
func (c *stepsCache) getVerdicts(install client.ObjectKey, o *Observation) *planVerdicts {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.last[install]
	if v == nil || v.view != o.facts.Offer.ViewHash {
		v = &planVerdicts{view: o.facts.Offer.ViewHash, plans: map[plan.Object]string{}}
		c.last[install] = v
	}
	maps.DeleteFunc(v.plans, func(object plan.Object, _ string) bool {
		return !slices.ContainsFunc(o.InstallPlans, func(p operatorsv1alpha1.InstallPlan) bool {
			return plan.ObjectOf(&p) == object
		})
	})
	return v
}

// comparePlan reads a plan from the API server, replaces the observed plan p by it, and returns how it differs from
// what is served. It returns false if the plan was deleted or OLM already carries it out; the cache will soon have
// this state.
func comparePlan(ctx context.Context, reader client.Reader, o *Observation,
	p *operatorsv1alpha1.InstallPlan) (string, bool, error) {
	live := &operatorsv1alpha1.InstallPlan{}
	err := reader.Get(ctx, client.ObjectKeyFromObject(p), live)
	switch {
	case apierrors.IsNotFound(err):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("get InstallPlan: %w", err)
	}
	if *p = *live; !plan.InstallPlanOf(live).CanBeStarted() {
		return "", false, nil
	}
	return o.facts.Offer.Content.FindDifference(live, o.facts.Cluster), true, nil
}

// recordDifference records the first plan that differs, and reports whether this plan differs and is not the first. It
// reports false for a plan without a difference.
func (v *planVerdicts) recordDifference(uid types.UID, differs string) bool {
	if differs == "" {
		return false
	}
	v.firstDiffering = cmp.Or(v.firstDiffering, uid)
	return v.firstDiffering != uid
}

// forget removes the verdicts about the plans of an install.
func (c *stepsCache) forget(install client.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, install)
}
