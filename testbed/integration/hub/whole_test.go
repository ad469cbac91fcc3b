// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// work plays the executor of an agent: whatever is admitted succeeds at once,
// and whatever is deleted is let go.
func (a *agent) work(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(look)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				a.workOnce(ctx)
			}
		}
	}()
}

// workOnce leaves what fails to the next time.
func (a *agent) workOnce(ctx context.Context) {
	var installs v1alpha1.OperatorInstallList
	if err := a.List(ctx, &installs, client.InNamespace(a.namespace)); err != nil {
		return
	}
	for i := range installs.Items {
		o := &installs.Items[i]
		before := o.DeepCopy()
		switch {
		case o.DeletionTimestamp != nil:
			_ = kit.RemoveFinalizer(ctx, a, o, v1alpha1.FinalizerAgent)
		case o.Spec.Admission == nil && o.Status.ObservedGeneration == o.Generation:
		case o.Spec.Admission == nil:
			o.Status.ObservedGeneration, o.Status.Kept = o.Generation, a.kept
			_ = a.Status().Patch(ctx, o, client.MergeFrom(before))
		case !controllerutil.ContainsFinalizer(o, v1alpha1.FinalizerAgent):
			_ = kit.AddFinalizer(ctx, a, o, v1alpha1.FinalizerAgent)
		case a.bad != "" && o.Spec.Admission.Release.Version == a.bad:
			o.Status.ObservedRevision, o.Status.SucceededHash = o.Spec.Admission.Revision, ""
			o.Status.Installed = &v1alpha1.InstalledVersion{Bundle: o.Spec.Admission.Release.Bundle, Version: a.bad}
			conditions.Summarize(&o.Status.Conditions, o.Generation,
				conditions.Summary{State: conditions.Stalled, Reason: v1alpha1.ReasonCSVFailed})
			_ = a.Status().Patch(ctx, o, client.MergeFrom(before))
		case o.Spec.Admission.Release.Adopt != nil && a.refuses() != "":
			o.Status.ObservedRevision, o.Status.SucceededHash = o.Spec.Admission.Revision, ""
			conditions.Summarize(&o.Status.Conditions, o.Generation,
				conditions.Summary{State: conditions.Stalled, Reason: "NotAdoptable", Message: a.refuses()})
			_ = a.Status().Patch(ctx, o, client.MergeFrom(before))
		case o.Status.SucceededHash != o.Spec.Admission.Hash || !rollouts.ObserveInstall(o).Ready:
			release := o.Spec.Admission.Release
			o.Status.SucceededHash, o.Status.ObservedRevision = o.Spec.Admission.Hash, o.Spec.Admission.Revision
			o.Status.ObservedGeneration, o.Status.Kept = o.Generation, nil
			o.Status.Installed = a.installed(release)
			conditions.Summarize(&o.Status.Conditions, o.Generation,
				conditions.Summary{State: conditions.Current, Reason: "Succeeded"})
			_ = a.Status().Patch(ctx, o, client.MergeFrom(before))
		}
	}
}

// installed is what the cluster has when a release has succeeded there.
func (a *agent) installed(release v1alpha1.Release) *v1alpha1.InstalledVersion {
	switch {
	case !release.AsInstalled:
		return &v1alpha1.InstalledVersion{Bundle: release.Bundle, Version: release.Version}
	case a.found == "":
		return nil
	}
	return &v1alpha1.InstalledVersion{Bundle: "echo.v" + a.found, Version: a.found}
}

func (f *fixture) running(want map[string]string) {
	f.t.Helper()
	eventually(f.t, func() error {
		got := map[string]string{}
		var installs v1alpha1.OperatorInstallList
		if err := f.List(f.t.Context(), &installs); err != nil {
			return err
		}
		for _, o := range installs.Items {
			if o.Spec.Operator.Namespace != f.namespace {
				continue
			}
			version := "nothing"
			if o.Status.Installed != nil {
				version = o.Status.Installed.Version
			}
			got[o.Spec.Cluster[len(f.namespace)+1:]] = version
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.New("running (-want +got):\n" + diff)
		}
		return nil
	})
}

