// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// createService creates a Service of the probed operator's namespace.
func (h *harness) createService(name string, port int32, labels map[string]string) *corev1.Service {
	h.t.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: h.operator, Name: name, Labels: labels},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: port}}, Selector: map[string]string{"app": name}}}
	h.must(h.Create(h.t.Context(), service))
	return service
}

// selectsServices probes all Services with a label by one EndpointProbe, while they
// appear, fail and disappear.
func (h *harness) selectsServices(scraped func() string) {
	h.t.Helper()
	series := func(target string) string {
		return fmt.Sprintf("probe_success{cluster=\"probes\",operator=\"probed\",operator_namespace=\"fleet\","+
			"probe=\"many\",target=%q,vantage=\"cluster\"}", target)
	}
	many := map[string]string{"app": "many"}
	probe := endpointProbe(h.t, "many",
		`{target: {service: {selector: {matchLabels: {app: many}, min: 2, minAge: 0s}, port: 18081}}}`)
	h.must(h.Create(h.t.Context(), probe))
	h.fails("many", v1alpha1.ReasonTargetNotFound, "matches 0 Services in namespace probed, and its min is 2")
	h.shows("no Service that matches", scraped, []string{series("") + " 0"}, nil)

	a, b := h.createService("many-a", 18081, many), h.createService("many-b", 18081, many)
	answering(h.t, net.JoinHostPort(a.Spec.ClusterIP, "18081"))
	status := answering(h.t, net.JoinHostPort(b.Spec.ClusterIP, "18081"))
	h.probe("many", "both succeed", func(p *v1alpha1.EndpointProbe) bool {
		return conditions.IsTrue(p.Status.Conditions, v1alpha1.ConditionSuccess) && p.Status.Selected.Matching == 2
	})
	h.shows("two Services", scraped, []string{series("many-a") + " 1", series("many-b") + " 1"}, []string{series("")})

	status.Store(http.StatusInternalServerError)
	h.fails("many", v1alpha1.ReasonBadStatus, "1 of 2 Services fail: many-b: ")
	failing := h.probe("many", "the failing one is named", func(p *v1alpha1.EndpointProbe) bool {
		return len(p.Status.Selected.FirstFailing) == 1 && p.Status.Selected.FirstFailing[0].Name == "many-b"
	})
	if failing.Status.Selected.Failing != 1 || failing.Status.URL != "" {
		h.t.Errorf("status %+v", failing.Status)
	}
	h.shows("one that fails", scraped, []string{series("many-a") + " 1", series("many-b") + " 0"}, nil)

	// A label and a deletion are followed.
	c := h.createService("many-c", 18081, nil)
	patch := client.MergeFrom(c.DeepCopy())
	c.Labels = many
	h.must(h.Patch(h.t.Context(), c, patch))
	h.must(h.Delete(h.t.Context(), b))
	h.fails("many", v1alpha1.ReasonConnectFailed, "1 of 2 Services fail: many-c: ")
	h.shows("one that came and one that is gone", scraped, []string{series("many-c") + " 0"},
		[]string{series("many-b")})
	h.must(h.Delete(h.t.Context(), probe))
	h.shows("no probe", scraped, nil, []string{`probe="many"`})
}

// trustsWebhooks verifies the certificate of a Service by the caBundle of a webhook
// that calls it.
func (h *harness) trustsWebhooks() {
	h.t.Helper()
	service := h.createService("hook", 18443, nil)
	listener, err := new(net.ListenConfig).Listen(h.t.Context(), "tcp",
		net.JoinHostPort(service.Spec.ClusterIP, "18443"))
	h.must(err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok")
	}))
	h.must(server.Listener.Close())
	server.Listener = listener
	server.StartTLS()
	h.t.Cleanup(server.Close)

	h.must(h.Create(h.t.Context(), endpointProbe(h.t, "hook", `{target: {service: {name: hook, port: 18443, `+
		`scheme: https}}, tls: {caFromWebhooks: true, serverName: example.com}}`)))
	h.fails("hook", v1alpha1.ReasonWebhookCAUnavailable, "calls port 18443 of the Service probed/hook")

	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	configuration := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hook"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "hook.example.com", AdmissionReviewVersions: []string{"v1"},
			SideEffects: ptr.To(admissionv1.SideEffectClassNone), FailurePolicy: ptr.To(admissionv1.Ignore),
			ClientConfig: admissionv1.WebhookClientConfig{CABundle: ca,
				Service: &admissionv1.ServiceReference{Namespace: h.operator, Name: "hook",
					Port: ptr.To(int32(18443))}},
			Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule: admissionv1.Rule{APIGroups: []string{"none.example.com"}, APIVersions: []string{"v1"},
					Resources: []string{"things"}}}},
		}},
	}
	h.must(h.Create(h.t.Context(), configuration))
	h.probe("hook", "it trusts the CA", func(p *v1alpha1.EndpointProbe) bool {
		return conditions.IsTrue(p.Status.Conditions, v1alpha1.ConditionSuccess)
	})
}
