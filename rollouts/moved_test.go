// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// TestMovedTo changes the labels of a cluster after the rollout was planned.
func TestMovedTo(t *testing.T) {
	wave := func(name, env string) v1alpha1.Wave {
		return v1alpha1.Wave{Name: name, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": env}}}
	}
	sized := func(w v1alpha1.Wave) v1alpha1.Wave {
		one := intstr.FromInt32(1)
		w.Size = &one
		return w
	}
	selectors := []v1alpha1.Wave{wave("canary", "test"), wave("prod", "prod")}
	for name, test := range map[string]struct {
		waves []v1alpha1.Wave
		// wave is the wave that the cluster was assigned to.
		wave, env string
		deleting  bool
		want      string
	}{
		"same wave":                      {waves: selectors, wave: "prod", env: "prod"},
		"earlier wave":                   {waves: selectors, wave: "prod", env: "test", want: "canary"},
		"later wave":                     {waves: selectors, wave: "canary", env: "prod", want: "prod"},
		"implied last wave":              {waves: selectors, wave: "canary", env: "other", want: "rest"},
		"from the implied last wave":     {waves: selectors, wave: "rest", env: "test", want: "canary"},
		"still in the implied last wave": {waves: selectors, wave: "rest", env: "other"},
		"default waves":                  {wave: "early", env: "other"},
		"the earlier wave may be full": {waves: []v1alpha1.Wave{sized(wave("canary", "prod")), wave("prod", "prod")},
			wave: "prod", env: "prod"},
		"out of a wave with a size": {waves: []v1alpha1.Wave{sized(wave("canary", "test")), wave("prod", "prod")},
			wave: "canary", env: "prod", want: "prod"},
		"leaves the fleet": {waves: selectors, wave: "prod", env: "test", deleting: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			f.ro.Spec.Strategy.Waves = test.waves
			f.Clusters, f.Installs = f.Clusters[:1], f.Installs[:1]
			f.Clusters[0].Labels, f.Clusters[0].Deleting = map[string]string{"env": test.env}, test.deleting
			f.Installs[0].Wave = test.wave
			members, err := rollouts.Classify(f.Input)
			if err != nil {
				t.Fatal(err)
			}
			if len(members) != 1 || members[0].MovedTo != test.want {
				t.Errorf("members %+v, want one moved to %q", members, test.want)
			}
		})
	}
}
