// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

const system = "bellwether-system"

// runningHub is a hub of the test's own on which the test plays the Deployment's controller, the leader and the agent
// of one cluster.
func runningHub(t *testing.T) *hub {
	t.Helper()
	h := connect(t, testenv.Cluster(t, cluster.Options{APIServerOnly: true}))
	h.install(t, alertmanagerURL)
	h.setAvailable(t, 2)
	h.lease(t, system, "bellwether-hub", time.Now())
	must(t, h.Create(t.Context(), &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "prod-1"}}))
	must(t, h.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bellwether-prod-1"}}))
	h.lease(t, "bellwether-prod-1", v1alpha1.LeaseName, time.Now())
	h.setOnline(t, true)
	return h
}

func (h *hub) setAvailable(t *testing.T, available int32) {
	t.Helper()
	d := &appsv1.Deployment{}
	must(t, h.Get(t.Context(), client.ObjectKey{Namespace: system, Name: "bellwether-hub"}, d))
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 2, ReadyReplicas: available,
		AvailableReplicas: available}
	must(t, h.Status().Update(t.Context(), d))
}

// lease renews a Lease, which it creates if need be.
func (h *hub) lease(t *testing.T, namespace, name string, renewed time.Time) {
	t.Helper()
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	err := h.Get(t.Context(), client.ObjectKeyFromObject(l), l)
	l.Spec = coordinationv1.LeaseSpec{HolderIdentity: ptr.To("pod-1"), LeaseDurationSeconds: ptr.To[int32](3600),
		RenewTime: ptr.To(metav1.NewMicroTime(renewed))}
	if apierrors.IsNotFound(err) {
		must(t, h.Create(t.Context(), l))
		return
	}
	must(t, err)
	must(t, h.Update(t.Context(), l))
}

func (h *hub) setOnline(t *testing.T, online bool) {
	t.Helper()
	c := &v1alpha1.FleetCluster{}
	must(t, h.Get(t.Context(), client.ObjectKey{Name: "prod-1"}, c))
	status, reason, message := metav1.ConditionTrue, v1alpha1.ReasonLeaseFresh, "the agent renews its Lease"
	if !online {
		status, reason, message = metav1.ConditionFalse, v1alpha1.ReasonLeaseExpired,
			"the agent stopped renewing its Lease"
	}
	now := metav1.Now()
	c.Status.ObservedGeneration = c.Generation
	c.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionOnline, Status: status, Reason: reason, Message: message, LastTransitionTime: now},
		{Type: v1alpha1.ConditionAPIServerReachable, Status: metav1.ConditionTrue,
			Reason: v1alpha1.ReasonAPIServerReachable, LastTransitionTime: now},
	}
	must(t, h.Status().Update(t.Context(), c))
}

// report is what doctor says as data.
type report struct {
	Findings []struct {
		Severity, Check, Text string
		Remedies              []struct{ Text, Command string }
	}
	NotChecked []struct{ Check, What, Why string }
}

func (h *hub) doctor(t *testing.T, args ...string) (report, int) {
	t.Helper()
	got := h.run(t, append([]string{"doctor", "-o", "json"}, args...)...)
	var r report
	if err := json.Unmarshal([]byte(got.out), &r); err != nil {
		t.Fatalf("doctor ends with %d: %v\n%s%s", got.code, err, got.out, got.err)
	}
	return r, got.code
}

