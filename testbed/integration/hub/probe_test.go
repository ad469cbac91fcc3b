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
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// TestProbesFromTheHub runs probes from outside a cluster: those of its namespace on the hub, of URLs, and no others.
func TestProbesFromTheHub(t *testing.T) {
	t.Parallel()
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
	h.refusesPrivateProbes(t, namespace, outside.Spec)
}

// refusesPrivateProbes plays the author of a probe, who may not set allowPrivate.
func (h *harness) refusesPrivateProbes(t *testing.T, namespace string, spec v1alpha1.EndpointProbeSpec) {
	t.Helper()
	config, err := h.cluster.UserConfig("system:serviceaccount:elsewhere:probing")
	must(t, err)
	testenv.Grant(t, h, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "probing"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "bellwether-operate"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "elsewhere", Name: "probing"}}})
	person := h.as(t, config)
	private := &v1alpha1.EndpointProbe{Spec: spec}
	private.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: "private"}
	if err := person.Create(t.Context(), private); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "needs the verb allow-private") {
		t.Errorf("who operates sets allowPrivate: %v", err)
	}
	private.Spec.AllowPrivate = false
	must(t, person.Create(t.Context(), private))
	h.succeeds(t, private, metav1.ConditionFalse, v1alpha1.ReasonAddressRefused)
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
