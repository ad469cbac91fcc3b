// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package holds_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/sign"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

func key(t *testing.T) string {
	t.Helper()
	pair, err := sign.GenerateKey(sign.Ed25519, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(pair.Public)
}

// permit is a FleetAccess of the namespaces team-*, to clusters of the team, from its
// registry, into its namespaces.
func permit(change func(*v1alpha1.FleetAccessSpec)) v1alpha1.FleetAccess {
	a := v1alpha1.FleetAccess{Spec: v1alpha1.FleetAccessSpec{Namespaces: []string{"team-*"},
		ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}},
		Registries:      []string{"registry.example.com/team"}, TargetNamespaces: []string{"a-*"}}}
	a.Name = "teams"
	if change != nil {
		change(&a.Spec)
	}
	return a
}

func release(image, target string, keys ...string) v1alpha1.Release {
	return v1alpha1.Release{Package: "echo", Install: v1alpha1.InstallSettings{Namespace: target},
		Catalog: v1alpha1.CatalogPin{Source: v1alpha1.CatalogSource{Image: image}, PublicKeys: keys}}
}

func TestDecide(t *testing.T) {
	ours, other := key(t), key(t)
	const image = "registry.example.com/team/catalog:v1"
	good := release(image, "a-echo")
	mine := map[string]string{"team": "a"}
	signed := permit(func(s *v1alpha1.FleetAccessSpec) { s.PublicKeys = []string{ours} })
	anything := permit(func(s *v1alpha1.FleetAccessSpec) {
		s.Namespaces, s.Registries, s.TargetNamespaces = []string{"*"}, []string{holds.AnyRegistry}, []string{"*"}
		s.ClusterSelector = metav1.LabelSelector{}
	})
	directory := release("", "a-echo")
	directory.Catalog.Source.Directory = "/catalog"
	broken := permit(func(s *v1alpha1.FleetAccessSpec) {
		s.ClusterSelector = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a",
			Operator: "Near"}}}
	})
	tests := map[string]struct {
		all       []v1alpha1.FleetAccess
		namespace string
		release   v1alpha1.Release
		cluster   map[string]string
		want      string
	}{
		"there is none: as it always was": {nil, "evil", release("evil.example.com/x", "kube-system"), nil, ""},
		"permitted":                       {[]v1alpha1.FleetAccess{permit(nil)}, "team-a", good, mine, ""},
		"another namespace of the hub": {[]v1alpha1.FleetAccess{permit(nil)}, "evil", good, mine,
			"no FleetAccess names the namespace evil"},
		"another registry": {[]v1alpha1.FleetAccess{permit(nil)}, "team-a", release("evil.example.com/x", "a-echo"),
			mine, "FleetAccess teams does not permit the catalog evil.example.com/x"},
		"another repository": {[]v1alpha1.FleetAccess{permit(nil)}, "team-a",
			release("registry.example.com/teams/x", "a-echo"), mine, "does not permit the catalog"},
		"a directory": {[]v1alpha1.FleetAccess{permit(nil)}, "team-a", directory, mine,
			"does not permit the catalog /catalog"},
		"kube-system": {[]v1alpha1.FleetAccess{permit(nil)}, "team-a", release(image, "kube-system"), mine,
			"does not permit the target namespace kube-system"},
		"the package names it": {[]v1alpha1.FleetAccess{permit(nil)}, "team-a", release(image, ""), mine,
			"does not permit the target namespace echo"},
		"another cluster": {[]v1alpha1.FleetAccess{permit(nil)}, "team-a", good, map[string]string{"team": "b"},
			"FleetAccess teams does not permit this cluster"},
		"an unsigned catalog":     {[]v1alpha1.FleetAccess{signed}, "team-a", good, mine, "requires signatures"},
		"signed by a key of ours": {[]v1alpha1.FleetAccess{signed}, "team-a", release(image, "a-echo", ours), mine, ""},
		"or by one of anybody": {[]v1alpha1.FleetAccess{signed}, "team-a", release(image, "a-echo", ours, other),
			mine, "signatures"},
		"one of several permits":  {[]v1alpha1.FleetAccess{signed, permit(nil)}, "team-a", good, mine, ""},
		"anything":                {[]v1alpha1.FleetAccess{anything}, "evil", directory, nil, ""},
		"one that cannot be read": {[]v1alpha1.FleetAccess{broken}, "team-a", good, mine, "no FleetAccess names"},
		"parts of two are no whole": {[]v1alpha1.FleetAccess{permit(nil), permit(func(s *v1alpha1.FleetAccessSpec) {
			s.TargetNamespaces, s.ClusterSelector = []string{"b-*"}, metav1.LabelSelector{}
		})}, "team-a", good, map[string]string{"team": "b"}, "does not permit this cluster"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := holds.DecideAccess(test.all, test.namespace, test.release).Refusal(test.cluster)
			if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestReaches(t *testing.T) {
	mine, other := map[string]string{"team": "a"}, map[string]string{"team": "b"}
	broken := permit(func(s *v1alpha1.FleetAccessSpec) {
		s.ClusterSelector = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a",
			Operator: "Near"}}}
	})
	for name, test := range map[string]struct {
		all       []v1alpha1.FleetAccess
		namespace string
		cluster   map[string]string
		want      bool
	}{
		"there is none: every namespace does": {nil, "evil", mine, true},
		"permitted":                           {[]v1alpha1.FleetAccess{permit(nil)}, "team-a", mine, true},
		"one of several permits":              {[]v1alpha1.FleetAccess{broken, permit(nil)}, "team-a", mine, true},
		"another namespace":                   {[]v1alpha1.FleetAccess{permit(nil)}, "evil", mine, false},
		"another cluster":                     {[]v1alpha1.FleetAccess{permit(nil)}, "team-a", other, false},
		"one that cannot be read":             {[]v1alpha1.FleetAccess{broken}, "team-a", mine, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := holds.HasAccess(test.all, test.namespace, test.cluster); got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}
