// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
	"github.com/bellwether-dev/bellwether/testbed/bench/lab"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/echo/bundle"
	"github.com/bellwether-dev/bellwether/testbed/echo/operator/plan"
)

// maxRollbackRatio is what was promised.
const maxRollbackRatio = 0.5

// MeasureRollback measures how long it takes to get back to the old version, and who is without service meanwhile: with
// Bellwether in place, and with OLM alone, which knows no way back: the Subscription and the CSV are deleted, as OLM's
// documentation says, and the old version is installed. Definitions and custom resources stay on both sides.
func MeasureRollback(ctx context.Context, out io.Writer, o Options) (section figure.Section, err error) {
	l, err := lab.Start(ctx, out, "rollback", map[string]string{
		bundle.OperatorImage: build.EchoOperator, plan.ServerImage: build.EchoServer,
	})
	if err != nil {
		return figure.Section{}, err
	}
	defer func() {
		err = errors.Join(err, l.Stop(context.WithoutCancel(ctx), err != nil && ctx.Err() == nil))
	}()
	steered, err := newSteered(ctx, l)
	if err != nil {
		return figure.Section{}, err
	}
	defer steered.stop(context.WithoutCancel(ctx))
	alone, err := newAlone(l)
	if err != nil {
		return figure.Section{}, err
	}
	defer alone.stop()
	ours, theirs := &inPlace{steered}, &reinstalled{alone}
	var pairs []returns
	for i := 1; i <= o.Pairs; i++ {
		var p returns
		if p.ours, err = goBack(ctx, l, ours, i, o.Settle); err != nil {
			return figure.Section{}, fmt.Errorf("measure Bellwether: %w", err)
		}
		say(out, "rollback %d/%d with Bellwether: %s\n", i, o.Pairs, p.ours)
		if p.alone, err = goBack(ctx, l, theirs, i, o.Settle); err != nil {
			return figure.Section{}, fmt.Errorf("measure OLM alone: %w", err)
		}
		say(out, "rollback %d/%d with OLM alone:  %s\n", i, o.Pairs, p.alone)
		pairs = append(pairs, p)
	}
	return reportRollback(pairs), nil
}

// goBack measures one rollback from an empty cluster to an empty cluster.
func goBack(ctx context.Context, l *lab.Lab, c contender, round int, settle time.Duration) (absence, error) {
	var seen absence
	measure := func(ctx context.Context, namespace string) error {
		if err := createServer(ctx, l.Cluster, to); err != nil {
			return err
		}
		if err := lab.Settle(ctx, settle); err != nil {
			return err
		}
		watching, stop := context.WithCancel(ctx)
		defer stop()
		w := watchAbsence(watching, l.Cluster, namespace)
		times, err := watched(ctx, l, c, namespace, from)
		if err != nil {
			return err
		}
		if seen, err = w.until(ctx, from); err != nil {
			return err
		}
		seen.succeeded = times[succeeded]
		return removeServer(ctx, l.Cluster)
	}
	return seen, inEmptyCluster(ctx, l, c, round, measure)
}

// inPlace goes back with Bellwether.
type inPlace struct{ *steered }

func (i *inPlace) prepare(ctx context.Context, namespace string) error {
	if err := i.steered.prepare(ctx, namespace); err != nil {
		return err
	}
	oi := i.install(to, 2)
	if err := i.lab.Admit(ctx, oi); err != nil {
		return err
	}
	return i.lab.Running(ctx, oi)
}

func (i *inPlace) start(ctx context.Context, c *clock) error {
	oi := i.install(from, 3)
	oi.Spec.Admission.Rollback = &v1alpha1.AdmissionRollback{}
	if err := i.listen(ctx, oi, c); err != nil {
		return err
	}
	c.begin()
	return i.lab.Admit(ctx, oi)
}

// reinstalled goes back with OLM alone.
type reinstalled struct{ *alone }

func (r *reinstalled) prepare(ctx context.Context, namespace string) error {
	if err := r.alone.prepare(ctx, namespace); err != nil {
		return err
	}
	if _, _, err := r.server.Set(namespace, r.new, 0); err != nil {
		return err
	}
	return succeeds(ctx, r.lab, namespace, to)
}

func (r *reinstalled) start(ctx context.Context, c *clock) error {
	c.begin()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: r.namespace, Name: name} }
	for _, o := range []client.Object{
		&operatorsv1alpha1.Subscription{ObjectMeta: meta(bundle.Package)},
		&operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: meta(bundle.CSVName(to))},
	} {
		if err := lab.Removed(ctx, r.lab.Cluster, o); err != nil {
			return err
		}
	}
	if _, _, err := r.server.Set(r.namespace, r.old, 0); err != nil {
		return err
	}
	if err := r.lab.Cluster.Create(ctx, r.subscription()); err != nil {
		return fmt.Errorf("create Subscription: %w", err)
	}
	return nil
}

// returns is one rollback of each kind, one right after the other.
type returns struct{ ours, alone absence }

// reportRollback writes the figures of all pairs: medians, and the median of the pairs' ratios.
func reportRollback(pairs []returns) figure.Section {
	row := func(name string, of func(absence) time.Duration) figure.Row {
		var ours, alone []time.Duration
		var ratios []float64
		for _, p := range pairs {
			ours, alone = append(ours, of(p.ours)), append(alone, of(p.alone))
			if of(p.alone) > 0 {
				ratios = append(ratios, float64(of(p.ours))/float64(of(p.alone)))
			}
		}
		return figure.Row{Name: name, Ours: figure.Duration(figure.Median(ours)),
			Peer: figure.Duration(figure.Median(alone)), Ratio: figure.Median(ratios), Runs: len(pairs)}
	}
	rows := []figure.Row{
		row("rollback, until the old CSV is Succeeded", func(a absence) time.Duration { return a.succeeded }),
		row("rollback, until the operands run the old version", func(a absence) time.Duration { return a.recovered }),
		row("rollback, the operator has no ready pod", func(a absence) time.Duration { return a.operator }),
		row("rollback, the operands do not answer", func(a absence) time.Duration { return a.operands }),
	}
	rows[1].Promise = figure.AtMost(maxRollbackRatio)
	rows[3].Promise = figure.Below(figure.Duration(lookAtService))
	detail := fmt.Sprintf("From %s back to %s of the sample operator, which has one EchoServer. Ratios are medians of "+
		"the pairs' ratios. The operator and its operands are looked at every %s.", to, from, lookAtService)
	return figure.Section{Key: "rollback",
		Title: "Rollback in place, against uninstalling and installing with OLM alone", Rows: rows, Detail: detail}
}
