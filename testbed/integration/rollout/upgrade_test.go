// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/hubchart"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

const (
	systemNamespace = "bellwether-system"
	hubRelease      = "bellwether"
)

// hubValues leave the policy out that approvals are given by those who they name: this test approves for others.
var hubValues = map[string]any{"hub": map[string]any{"enabled": true,
	"approvalPolicy": map[string]any{"enabled": false}}}

// TestUpgradeInTheMiddleOfARollout upgrades the chart of an earlier release, whose CRDs are in the folder crds, while a
// rollout has its first wave behind it. The program is the current one before and after.
func TestUpgradeInTheMiddleOfARollout(t *testing.T) {
	t.Parallel()
	c := testenv.Cluster(t, cluster.Options{APIServerOnly: true})
	previous, err := hubchart.Previous()
	must(t, err)
	helm, err := hubchart.Helm(c.Kubeconfig(), systemNamespace)
	must(t, err)
	install := action.NewInstall(helm)
	install.ReleaseName, install.Namespace, install.CreateNamespace = hubRelease, systemNamespace, true
	_, err = install.RunWithContext(t.Context(), previous, hubValues)
	must(t, err)

	f := newFixtureOn(t, c)
	f.hub, err = c.UserConfig("system:serviceaccount:"+systemNamespace+":bellwether-hub", "system:serviceaccounts")
	must(t, err)
	f.runAgents()
	clusters := f.enrollMany(4)
	second := wave("rest", 2)
	second.Gates = []v1alpha1.Gate{{Name: "sre", Approval: &v1alpha1.ApprovalGate{}}}
	stop := f.startHub()
	ro := f.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{sized(wave("canary", 1), 1), second}})
	f.reaches(ro, v1alpha1.RolloutProgressing, "Gated", "wave rest waits for gate sre")
	if f.keepsLaterField(ro) || f.served(hubchart.LaterKind) {
		t.Fatalf("the CRDs of the earlier chart are the current ones")
	}
	stop()
	before := f.objects()

	current, err := charts.Load()
	must(t, err)
	if err := f.upgrade(helm, current, false); err == nil {
		t.Error("CRDs of the folder crds become part of the release without --take-ownership")
	}
	must(t, f.upgrade(helm, current, true))
	f.eventually(func() error { return f.crdIsCurrent(hubchart.OlderKind) })
	if diff := cmp.Diff(before, f.objects()); diff != "" {
		t.Errorf("objects before (-) and after (+) the upgrade:\n%s", diff)
	}
	if !f.keepsLaterField(ro) || !f.served(hubchart.LaterKind) {
		t.Error("what is new in the CRDs is not served")
	}
	must(t, f.upgrade(helm, current, false)) // the next one is as any other

	stop = f.startHub()
	defer stop()
	f.reaches(ro, v1alpha1.RolloutProgressing, "Gated", "wave rest waits for gate sre")
	f.change(ro, func() {
		ro.Spec.Approvals = []v1alpha1.Approval{{Wave: "rest", Gate: "sre", By: "ann", Reason: "canary is fine",
			At: metav1.Now()}}
	})
	f.reaches(ro, v1alpha1.RolloutSucceeded, "True", "4 of 4 clusters updated")
	admitted := f.recorder.admittedBy(ro.Name)
	slices.Sort(admitted)
	if diff := cmp.Diff(clusters, admitted); diff != "" {
		t.Errorf("each cluster is admitted once (-want +got):\n%s", diff)
	}
}

func (f *fixture) upgrade(helm *action.Configuration, to *chart.Chart, takeOwnership bool) error {
	upgrade := action.NewUpgrade(helm)
	upgrade.Namespace, upgrade.ResetThenReuseValues, upgrade.TakeOwnership = systemNamespace, true, takeOwnership
	_, err := upgrade.RunWithContext(f.t.Context(), hubRelease, to, nil)
	return err
}

// keepsLaterField tells whether the API server keeps a field that the earlier CRD lacks.
func (f *fixture) keepsLaterField(ro *v1alpha1.OperatorRollout) bool {
	f.t.Helper()
	changed := &unstructured.Unstructured{}
	changed.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("OperatorRollout"))
	changed.SetNamespace(ro.Namespace)
	changed.SetName(ro.Name)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"`+hubchart.LaterField+`":"kept"}}`))
	must(f.t, f.Patch(f.t.Context(), changed, patch, client.DryRunAll))
	_, kept, _ := unstructured.NestedString(changed.Object, "spec", hubchart.LaterField)
	return kept
}

func (f *fixture) crd(name string) (*unstructured.Unstructured, error) {
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	return crd, f.Get(f.t.Context(), client.ObjectKey{Name: name}, crd)
}

// served tells whether a CRD exists.
func (f *fixture) served(name string) bool {
	f.t.Helper()
	_, err := f.crd(name)
	must(f.t, client.IgnoreNotFound(err))
	return !apierrors.IsNotFound(err)
}

// crdIsCurrent objects unless the CRD is served as it is generated, and belongs to the release.
func (f *fixture) crdIsCurrent(name string) error {
	got, err := f.crd(name)
	if err != nil {
		return err
	}
	if owner := got.GetAnnotations()["meta.helm.sh/release-name"]; owner != hubRelease {
		return fmt.Errorf("CRD %s belongs to release %q", name, owner)
	}
	definitions, err := charts.Definitions()
	if err != nil {
		return err
	}
	for _, want := range definitions {
		if diff := cmp.Diff(want.Object["spec"].(map[string]any)["versions"],
			got.Object["spec"].(map[string]any)["versions"]); want.GetName() == name && diff != "" {
			return fmt.Errorf("CRD %s (-want +got):\n%s", name, diff)
		}
	}
	return nil
}

// objects are all objects of the fleet, as they are without what changes by itself.
func (f *fixture) objects() map[string]any {
	f.t.Helper()
	out := map[string]any{}
	for _, kind := range []string{"OperatorRollout", "OperatorInstall", "FleetCluster"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(kind + "List"))
		must(f.t, f.List(f.t.Context(), list))
		for _, o := range list.Items {
			out[kind+" "+o.GetNamespace()+"/"+o.GetName()+" "+string(o.GetUID())] = o.Object["spec"]
		}
	}
	return out
}
