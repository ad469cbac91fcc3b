// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// metricsServer speaks the API of a Prometheus that has the rules of objectives. It is
// down, or all slices of a cluster are bad, no error budget is left, or all is good.
type metricsServer struct {
	*httptest.Server
	cluster string
	state   atomic.Value
}

func startMetricsServer(t *testing.T, cluster string) *metricsServer {
	t.Helper()
	s := &metricsServer{cluster: cluster}
	s.state.Store("down")
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.Close)
	return s
}

func (s *metricsServer) answer(w http.ResponseWriter, r *http.Request) {
	if s.state.Load() == "down" {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, "Service Unavailable")
		return
	}
	query, value := r.FormValue("query"), ""
	switch {
	case strings.HasPrefix(query, "max by (sli) (bellwether:slo_objective:ratio"):
		value = "0.99"
	case strings.HasPrefix(query, "max by (sli) (bellwether:slo_guard:slices"):
		value = "2.5"
	case strings.HasPrefix(query, "avg by (sli) (clamp(bellwether:slo_budget_left:ratio") && s.state.Load() == "spent":
		value = "0"
	case strings.HasPrefix(query, "avg by (sli) (clamp(bellwether:slo_budget_left:ratio"):
		value = "0.9"
	case s.state.Load() == "bad" &&
		strings.HasPrefix(query, "sum by (cluster, sli) (sum_over_time(bellwether:sli_bad:slice"):
		value = "100"
	case strings.HasPrefix(query, "sum by (cluster, sli) ((sum_over_time(bellwether:sli_requests:count"):
		value = "100"
	case strings.HasPrefix(query, "group by (cluster) ("):
		value = "1"
	}
	sample := ""
	if value != "" {
		sample = fmt.Sprintf(`{"metric":{"sli":"available","cluster":%q},"value":[1,%q]}`, s.cluster, value)
	}
	fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, sample)
}

// TestGateStopsABadRelease: the canary is installed and Ready, and burns its budget.
// While Prometheus is down the rollout waits and says so; then the gate fails, no other
// cluster is touched, and a person lets the rollout go on.
func TestGateStopsABadRelease(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	names := f.enrollMany(3)
	prometheus := startMetricsServer(t, names[0])
	f.prometheus.URL = prometheus.URL
	f.runAgents()
	defer f.startHub()()
	canary := sized(wave("canary", 1), 1)
	canary.Gates = []v1alpha1.Gate{{Name: "budget", SLO: &v1alpha1.SLOGate{
		Window: &metav1.Duration{Duration: time.Minute}}}}
	ro := f.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{canary, wave("prod", 2)}})
	f.reaches(ro, v1alpha1.RolloutProgressing, "Verifying", "wave canary waits for 1 gate")
	f.gateSays(ro, v1alpha1.GateWaiting, "server error: 503 Service Unavailable")
	prometheus.state.Store("bad")
	f.reaches(ro, v1alpha1.RolloutHalted, "GateFailed", "gate budget of wave canary failed: available: burn rate 100")
	f.gateSays(ro, v1alpha1.GateFailed, "100 of 100 measurements are bad")
	prometheus.state.Store("good") // a failure stays
	if m := ro.Status.Waves[0].Gates[0].Measurement; m == nil || m.Value != "100" || m.Samples != 100 ||
		!strings.Contains(m.Query, names[0]) {
		t.Errorf("measurement %+v", m)
	}
	if diff := cmp.Diff(names[:1], f.recorder.admittedBy(ro.Name)); diff != "" {
		t.Errorf("admitted (-want +got):\n%s", diff)
	}
	f.change(ro, func() {
		ro.Spec.Overrides = []v1alpha1.GateOverride{{Wave: "canary", Gate: "budget", By: "ann", Reason: "a broken " +
			"probe",
			At: metav1.Now()}}
	})
	f.reaches(ro, v1alpha1.RolloutSucceeded, "True", "3 of 3 clusters updated")
	f.gateSays(ro, v1alpha1.GateOverridden, "overridden by ann: a broken probe; the gate had failed")
	f.hasEvents(ro, "GateFailed", "GateOverridden")
}

