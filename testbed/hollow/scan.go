// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/scan"
)

// report reports what runs on a cluster by the agent's own code.
func (f *Fleet) report(ctx context.Context, hub client.Client, c *cluster) {
	if !f.wait(ctx, c, "scan") {
		return
	}
	reporter := &scan.Reporter{Hub: hub, Namespace: c.namespace, Finder: finder{f, c}, Now: time.Now}
	_ = reporter.Start(ctx) // it returns no error
}

// finder finds what OLM holds on a hollow cluster: what the simulation has installed, and what others have.
type finder struct {
	fleet   *Fleet
	cluster *cluster
}

// Find implements scan.Finder.
func (f finder) Find(context.Context) (v1alpha1.OperatorScanStatus, error) {
	out := v1alpha1.OperatorScanStatus{OLM: v1alpha1.OLMServed}
	if others := f.fleet.options.Others; others != nil {
		out = *others.DeepCopy()
	}
	f.fleet.mu.Lock()
	var own []*operator
	var keys []client.ObjectKey
	for key, o := range f.fleet.operators {
		if key.Namespace == f.cluster.namespace {
			own, keys = append(own, o), append(keys, key)
		}
	}
	f.fleet.mu.Unlock()
	for i, o := range own {
		if found := o.found(); found != nil {
			found.Operator = &v1alpha1.OperatorReference{Name: keys[i].Name}
			out.Operators = append(out.Operators, *found)
			out.Namespaces = append(out.Namespaces, v1alpha1.FoundNamespace{Name: found.Namespace,
				OperatorGroups: []v1alpha1.FoundOperatorGroup{{Name: found.Subscription.Name}}})
			out.Counts.Operators++
			out.Counts.Managed++
		}
	}
	slices.SortFunc(out.Operators, func(a, b v1alpha1.FoundOperator) int {
		return cmp.Compare(a.Namespace, b.Namespace)
	})
	slices.SortFunc(out.Namespaces, func(a, b v1alpha1.FoundNamespace) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// found is what an agent reports of the operator; nil where there is no Subscription.
func (o *operator) found() *v1alpha1.FoundOperator {
	o.mu.Lock()
	defer o.mu.Unlock()
	sub := o.subscription()
	if sub == nil || o.kept == nil {
		return nil
	}
	release := o.kept.Admission.Release
	out := &v1alpha1.FoundOperator{Namespace: release.TargetNamespace(), Managed: true,
		Subscription: &v1alpha1.FoundSubscription{Name: sub.Name, Package: sub.Package, Channel: release.Channel,
			Source: release.Package, SourceNamespace: release.TargetNamespace(), Approval: "Manual",
			InstalledCSV: sub.InstalledCSV, CurrentCSV: sub.CurrentCSV, InstallPlan: sub.Awaits}}
	for _, c := range o.state.CSVs {
		if c.Name == sub.InstalledCSV {
			out.CSV = &v1alpha1.FoundCSV{Name: c.Name, Version: c.Version, Phase: c.Phase, Replaces: c.Replaces}
		}
	}
	return out
}