// TestDoctor breaks a hub in several ways. Each of them is named, with a remedy, and nothing is found once the remedy
// was applied.
func TestDoctor(t *testing.T) {
	h := runningHub(t)
	if r, code := h.doctor(t); code != 0 || len(r.Findings)+len(r.NotChecked) > 0 {
		t.Fatalf("a healthy installation ends with %d: %+v", code, r)
	}
	role := &rbacv1.ClusterRole{}
	crd := "managedoperators.bellwether.dev"
	for _, test := range []struct {
		name           string
		broken, mended func(t *testing.T)
		code           int
		check, says    string
		command        string
	}{
		{name: "the hub does not run", code: 2, check: "Hub", says: "0 of 2 replicas available",
			broken:  func(t *testing.T) { h.setAvailable(t, 0) },
			command: "kubectl -n bellwether-system logs deployment/bellwether-hub --previous",
			mended:  func(t *testing.T) { h.setAvailable(t, 2) }},
		{name: "nobody leads", code: 2, check: "Hub", says: "no replica of the hub has led since",
			broken:  func(t *testing.T) { h.lease(t, system, "bellwether-hub", time.Now().Add(-2*time.Hour)) },
			command: "kubectl -n bellwether-system rollout restart deployment bellwether-hub",
			mended:  func(t *testing.T) { h.lease(t, system, "bellwether-hub", time.Now()) }},
		{name: "an agent stopped", code: 2, check: "Agents", says: "cluster prod-1 is offline",
			broken:  func(t *testing.T) { h.setOnline(t, false) },
			command: "bellwether fleet join prod-1 --cluster-kubeconfig FILE",
			mended:  func(t *testing.T) { h.setOnline(t, true) }},
		{name: "a skewed lease", code: 3, check: "Clocks", says: "prod-1 (10m",
			broken: func(t *testing.T) {
				h.lease(t, "bellwether-prod-1", v1alpha1.LeaseName, time.Now().Add(10*time.Minute+30*time.Second))
			},
			command: "timedatectl status",
			mended:  func(t *testing.T) { h.lease(t, "bellwether-prod-1", v1alpha1.LeaseName, time.Now()) }},
		{name: "a permission removed", code: 2, check: "Permissions",
			says: "delete, get, list, patch, watch operatorrollouts.bellwether.dev",
			broken: func(t *testing.T) {
				must(t, h.Get(t.Context(), client.ObjectKey{Name: "bellwether-hub"}, role))
				role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
					return slices.Contains(r.Resources, "operatorrollouts")
				})
				must(t, h.Update(t.Context(), role))
			},
			command: "bellwether install hub", mended: func(t *testing.T) { h.reinstall(t) }},
		{name: "a CRD removed", code: 2, check: "Versions", says: "the hub does not have 1 CRD: " + crd,
			broken:  func(t *testing.T) { h.removeCRD(t, crd) },
			command: "bellwether install hub", mended: func(t *testing.T) { h.reinstall(t) }},
		{name: "no Alertmanager", code: 3, check: "Alerts", says: "the hub knows no Alertmanager",
			broken: func(t *testing.T) {
				h.install(t, "")
				h.setAvailable(t, 2)
			},
			mended: func(t *testing.T) { h.reinstall(t) }},
		{name: "a webhook that leads nowhere", code: 2, check: "Webhooks",
			says:    "Service guard/guard, which does not exist",
			broken:  func(t *testing.T) { must(t, h.Create(t.Context(), deadWebhook())) },
			command: "kubectl delete validatingwebhookconfiguration guard",
			mended:  func(t *testing.T) { must(t, h.Delete(t.Context(), deadWebhook())) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.broken(t)
			var r report
			eventually(t, "the trouble is found", func() bool {
				found, code := h.doctor(t)
				r = found
				return code == test.code
			})
			if !r.has(test.check, test.says, test.command) {
				t.Errorf("no finding of %s with %q and command %q: %+v", test.check, test.says, test.command, r)
			}
			test.mended(t)
			eventually(t, "nothing is found", func() bool {
				found, code := h.doctor(t)
				r = found
				return code == 0
			})
		})
	}
	if got := h.run(t, "doctor"); !strings.Contains(got.out, "✓ Nothing found: Hub, Agents, OLM, ") ||
		!strings.HasSuffix(got.out, "0 critical, 0 warnings, 0 not checked.\n") {
		t.Errorf("as text it says\n%s%s", got.out, got.err)
	}
}

func (r report) has(check, says, command string) bool {
	for _, f := range r.Findings {
		for _, remedy := range f.Remedies {
			if f.Check == check && strings.Contains(f.Text, says) && remedy.Command == command {
				return true
			}
		}
	}
	return false
}

// reinstall is the remedy for what the chart makes. The Deployment keeps its status.
func (h *hub) reinstall(t *testing.T) {
	t.Helper()
	h.install(t, alertmanagerURL)
	h.setAvailable(t, 2)
}

// install installs the hub, or changes it. No Alertmanager is at the address, which nobody connects to in these tests.
func (h *hub) install(t *testing.T, alertmanager string) {
	t.Helper()
	got := h.run(t, "install", "hub", "--wait=false", "--set", "hub.paging.alertmanagerURL="+alertmanager)
	if got.code != 0 {
		t.Fatalf("install hub: %s%s", got.out, got.err)
	}
}

const alertmanagerURL = "http://alertmanager.monitoring:9093"

func deadWebhook() *admissionv1.ValidatingWebhookConfiguration {
	return &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "guard"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "guard.example.com", AdmissionReviewVersions: []string{"v1"},
			SideEffects: ptr.To(admissionv1.SideEffectClassNone), FailurePolicy: ptr.To(admissionv1.Fail),
			ClientConfig: admissionv1.WebhookClientConfig{
				Service: &admissionv1.ServiceReference{Namespace: "guard", Name: "guard"}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule: admissionv1.Rule{APIGroups: []string{"bellwether.dev"}, APIVersions: []string{"*"},
					Resources: []string{"operatorrollouts"}}}},
		}},
	}
}

// TestDoctorMayNotReadEverything: what a person may not read is listed, and is no finding.
func TestDoctorMayNotReadEverything(t *testing.T) {
	h := newHub(t)
	h.bind(t, "viewer", "bellwether-view")
	eventually(t, "the binding is in force", func() bool {
		return h.run(t, "rollout", "get", "--as", "viewer").code == 0
	})
	r, code := h.doctor(t, "--as", "viewer")
	if len(r.Findings) != 0 || code != 3 {
		t.Errorf("it ends with %d and finds %+v", code, r.Findings)
	}
	for _, check := range []string{"Hub", "Versions", "Clocks", "Webhooks"} {
		if !slices.ContainsFunc(r.NotChecked, func(g struct{ Check, What, Why string }) bool {
			return g.Check == check && strings.Contains(g.Why, "forbidden")
		}) {
			t.Errorf("check %s is not said to be left out: %+v", check, r.NotChecked)
		}
	}
	if got := h.run(t, "doctor", "--server", "https://127.0.0.1:1"); got.code != 1 ||
		!strings.Contains(got.err, "cannot reach the hub") {
		t.Errorf("without a hub it ends with %d: %s", got.code, got.err)
	}
}

// removeCRD deletes a CRD, and waits until it is gone.
func (h *hub) removeCRD(t *testing.T, name string) {
	t.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetName(name)
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1",
		Kind: "CustomResourceDefinition"})
	must(t, h.Delete(t.Context(), crd))
	eventually(t, "the CRD is gone", func() bool {
		return apierrors.IsNotFound(h.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
	})
}
