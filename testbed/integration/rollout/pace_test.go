// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestErrorBudgetPace: where no error budget is left, or that is not known, nothing is
// admitted and the rollout says why; it goes on when some is left.
func TestErrorBudgetPace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	names := f.enrollMany(2)
	prometheus := startMetricsServer(t, names[0])
	f.prometheus.URL = prometheus.URL
	f.runAgents()
	defer f.startHub()()
	strategy := v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{wave("all", 2)},
		ErrorBudgetPace: &v1alpha1.ErrorBudgetPace{}}
	first := f.start(1, strategy) // there is no budget to protect, so it needs no Prometheus
	f.reaches(first, v1alpha1.RolloutSucceeded, "2 of 2 clusters updated")

	second := f.start(2, strategy)
	f.reaches(second, v1alpha1.RolloutProgressing, "ErrorBudgetUnknown", "server error: 503 Service Unavailable")
	prometheus.state.Store("spent")
	f.reaches(second, v1alpha1.RolloutProgressing, "ErrorBudgetSpent", "0 % of the error budget of available is left")
	if admitted := f.recorder.admittedBy(second.Name); len(admitted) > 0 {
		t.Errorf("%v are admitted although no budget is left", admitted)
	}
	if pace := second.Status.Pace; pace == nil || pace.Percent != 0 || pace.Value != "0.0000" || pace.Query == "" {
		t.Errorf("pace %+v", pace)
	}
	prometheus.state.Store("good")
	f.reaches(second, v1alpha1.RolloutSucceeded, "2 of 2 clusters updated")
	f.hasEvents(second, "ErrorBudgetUnknown", "ErrorBudgetSpent", "ErrorBudgetLeft")
}
