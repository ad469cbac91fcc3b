// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// TestProbesFromTheHub runs probes from outside a cluster: those of its namespace on the hub, of URLs, and no others.
func TestProbesFromTheHub(t *testing.T) {
	h := startWhole(t)
	h.join(t, &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "probed"}})
	namespace := v1alpha1.ClusterNamespace("probed")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	probe := func(namespace, name string, target v1alpha1.ProbeTarget) *v1alpha1.EndpointProbe {
		short := &metav1.Duration{Duration: 5 * time.Second}
		p := &v1alpha1.EndpointProbe{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: v1alpha1.EndpointProbeSpec{Target: target, AllowPrivate: true,
				Operator: v1alpha1.OperatorReference{Namespace: "fleet", Name: "echo"},
				Interval: short, Timeout: short},
		}
		must(t, h.Create(t.Context(), p))
		return p
	}
	url := v1alpha1.ProbeTarget{URL: "tcp://" + listener.Addr().String()}
	outside := probe(namespace, "api", url)
	service := probe(namespace, "service", v1alpha1.ProbeTarget{Service: &v1alpha1.ServiceTarget{Name: "api",
		Port: 80}})
	elsewhere := probe(testenv.Namespace(t, h.cluster.RESTConfig(), "elsewhere"), "elsewhere", url)

	h.reaches(t, service, "Stalled "+v1alpha1.ReasonInvalidSpec, "must be a url")
	h.reaches(t, elsewhere, "Stalled "+v1alpha1.ReasonInvalidSpec, "namespace of a cluster")
	h.succeeds(t, outside, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	series := func(value int) string {
		return fmt.Sprintf("# HELP probe_success Whether the probe succeeded.\n# TYPE probe_success gauge\n"+
			"probe_success{cluster=\"probed\",operator=\"echo\",operator_namespace=\"fleet\",probe=\"api\","+
			"target=\"\",vantage=\"hub\"} %d\n", value)
	}
	exports := func(want string) error {
		return testutil.GatherAndCompare(h.metrics, strings.NewReader(want), "probe_success")
	}
	must(t, exports(series(1)))

	must(t, listener.Close())
	h.succeeds(t, outside, metav1.ConditionFalse, v1alpha1.ReasonConnectFailed)
	must(t, exports(series(0)))
	must(t, h.Delete(t.Context(), outside))
	eventually(t, func() error {
		if n, err := testutil.GatherAndCount(h.metrics, "probe_success"); n != 0 || err != nil {
			return errors.Join(fmt.Errorf("%d series are left", n), err)
		}
		return nil
	})
}

func (h *harness) succeeds(t *testing.T, p *v1alpha1.EndpointProbe, status metav1.ConditionStatus, reason string) {
	t.Helper()
	eventually(t, func() error {
		if err := h.is(t, p, "True "+v1alpha1.ReasonSucceeded); err != nil {
			return err
		}
		if got := conditions.Get(p.Status.Conditions, v1alpha1.ConditionSuccess); got.Status != status ||
			got.Reason != reason {
			return fmt.Errorf("Success is %s %s: %s", got.Status, got.Reason, got.Message)
		}
		return nil
	})
}
