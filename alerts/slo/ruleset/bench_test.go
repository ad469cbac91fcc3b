// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package ruleset

import (
	"fmt"
	"testing"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// BenchmarkNext is one pass over 30 operators on 200 clusters each, a third of
// them with an SLI of their own, when Prometheus evaluates all rules.
func BenchmarkNext(b *testing.B) {
	var slos []v1alpha1.OperatorSLO
	for i := range 30 {
		name := fmt.Sprintf("o%d", i)
		slos = append(slos, objectives(name, name, i, target("csv", "99"), func(s *v1alpha1.OperatorSLO) {
			if i%3 == 0 {
				target("http", "99")(s)
				s.Spec.Own = []v1alpha1.OwnSLI{{Name: "http",
					Latency: &v1alpha1.LatencyThreshold{Histogram: "h", LE: "0.5"}}}
			}
		}))
	}
	in := fleet(slos...)
	in.Now, in.Kind, in.Namespace = now, KindPrometheusRule, "rules"
	for i := range 30 {
		for c := range 200 {
			in.Installs = append(in.Installs, v1alpha1.OperatorInstall{
				ObjectMeta: metadata(fmt.Sprintf("c%d", c), fmt.Sprintf("a.o%d", i), 1),
				Spec: v1alpha1.OperatorInstallSpec{Operator: v1alpha1.OperatorReference{Namespace: "a",
					Name: fmt.Sprintf("o%d", i)}},
			})
		}
	}
	out, err := Next(in)
	if err != nil {
		b.Fatal(err)
	}
	in.Prometheus = loadedFrom(out.Files)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Next(in); err != nil {
			b.Fatal(err)
		}
	}
}
