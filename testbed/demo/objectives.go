// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/echo/bundle"
	"github.com/bellwether-dev/bellwether/testbed/platform"
)

// firstSlices is how long the demo waits for Prometheus to have judged every cluster once: a slice is a minute, and its
// first one ends at a time of Prometheus's choice.
const firstSlices = 90 * time.Second

// watched shows what nobody has written: the OperatorSLO and, on each cluster, the probe of the operator's own Service.
func (d *demo) watched(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	slo := &v1alpha1.OperatorSLO{}
	if err := wait.PollUntilContextCancel(ctx, look, true, func(ctx context.Context) (bool, error) {
		err := d.hub.Get(ctx, client.ObjectKey{Namespace: platform.Namespace, Name: operatorName}, slo)
		return err == nil, client.IgnoreNotFound(err)
	}); err != nil {
		return fmt.Errorf("wait for the OperatorSLO: %w", err)
	}
	w := tabwriter.NewWriter(d.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CLUSTER\tNAMESPACE\tENDPOINTPROBE\tURL\tSUCCESS\tMESSAGE")
	for _, member := range d.platform.Fleet.Clusters {
		c, err := d.platform.Client(member.Name(), platform.Scheme())
		if err != nil {
			return err
		}
		p, err := succeeding(ctx, c)
		if err != nil {
			return fmt.Errorf("wait for a probe on %s: %w", member.Name(), err)
		}
		success := conditions.Get(p.Status.Conditions, v1alpha1.ConditionSuccess)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", member.Name(), p.Namespace, p.Name, p.Status.URL, success.Status,
			success.Message)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := d.judged(ctx, 1); err != nil {
		return err
	}
	return d.show(ctx, "slo", "get", operatorName)
}

// succeeding waits until the probe of the operator's Service succeeds.
func succeeding(ctx context.Context, c client.Client) (*v1alpha1.EndpointProbe, error) {
	var found *v1alpha1.EndpointProbe
	err := wait.PollUntilContextCancel(ctx, look, true, func(ctx context.Context) (bool, error) {
		var probes v1alpha1.EndpointProbeList
		if err := c.List(ctx, &probes); err != nil {
			return false, nil //nolint:nilerr // the next look may find it
		}
		for i := range probes.Items {
			if p := &probes.Items[i]; p.Spec.Operator.Name == operatorName && p.ProbeName() == bundle.Service {
				found = p
			}
		}
		return found != nil && conditions.IsTrue(found.Status.Conditions, v1alpha1.ConditionSuccess), nil
	})
	if err != nil && found != nil {
		err = errors.Join(err, fmt.Errorf("EndpointProbe %s: %+v", found.Name, found.Status))
	}
	return found, err
}

// budgets shows the objectives of the operator after the upgrade.
func (d *demo) budgets(ctx context.Context) error {
	if err := d.judged(ctx, len(d.platform.Fleet.Clusters)); err != nil {
		return err
	}
	if err := d.show(ctx, "slo", "list"); err != nil {
		return err
	}
	return d.show(ctx, "slo", "get", operatorName)
}

// judged waits until budgets are known of so many clusters. A slice is a minute long, so a demo of few minutes has few.
func (d *demo) judged(ctx context.Context, clusters int) error {
	ctx, cancel := context.WithTimeout(ctx, firstSlices)
	defer cancel()
	query := fmt.Sprintf(`count(count by (cluster) (%s{operator_namespace=%q,operator=%q}))`, series.SLOBudgetLeft,
		platform.Namespace, operatorName)
	if err := wait.PollUntilContextCancel(ctx, look, true, func(ctx context.Context) (bool, error) {
		known, err := d.platform.Prometheus().Query(ctx, query, time.Time{})
		return err == nil && len(known) == 1 && int(known[0].Value) >= clusters, nil
	}); err != nil {
		return fmt.Errorf("wait for budgets of %d clusters: %w", clusters, err)
	}
	return nil
}
