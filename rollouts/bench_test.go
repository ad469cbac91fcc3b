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
			f := newFixture()
			f.ro.Spec.Strategy = v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{{Name: "all"}}}
			f.Clusters, f.Installs = nil, nil
			for i := range n {
				name := fmt.Sprintf("cluster-%05d", i)
				f.Clusters = append(f.Clusters, rollouts.Cluster{Name: name, Enrolled: true, Online: true,
					Labels: map[string]string{"region": "eu", "stage": "prod"}})
				f.Installs = append(f.Installs, rollouts.Install{Cluster: name, Rollout: "echo-2", Wave: "all"})
				if i%2 == 0 {
					f.Installs[i].SucceededHash, f.Installs[i].Ready = "new", true
					f.Installs[i].Stamp = rollouts.Stamp{RolloutUID: "uid-2", Hash: "new",
						AdmittedAt: noon.Add(-time.Minute)}
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				rollouts.Next(f.Input)
			}
		})
	}
}
