// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/hollow/stage"
)

// PlacementOptions say what is placed where: KubeFleet's published workload has 1,000 clusters, 1,000 placements on 100
// clusters each, and 100 rollouts at a time.
type PlacementOptions struct {
	Clusters, Placements, Rollouts int
	LeaseEvery                     time.Duration
	Seed                           uint64
}

// tenths is the number of parts of a fleet, of which each placement selects one.
const tenths = 10

// packages are what ManagedOperators install: several share one, each in a namespace of its own.
const packages = 10

// placed is what was measured of the workload.
type placed struct {
	install, restart     time.Duration
	rollouts             []time.Duration
	resident, apiServer  int64
	duringHub, duringAPI float64
}

// MeasurePlacements measures many operators, each on a tenth of a fleet, of which many are rolled out at a time in
// three stages.
func MeasurePlacements(ctx context.Context, out io.Writer, o PlacementOptions) (figure.Section, error) {
	section := figure.Section{Key: "scale-placements", Title: "KubeFleet's workload"}
	l, err := startLab(ctx, out, setup{clusters: o.Clusters, operators: packages,
		hollow: Options{LeaseEvery: o.LeaseEvery, Seed: o.Seed}.hollow()})
	if err != nil {
		return section, err
	}
	p, err := l.place(ctx, o)
	if stopErr := l.stop(context.WithoutCancel(ctx), err != nil && ctx.Err() == nil); err == nil {
		err = stopErr
	}
	if err != nil {
		return section, err
	}
	reportPlacements(&section, o, p)
	return section, nil
}

// placement is the i-th operator at a version, on a tenth of the fleet.
func (l *lab) placement(i, version, waves int) *v1alpha1.ManagedOperator {
	o := stage.Operator(i%packages, version, map[string]string{stage.LabelFleet: fleetName,
		stage.LabelTenth: strconv.Itoa(i % tenths)}, stage.Waves(waves, len(l.names)/tenths))
	o.Name = fmt.Sprintf("placement-%04d", i)
	// Several have one package on one cluster, which OLM permits if each watches a namespace of its own.
	o.Spec.Install.Namespace, o.Spec.Install.Mode = o.Name, v1alpha1.InstallOwnNamespace
	return o
}

func (l *lab) place(ctx context.Context, o PlacementOptions) (placed, error) {
	var p placed
	began := time.Now()
	if err := l.setAll(ctx, o.Placements, 0, 1); err != nil {
		return p, err
	}
	if _, err := l.UntilRolledOut(ctx, catalogtest.Version(0), o.Placements, v1alpha1.RolloutSucceeded); err != nil {
		return p, err
	}
	p.install = time.Since(began)
	if _, err := l.untilIdle(ctx, l.hub); err != nil {
		return p, err
	}
	before, err := l.use(ctx)
	if err != nil {
		return p, err
	}
	began = time.Now()
	if err := l.setAll(ctx, o.Rollouts, 1, 3); err != nil {
		return p, err
	}
	reached, err := l.UntilRolledOut(ctx, catalogtest.Version(1), o.Rollouts, v1alpha1.RolloutSucceeded)
	if err != nil {
		return p, err
	}
	for _, r := range reached {
		p.rollouts = append(p.rollouts, r.At.Sub(began))
	}
	after, err := l.use(ctx)
	if err != nil {
		return p, err
	}
	seconds := after.at.Sub(before.at).Seconds()
	p.duringHub = (after.cpu[build.Hub] - before.cpu[build.Hub]) / seconds
	p.duringAPI = (after.cpu[build.KubeAPIServer] - before.cpu[build.KubeAPIServer]) / seconds
	p.resident, p.apiServer = after.resident[build.Hub], after.resident[build.KubeAPIServer]
	p.restart, err = l.restartHub(ctx, size{o.Clusters, o.Placements / tenths})
	return p, err
}

// setAll sets a version of the first n placements, several at a time.
func (l *lab) setAll(ctx context.Context, n, version, waves int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range n {
		group.Go(func() error { return l.Set(ctx, l.placement(i, version, waves)) })
	}
	return group.Wait()
}

func reportPlacements(section *figure.Section, o PlacementOptions, p placed) {
	const runs = 1
	section.Title = fmt.Sprintf("KubeFleet's workload: %d clusters, %d operators on %d clusters each, %d rollouts "+
		"at a time", o.Clusters, o.Placements, o.Clusters/tenths, o.Rollouts)
	section.Rows = []figure.Row{
		{Name: "all operators installed", Ours: figure.Duration(p.install), Runs: runs},
		{Name: "three-stage rollouts, all at a time: 90th percentile",
			Ours: figure.Duration(figure.Quantile(p.rollouts, 0.9)), Peer: figure.Duration(135 * time.Second),
			Runs: runs},
		{Name: "three-stage rollouts, all at a time: median", Ours: figure.Duration(figure.Median(p.rollouts)),
			Runs: runs},
		{Name: "hub restarted to caught up", Ours: figure.Duration(p.restart),
			Peer:    figure.Duration(11*time.Minute + 15*time.Second),
			Promise: figure.Below(figure.Duration(restartIn)), Runs: runs},
		{Name: "hub's resident memory after the rollouts", Ours: figure.Bytes(p.resident),
			Peer: figure.Bytes(11_200_000_000), Runs: runs},
		{Name: "API server's resident memory after the rollouts", Ours: figure.Bytes(p.apiServer),
			Peer: figure.Bytes(31_000_000_000), Runs: runs},
	}
	section.Detail = fmt.Sprintf("The hub used %.2f cores and the API server %.2f during the rollouts. The peer's "+
		"figures are those that KubeFleet publishes for 1,000 clusters, 1,000 placements on 100 clusters each and 100 "+
		"rollouts: more than 5 and more than 8 cores, on other machines, with virtual clusters instead of hollow "+
		"agents, and with objects of other sizes. They say what order of magnitude is usual, and no more.",
		p.duringHub, p.duringAPI)
	if o.Clusters*o.Placements/tenths < 100_000 {
		section.Detail += fmt.Sprintf(" This run had %d OperatorInstalls instead of 100,000.",
			o.Clusters*o.Placements/tenths)
	}
}