// TestGatePassesAGoodRelease with what a person may write in a strategy.
func TestGatePassesAGoodRelease(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	names := f.enrollMany(2)
	prometheus := startMetricsServer(t, names[0])
	prometheus.state.Store("good")
	f.prometheus.URL = prometheus.URL
	f.runAgents()
	defer f.startHub()()
	canary := sized(wave("canary", 1), 1)
	canary.Gates = []v1alpha1.Gate{{Name: "budget", SLO: &v1alpha1.SLOGate{
		Window: &metav1.Duration{Duration: time.Minute}}}}
	ro := f.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{canary, wave("prod", 2)}})
	f.reaches(ro, v1alpha1.RolloutSucceeded, "True", "2 of 2 clusters updated")
	f.gateSays(ro, v1alpha1.GatePassed, "available: burn rate 0 within")
	f.hasEvents(ro, "GatePassed")
}

// gateSays waits until the first gate of the first wave has a verdict and says so.
func (f *fixture) gateSays(ro *v1alpha1.OperatorRollout, verdict v1alpha1.GateVerdict, part string) {
	f.t.Helper()
	f.eventually(func() error {
		if err := f.Get(f.t.Context(), client.ObjectKeyFromObject(ro), ro); err != nil {
			return err
		}
		if g := ro.Status.Waves[0].Gates[0]; g.Verdict != verdict || !strings.Contains(g.Evidence, part) {
			return fmt.Errorf("gate is %s: %s; want %s: %s", g.Verdict, g.Evidence, verdict, part)
		}
		return nil
	})
}

// TestGateValidation asks the API server.
func TestGateValidation(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	query := func(change func(*v1alpha1.PromQLGate)) v1alpha1.Gate {
		g := v1alpha1.Gate{Name: "g", PromQL: &v1alpha1.PromQLGate{Query: `sum(up{cluster=~"${clusters}"})`,
			Operator: v1alpha1.GreaterOrEqual, Threshold: "0.5"}}
		change(g.PromQL)
		return g
	}
	for name, test := range map[string]struct {
		gate v1alpha1.Gate
		want string // in the refusal; empty: allowed
	}{
		"slo":      {v1alpha1.Gate{Name: "g", SLO: &v1alpha1.SLOGate{Objectives: []string{"probe:api:hub"}}}, ""},
		"baseline": {v1alpha1.Gate{Name: "g", Baseline: &v1alpha1.BaselineGate{SLI: "reconcile"}}, ""},
		"promQL":   {query(func(*v1alpha1.PromQLGate) {}), ""},
		"no kind":  {v1alpha1.Gate{Name: "g"}, "exactly one of approval, slo, baseline, promQL and job"},
		"two kinds": {v1alpha1.Gate{Name: "g", Approval: &v1alpha1.ApprovalGate{}, SLO: &v1alpha1.SLOGate{}},
			"exactly one"},
		"no burn rate":  {v1alpha1.Gate{Name: "g", SLO: &v1alpha1.SLOGate{MaxBurnRate: "fast"}}, "maxBurnRate"},
		"no comparison": {query(func(g *v1alpha1.PromQLGate) { g.Operator = "==" }), "Unsupported value"},
		"no threshold":  {query(func(g *v1alpha1.PromQLGate) { g.Threshold = "NaN" }), "threshold"},
		"of all clusters": {query(func(g *v1alpha1.PromQLGate) { g.Query = "sum(up)" }), "must use ${clusters} or " +
			"${release}"},
	} {
		t.Run(name, func(t *testing.T) {
			mo := &v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "echo"}}
			mo.Spec.Package, mo.Spec.Catalog.Name = "echo", "catalog"
			mo.Spec.Strategy.Waves = []v1alpha1.Wave{{Name: "w", Gates: []v1alpha1.Gate{test.gate}}}
			err := f.Create(t.Context(), mo, client.DryRunAll)
			switch {
			case test.want == "":
				must(t, err)
			case err == nil || !strings.Contains(err.Error(), test.want):
				t.Errorf("%v, want %q in it", err, test.want)
			}
		})
	}
}