// TestWholeHub takes an operator through its life with every controller of the
// hub at work, and agents that do as they are told.
func TestWholeHub(t *testing.T) {
	t.Parallel()
	h := startWhole(t)
	f := newFixtureOn(t, h, first, "a", "b", "c")
	for _, a := range f.agents {
		a.work(t)
	}
	one := intstr.FromInt32(1)
	f.operator.Spec.Strategy.Waves = []v1alpha1.Wave{{Name: "canary", Size: &one}, {Name: "rest"}}
	f.operator.Spec.RemovalPolicy = v1alpha1.RemovalUninstall
	f.create()
	f.reaches(t, f.operator, "True Succeeded", "3 of 3 clusters run 1.0.0")

	f.republish(second)
	f.reaches(t, f.operator, "True Succeeded", "3 of 3 clusters run 1.1.0")

	f.addCluster("d").work(t)
	f.reaches(t, f.operator, "True Succeeded", "4 of 4 clusters run 1.1.0")
	f.expectMetrics(map[string]float64{
		`bellwether_fleet_clusters{state=online}`: 4, `bellwether_fleet_clusters{state=offline}`: 0,
		`bellwether_operator_clusters{operator=echo,operator_namespace=` + f.namespace + `,state=updated}`:         4,
		`bellwether_operator_version_clusters{operator=echo,operator_namespace=` + f.namespace + `,version=1.1.0}`: 4,
		`bellwether_operator_ready{operator=echo,operator_namespace=` + f.namespace + `}`:                          1,
		`bellwether_catalog_ready{catalog=main,namespace=` + f.namespace + `}`:                                     1,
	})
	f.block("1.1.0")
	f.expectMetrics(map[string]float64{
		`bellwether_catalog_blocked_version_clusters{catalog=main,namespace=` + f.namespace +
			`,package=echo,version=1.1.0}`: 4,
	})
	f.block()
	f.reaches(t, f.operator, "True Succeeded", "4 of 4 clusters run 1.1.0")

	b := f.agents["b"].cluster
	f.change(t, b, func() { delete(b.Labels, "world") })
	f.running(map[string]string{"a": "1.1.0", "c": "1.1.0", "d": "1.1.0"})
	f.edit(func(s *v1alpha1.ManagedOperatorSpec) {
		s.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "name",
			Operator: metav1.LabelSelectorOpNotIn, Values: []string{"c"}}}
	})
	f.running(map[string]string{"a": "1.1.0", "d": "1.1.0"})
	f.reaches(t, f.operator, "True Succeeded", "2 of 2 clusters run 1.1.0")

	must(t, f.Delete(t.Context(), f.agents["d"].cluster))
	f.gone(t, f.agents["d"].cluster)
	f.running(map[string]string{"a": "1.1.0"})
	f.reaches(t, f.operator, "True Succeeded", "1 of 1")

	f.republish(third)
	f.reaches(t, f.operator, "True Succeeded", "1 of 1 cluster runs 1.2.0")
	must(t, f.Delete(t.Context(), f.operator))
	f.gone(t, f.operator)
	f.running(map[string]string{})
	f.rollouts()
	t.Run("FleetAccess", func(t *testing.T) { fleetAccess(t, h) })
	t.Run("Flood", func(t *testing.T) { floodOfAcceptedWrites(t, h) })
}

// expectMetrics waits for samples, written as name{label=value,...}.
func (f *fixture) expectMetrics(want map[string]float64) {
	f.t.Helper()
	eventually(f.t, func() error {
		families, err := f.metrics.Gather()
		if err != nil {
			return err
		}
		got := map[string]float64{}
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				name := family.GetName() + "{"
				for i, label := range metric.GetLabel() {
					if i > 0 {
						name += ","
					}
					name += label.GetName() + "=" + label.GetValue()
				}
				if _, wanted := want[name+"}"]; wanted {
					got[name+"}"] = metric.GetGauge().GetValue()
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("metrics (-want +got):\n%s", diff)
		}
		return nil
	})
}
