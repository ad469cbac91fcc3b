// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
	"github.com/bellwether-dev/bellwether/testbed/bench/lab"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/echo/bundle"
	"github.com/bellwether-dev/bellwether/testbed/echo/operator/plan"
)

// adopted is one adoption: how long it took from the admission until the hub knew of it, and who was away meanwhile.
type adopted struct {
	took time.Duration
	absence
}

// MeasureAdoption measures what becomes of an operator that somebody has installed by an ordinary Subscription, and of
// its operands, while it is taken over.
func MeasureAdoption(ctx context.Context, out io.Writer, o Options) (section figure.Section, err error) {
	l, err := lab.Start(ctx, out, "adoption", map[string]string{
		bundle.OperatorImage: build.EchoOperator, plan.ServerImage: build.EchoServer,
	})
	if err != nil {
		return figure.Section{}, err
	}
	defer func() {
		err = errors.Join(err, l.Stop(context.WithoutCancel(ctx), err != nil && ctx.Err() == nil))
	}()
	ours, err := newSteered(ctx, l)
	if err != nil {
		return figure.Section{}, err
	}
	defer ours.stop(context.WithoutCancel(ctx))
	theirs, err := newAlone(l)
	if err != nil {
		return figure.Section{}, err
	}
	defer theirs.stop()
	var runs []adopted
	for i := 1; i <= o.Pairs; i++ {
		var r adopted
		if err := inEmptyCluster(ctx, l, theirs, i, func(ctx context.Context, namespace string) (err error) {
			r, err = ours.adopt(ctx, namespace, o.Settle)
			return err
		}); err != nil {
			return figure.Section{}, fmt.Errorf("measure adoption: %w", err)
		}
		say(out, "adoption %d/%d: %s, operator away for %s, operands for %s\n", i, o.Pairs, r.took, r.operator,
			r.operands)
		runs = append(runs, r)
	}
	return reportAdoption(runs), nil
}

// adopt takes over what runs in a namespace, and leaves it uninstalled.
func (s *steered) adopt(ctx context.Context, namespace string, settle time.Duration) (adopted, error) {
	if err := createServer(ctx, s.lab.Cluster, from); err != nil {
		return adopted{}, err
	}
	if err := lab.Settle(ctx, settle); err != nil {
		return adopted{}, err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	w := watchAbsence(watching, s.lab.Cluster, namespace)
	s.namespace = namespace
	oi := s.install("", 1)
	release := &oi.Spec.Admission.Release
	release.Version, release.Bundle = "", ""
	release.Adopt, release.AsInstalled = &v1alpha1.OperatorAdoption{}, true
	began := time.Now()
	if err := s.lab.Hub.Create(ctx, oi); err != nil {
		return adopted{}, fmt.Errorf("create install: %w", err)
	}
	if err := s.lab.Running(ctx, oi); err != nil {
		return adopted{}, fmt.Errorf("%w; the agent's log ends with:\n%s", err, s.agent.Tail())
	}
	r := adopted{took: time.Since(began)}
	if err := lab.Settle(ctx, settle); err != nil { // what a pod notices late is noticed here
		return adopted{}, err
	}
	var err error
	if r.absence, err = w.until(ctx, from); err != nil {
		return adopted{}, err
	}
	stop()
	return r, errors.Join(removeServer(ctx, s.lab.Cluster), lab.Removed(ctx, s.lab.Hub, oi))
}

// reportAdoption writes the medians of how long it took, and the worst absences.
func reportAdoption(runs []adopted) figure.Section {
	var took []time.Duration
	var operator, operands time.Duration
	for _, r := range runs {
		took = append(took, r.took)
		operator, operands = max(operator, r.operator), max(operands, r.operands)
	}
	none := figure.Below(figure.Duration(lookAtService))
	rows := []figure.Row{
		{Name: "adoption, admission to the hub's knowledge of it", Ours: figure.Duration(figure.Median(took)),
			Runs: len(runs)},
		{Name: "adoption, the operator has no ready pod, at worst", Ours: figure.Duration(operator), Promise: none,
			Runs: len(runs)},
		{Name: "adoption, the operands do not answer, at worst", Ours: figure.Duration(operands), Promise: none,
			Runs: len(runs)},
	}
	detail := fmt.Sprintf("Version %s of the sample operator runs by an ordinary Subscription with automatic "+
		"approval, and has one EchoServer. Operator and operands are looked at every %s, until some seconds after the "+
		"end. An adoption takes about five seconds, in which OLM ends what it had begun.", from, lookAtService)
	return figure.Section{Key: "adoption", Title: "Adoption of an operator that runs", Rows: rows, Detail: detail}
}
