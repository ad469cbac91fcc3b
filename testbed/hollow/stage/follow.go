// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// UntilOnline waits until so many clusters of a fleet are online.
func (s *Stage) UntilOnline(ctx context.Context, fleet string, n int) error {
	return s.untilClusters(ctx, fleet, n, "online", func(c *v1alpha1.FleetCluster) bool {
		return conditions.IsTrue(c.Status.Conditions, v1alpha1.ConditionOnline)
	})
}

// UntilScanned waits until n clusters have reported so many operators each.
func (s *Stage) UntilScanned(ctx context.Context, n, operators int) error {
	found := map[string]bool{}
	return s.follow(ctx, &v1alpha1.OperatorScanList{}, func(o client.Object) error {
		if scan := o.(*v1alpha1.OperatorScan); int(scan.Status.Counts.Operators) == operators {
			found[scan.Namespace] = true
		}
		if len(found) < n {
			return fmt.Errorf("%d of %d clusters have reported %d operators", len(found), n, operators)
		}
		return nil
	})
}

func (s *Stage) untilClusters(ctx context.Context, fleet string, n int, what string,
	good func(*v1alpha1.FleetCluster) bool) error {
	found := map[string]bool{}
	return s.follow(ctx, &v1alpha1.FleetClusterList{}, func(o client.Object) error {
		c := o.(*v1alpha1.FleetCluster)
		if good(c) {
			found[c.Name] = true
		} else {
			delete(found, c.Name)
		}
		if len(found) < n {
			return fmt.Errorf("%d of %d clusters are %s", len(found), n, what)
		}
		return nil
	}, client.MatchingLabels{LabelFleet: fleet})
}

// Reached is a rollout, and when it was seen to be in the phase that was waited for.
type Reached struct {
	v1alpha1.OperatorRollout
	At time.Time
}

// UntilRolledOut waits until n operators have a rollout of the version that is in one of the phases, and returns them
// by the operator's name.
func (s *Stage) UntilRolledOut(ctx context.Context, version string, n int, phases ...v1alpha1.RolloutPhase) (
	map[string]Reached, error) {
	found := map[string]Reached{}
	err := s.follow(ctx, &v1alpha1.OperatorRolloutList{}, func(o client.Object) error {
		r := o.(*v1alpha1.OperatorRollout)
		if r.Spec.Release.Version == version && slices.Contains(phases, r.Status.Phase) {
			if _, known := found[r.Spec.Operator.Name]; !known {
				found[r.Spec.Operator.Name] = Reached{OperatorRollout: *r, At: time.Now()}
			}
		}
		if len(found) < n {
			return fmt.Errorf("%d of %d rollouts of %s were %v; %s is %s: %s", len(found), n, version, phases, r.Name,
				r.Status.Phase, r.Status.Message)
		}
		return nil
	}, client.InNamespace(Namespace))
	return found, err
}

// follow calls look with each object of a kind as it is, and again with each change, until look has no objection. When
// ctx ends before, the error has the last one.
func (s *Stage) follow(ctx context.Context, kind client.ObjectList, look func(client.Object) error,
	opts ...client.ListOption) error {
	objection := errors.New("nothing was seen")
	for ctx.Err() == nil {
		events, err := s.Watch(ctx, kind, opts...)
		if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		for event := range events.ResultChan() {
			o, ok := event.Object.(client.Object)
			if !ok || event.Type == watch.Deleted || event.Type == watch.Error || event.Type == watch.Bookmark {
				continue
			}
			if objection = look(o); objection == nil {
				events.Stop()
				return nil
			}
		}
		events.Stop()
	}
	return errors.Join(context.Cause(ctx), objection)
}

// UntilRollout waits until a rollout of the version is as wanted.
func (s *Stage) UntilRollout(ctx context.Context, version string, wanted func(*v1alpha1.OperatorRollout) bool) error {
	return s.follow(ctx, &v1alpha1.OperatorRolloutList{}, func(o client.Object) error {
		if r := o.(*v1alpha1.OperatorRollout); r.Spec.Release.Version != version || !wanted(r) {
			return fmt.Errorf("no rollout of %s is as wanted; %s is %s: %s", version, r.Name, r.Status.Phase,
				r.Status.Message)
		}
		return nil
	}, client.InNamespace(Namespace))
}

// UntilOffline waits until all of these clusters are offline.
func (s *Stage) UntilOffline(ctx context.Context, fleet string, names []string) error {
	left := map[string]bool{}
	for _, name := range names {
		left[name] = true
	}
	return s.follow(ctx, &v1alpha1.FleetClusterList{}, func(o client.Object) error {
		c := o.(*v1alpha1.FleetCluster)
		if !conditions.IsTrue(c.Status.Conditions, v1alpha1.ConditionOnline) {
			delete(left, c.Name)
		}
		if len(left) > 0 {
			return fmt.Errorf("%d of %d clusters are still online", len(left), len(names))
		}
		return nil
	}, client.MatchingLabels{LabelFleet: fleet})
}
