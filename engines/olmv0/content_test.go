// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/view"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// servedView has echo.v1.0.0 with its manifests, which replaces echo.v0.9.0, and a dependency that OLM unpacks.
func servedView() view.View {
	return view.View{
		Packages: []*catalogs.Package{
			{Name: "echo", Channels: map[string]*catalogs.Channel{"stable": {Name: "stable", Entries: []catalogs.Entry{
				{Name: "echo.v0.9.0"}, {Name: "echo.v1.0.0", Replaces: "echo.v0.9.0"}}}},
				Bundles: map[string]*catalogs.Bundle{"echo.v0.9.0": {},
					"echo.v1.0.0": {Objects: [][]byte{[]byte(harmless)}}}},
			{Name: "lib", Bundles: map[string]*catalogs.Bundle{"lib.v1": {Image: "registry.example.com/lib"}}},
		},
		Bundles: []view.Bundle{{Package: "echo", Channel: "stable", Name: "echo.v0.9.0", Route: view.Stub},
			{Package: "echo", Channel: "stable", Name: "echo.v1.0.0", Route: view.Inline},
			{Package: "lib", Channel: "stable", Name: "lib.v1", Route: view.Unpack}},
	}
}

// TestPlansOfWhatIsServed checks that a plan installs the content of the view, in the same way as the view.
func TestPlansOfWhatIsServed(t *testing.T) {
	lookup := func(name string) operatorsv1alpha1.BundleLookup {
		return operatorsv1alpha1.BundleLookup{Identifier: name, Path: "registry.example.com/bundle"}
	}
	for name, test := range map[string]struct {
		change func(*operatorsv1alpha1.InstallPlan, *plan.Cluster)
		says   string // empty where it does not differ
	}{
		"what is served": {func(*operatorsv1alpha1.InstallPlan, *plan.Cluster) {}, ""},
		"a bundle that OLM unpacks": {func(p *operatorsv1alpha1.InstallPlan, _ *plan.Cluster) {
			p.Spec.ClusterServiceVersionNames = append(p.Spec.ClusterServiceVersionNames, "lib.v1")
			p.Status.BundleLookups = append(p.Status.BundleLookups, lookup("lib.v1"))
		}, ""},
		"a bundle that it needs not unpack": {func(p *operatorsv1alpha1.InstallPlan, _ *plan.Cluster) {
			p.Status.BundleLookups = append(p.Status.BundleLookups, lookup("echo.v1.0.0"))
		}, "it takes echo.v1.0.0 from the image registry.example.com/bundle, and the view serves it"},
		"an image of something else": {func(p *operatorsv1alpha1.InstallPlan, _ *plan.Cluster) {
			p.Status.BundleLookups = append(p.Status.BundleLookups, lookup("other.v1"))
		}, "it takes other.v1, which is not served, from the image registry.example.com/bundle"},
		"what is not served": {func(p *operatorsv1alpha1.InstallPlan, _ *plan.Cluster) {
			p.Spec.ClusterServiceVersionNames = append(p.Spec.ClusterServiceVersionNames, "lib.v0")
		}, "it installs lib.v0, which is not served"},
		"what is there already": {func(p *operatorsv1alpha1.InstallPlan, c *plan.Cluster) {
			p.Spec.ClusterServiceVersionNames = append(p.Spec.ClusterServiceVersionNames, "echo.v0.9.0")
			c.CSVs = append(c.CSVs, plan.CSV{Name: "echo.v0.9.0"})
		}, ""},
		"a step of nothing that it installs": {func(p *operatorsv1alpha1.InstallPlan, _ *plan.Cluster) {
			p.Status.Plan = append(p.Status.Plan, &operatorsv1alpha1.Step{Resolving: "lib.v0",
				Resource: operatorsv1alpha1.StepResource{Kind: "ConfigMap", Name: "c"}})
		}, `its step ConfigMap c is for "lib.v0", which it does not install`},
		"nothing of what it installs": {func(p *operatorsv1alpha1.InstallPlan, _ *plan.Cluster) {
			p.Status.Plan = nil
		}, "it has 0 steps with the ClusterServiceVersion"},
	} {
		t.Run(name, func(t *testing.T) {
			served := plan.Offer{}
			err := served.SetView(servedView(), v1alpha1.Release{})
			if err != nil {
				t.Fatal(err)
			}
			p, cluster := &operatorsv1alpha1.InstallPlan{}, plan.Cluster{CatalogSource: &plan.CatalogSource{Name: "c"}}
			p.Namespace, p.Spec.ClusterServiceVersionNames = "echo", []string{"echo.v1.0.0"}
			if p.Status.Plan, err = stepsOfOLM("echo.v1.0.0", [][]byte{[]byte(harmless)}); err != nil {
				t.Fatal(err)
			}
			test.change(p, &cluster)
			got := served.Content.FindDifference(p, cluster)
			if (got == "") != (test.says == "") || !strings.Contains(got, test.says) {
				t.Errorf("got %q, want %q", got, test.says)
			}
		})
	}
}

// TestRepeatedDifferences: the first plan that differs is made again, and those after it may come from the same cause.
func TestRepeatedDifferences(t *testing.T) {
	v := &planVerdicts{}
	for _, step := range []struct {
		uid, differs string
		want         bool
	}{{"1", "", false}, {"2", "a", false}, {"2", "a", false}, {"3", "b", true}, {"4", "", false}, {"2", "a", false}} {
		if got := v.recordDifference(types.UID(step.uid), step.differs); got != step.want {
			t.Errorf("plan %s that differs by %q: repeated is %t", step.uid, step.differs, got)
		}
	}
}
