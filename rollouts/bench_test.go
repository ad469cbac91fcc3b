// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// BenchmarkNext plans a pass over a fleet of which half is updated.
func BenchmarkNext(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("clusters=%d", n), func(b *testing.B) {
			s := newScene()
			s.ro.Spec.Strategy = v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{{Name: "all"}}}
			s.Clusters, s.Installs = nil, nil
			for i := range n {
				name := fmt.Sprintf("cluster-%05d", i)
				s.Clusters = append(s.Clusters, rollouts.Cluster{Name: name, Enrolled: true, Online: true,
					Labels: map[string]string{"region": "eu", "stage": "prod"}})
				s.Installs = append(s.Installs, rollouts.Install{Cluster: name, Rollout: "echo-2", Wave: "all"})
				if i%2 == 0 {
					s.Installs[i].SucceededHash, s.Installs[i].Ready = "new", true
					s.Installs[i].Stamp = rollouts.Stamp{RolloutUID: "uid-2", Hash: "new",
						AdmittedAt: noon.Add(-time.Minute)}
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				rollouts.Next(s.Input)
			}
		})
	}
}
