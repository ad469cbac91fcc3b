// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/testbed/bench/lab"
	echov1alpha1 "github.com/bellwether-dev/bellwether/testbed/echo/api/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/echo/bundle"
)

// limit of one upgrade, far beyond what it takes on an idle machine.
const limit = 5 * time.Minute

// watched changes the version and returns when the phases of that were reached. What is on the cluster is watched, not
// polled, so that looking takes next to nothing from what is looked at.
func watched(ctx context.Context, l *lab.Lab, c contender, namespace, version string) (timeline, error) {
	late := fmt.Errorf("change the version in %s: %w", namespace, lab.ErrPatience)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	clock := newClock(version)
	if err := follow(ctx, l.Cluster, namespace, &operatorsv1alpha1.InstallPlanList{}, clock.plan); err != nil {
		return timeline{}, err
	}
	if err := follow(ctx, l.Cluster, namespace, &operatorsv1alpha1.ClusterServiceVersionList{}, clock.csv); err != nil {
		return timeline{}, err
	}
	if err := c.start(ctx, clock); err != nil {
		return timeline{}, fmt.Errorf("start: %w", err)
	}
	for _, last := range c.ends() {
		select {
		case <-clock.reached(last):
		case <-ctx.Done():
			return timeline{}, fmt.Errorf("wait for %q after %s: %w", phaseNames[last], clock.times(),
				context.Cause(ctx))
		}
	}
	return clock.times(), nil
}

// follow calls see with each change of a kind in a namespace until ctx ends.
func follow[T client.Object](ctx context.Context, k client.WithWatch, namespace string, list client.ObjectList,
	see func(T)) error {
	w, err := k.Watch(ctx, list, client.InNamespace(namespace))
	if err != nil {
		return fmt.Errorf("watch %T: %w", list, err)
	}
	go func() {
		defer w.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case event, open := <-w.ResultChan():
				if !open {
					return
				}
				if o, ok := event.Object.(T); ok {
					see(o)
				}
			}
		}
	}()
	return nil
}

func (c *clock) plan(p *operatorsv1alpha1.InstallPlan) {
	if !slices.Contains(p.Spec.ClusterServiceVersionNames, bundle.CSVName(c.version)) {
		return
	}
	if p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseRequiresApproval && !p.Spec.Approved {
		c.reach(planned)
	}
	if p.Spec.Approved {
		c.reach(approved)
	}
}

func (c *clock) csv(csv *operatorsv1alpha1.ClusterServiceVersion) {
	if csv.Name != bundle.CSVName(c.version) {
		return
	}
	c.reach(created)
	if csv.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded {
		c.reach(succeeded)
	}
}

// succeeds waits until a CSV is Succeeded.
func succeeds(ctx context.Context, l *lab.Lab, namespace, version string) error {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	err := lab.Until(ctx, func(ctx context.Context) (bool, error) {
		err := l.Cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: bundle.CSVName(version)}, csv)
		return err == nil && csv.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait for %s to succeed (%s: %s): %w", bundle.CSVName(version), csv.Status.Phase,
			csv.Status.Message, err)
	}
	return nil
}

// removeCRD lets the next run begin where this one did.
func removeCRD(ctx context.Context, l *lab.Lab) error {
	return lab.Removed(ctx, l.Cluster,
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "echoservers." +
			echov1alpha1.GroupVersion.Group}})
}
