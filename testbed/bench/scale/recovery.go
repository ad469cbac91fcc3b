// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"io"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
	"github.com/bellwether-dev/bellwether/testbed/hollow/stage"
	"github.com/bellwether-dev/bellwether/testbed/poll"
)

// RecoveryOptions say how the recovery of a lost hub is measured.
type RecoveryOptions struct {
	Clusters, Operators int
	LeaseEvery          time.Duration
	Seed                uint64
}

// recovery is what followed the start of a new hub. joined and recovered are counted from that start, resumed from the
// moment at which all operators were resumed.
type recovery struct {
	joined, recovered, resumed time.Duration
	// installations are those that the recovery caused on clusters.
	installations int
}

// MeasureRecovery loses a hub with its API server and all that it had, and measures how long a new one takes, to which
// the same manifests are applied and the same clusters join, until it has recovered everything and goes on.
func MeasureRecovery(ctx context.Context, out io.Writer, o RecoveryOptions) (figure.Section, error) {
	section := figure.Section{Key: "scale-recovery", Title: "The recovery of a lost hub"}
	s := setup{clusters: o.Clusters, operators: o.Operators,
		hollow: Options{LeaseEvery: o.LeaseEvery, Seed: o.Seed, OwnWatches: true}.hollow()}
	l, err := startLab(ctx, out, s)
	if err != nil {
		return section, err
	}
	r, err := l.loseAndRecover(ctx, s)
	if stopErr := l.stop(context.WithoutCancel(ctx), err != nil && ctx.Err() == nil); err == nil {
		err = stopErr
	}
	if err != nil {
		return section, err
	}
	l.say("recovery: all joined after %s, all recovered after %s, resumed to the end of the rollouts %s, %d "+
		"installations", r.joined, r.recovered, r.resumed, r.installations)
	name := size{o.Clusters, o.Operators}.String()
	section.Rows = []figure.Row{
		{Name: name + ", a new hub started, until all clusters have joined", Ours: figure.Duration(r.joined), Runs: 1},
		{Name: name + ", a new hub started, until all is recovered", Ours: figure.Duration(r.recovered), Runs: 1},
		{Name: name + ", all resumed, until the rollouts have succeeded", Ours: figure.Duration(r.resumed), Runs: 1},
		{Name: name + ", installations on clusters meanwhile", Ours: figure.Count(r.installations),
			Promise: figure.Below(figure.Count(1)), Runs: 1},
	}
	section.Detail = "The hub, its API server and etcd are killed, and new ones started with an empty etcd. " +
		"FleetClusters, the catalog and ManagedOperators are applied again, as from Git, by a program, and all " +
		"agents join at once: what people take for that is not in the times. The agents report what their clusters " +
		"keep, the hub recovers it and admits nothing until each operator is resumed."
	return section, nil
}

func (l *lab) loseAndRecover(ctx context.Context, s setup) (recovery, error) {
	var r recovery
	const version = 1
	if _, err := l.rollOut(ctx, s.operators, version, 1); err != nil {
		return r, err
	}
	if err := l.lose(ctx); err != nil {
		return r, err
	}
	s.hollow.Before, l.fleet = l.fleet, nil
	before := len(s.hollow.Before.Ended())
	if err := l.prepare(ctx); err != nil {
		return r, err
	}
	began := time.Now()
	if err := l.populate(ctx, s); err != nil {
		return r, err
	}
	r.joined = time.Since(began)
	for i := range s.operators {
		o := stage.Operator(i, version, map[string]string{stage.LabelFleet: fleetName}, stage.Waves(1, s.clusters))
		if err := l.Set(ctx, o); err != nil {
			return r, err
		}
	}
	if err := l.untilRecovered(ctx, s); err != nil {
		return r, err
	}
	r.recovered = time.Since(began)
	began = time.Now()
	if err := l.resume(ctx); err != nil {
		return r, err
	}
	_, err := l.UntilRolledOut(ctx, catalogtest.Version(version), s.operators, v1alpha1.RolloutSucceeded)
	r.resumed, r.installations = time.Since(began), len(l.fleet.Ended())-before
	return r, err
}

// lose ends the hub and its API server with all that it had; the agents stop, and their clusters stay as they are.
func (l *lab) lose(ctx context.Context) error {
	l.hub.Kill()
	if err := l.fleet.Stop(); err != nil {
		return err
	}
	l.api.Stop(ctx)
	l.etcd.Stop(ctx)
	return nil
}

// untilRecovered waits until each operator was found on all clusters, and their OperatorInstalls have what they keep.
func (l *lab) untilRecovered(ctx context.Context, s setup) error {
	return poll.Until(ctx, lookIdle, func() error {
		var operators v1alpha1.ManagedOperatorList
		if err := l.List(ctx, &operators, client.InNamespace(stage.Namespace)); err != nil {
			return fmt.Errorf("list ManagedOperators: %w", err)
		}
		found := 0
		for _, o := range operators.Items {
			if o.Status.Recovery != nil {
				found += int(o.Status.Recovery.Clusters)
			}
		}
		if all := s.clusters * s.operators; found < all {
			return fmt.Errorf("%d of %d installs are recovered", found, all)
		}
		return nil
	})
}

// resume agrees that the hub goes on with all operators.
func (l *lab) resume(ctx context.Context) error {
	var operators v1alpha1.ManagedOperatorList
	if err := l.List(ctx, &operators, client.InNamespace(stage.Namespace)); err != nil {
		return fmt.Errorf("list ManagedOperators: %w", err)
	}
	for i := range operators.Items {
		o := &operators.Items[i]
		patch := client.MergeFrom(o.DeepCopy())
		o.Spec.Resume = o.Status.Recovery.Request
		if err := l.Patch(ctx, o, patch); err != nil {
			return fmt.Errorf("resume %s: %w", o.Name, err)
		}
	}
	return nil
}
