// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package freeze_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/freeze"
)

func TestOf(t *testing.T) {
	of := func(name string, clusters ...string) v1alpha1.FleetFreeze {
		return v1alpha1.FleetFreeze{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1alpha1.FleetFreezeSpec{Clusters: clusters, Reason: "registry is compromised."}}
	}
	ended := of("a", "*")
	ended.DeletionTimestamp = &metav1.Time{}
	*ended.DeletionTimestamp = metav1.Now()
	all := []v1alpha1.FleetFreeze{of("incident", "prod-*"), of("bad-pattern", "[a"),
		of("early", "prod-eu", "edge-1"), ended}
	for cluster, want := range map[string]string{"prod-eu": "early", "prod-us": "incident", "edge-1": "early",
		"dev": ""} {
		got := ""
		if f := freeze.Of(all, cluster); f != nil {
			got = f.Name
		}
		if got != want {
			t.Errorf("%s is under %q, want %q", cluster, got, want)
		}
	}
	const want = "FleetFreeze incident stops all changes there: registry is compromised; to end it, a person runs " +
		"`bellwether fleet unfreeze incident`"
	if got := freeze.Message(&all[0]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
