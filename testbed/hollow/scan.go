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
	"github.com/bellwether-dev/bellwether/controllers/agent/scan"
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
	for key, o := range f.fleet.operators {
		if key.Namespace == f.cluster.namespace {
			own = append(own, o)
		}
	}
	f.fleet.mu.Unlock()
	for _, o := range own {
		if found := o.found(); found != nil {
			out.Operators = slices.DeleteFunc(out.Operators, func(other v1alpha1.FoundOperator) bool {
				return other.Namespace == found.Namespace // it was adopted
			})
			out.Namespaces = slices.DeleteFunc(out.Namespaces, func(n v1alpha1.FoundNamespace) bool {
				return n.Name == found.Namespace
			})
			out.Operators = append(out.Operators, *found)
			out.Namespaces = append(out.Namespaces, v1alpha1.FoundNamespace{Name: found.Namespace,
				OperatorGroups: []v1alpha1.FoundOperatorGroup{{Name: found.Subscription.Name}}})
			if found.Managed {
				out.Counts.Managed++
			}
		}
	}
	out.Counts.Operators = int32(len(out.Operators))
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
	out := &v1alpha1.FoundOperator{Namespace: release.TargetNamespace(), Managed: sub.IsOwn,
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
