// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/loopback"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// TestProbes goes through the life of an operator's probes, run by an agent that
// has the chart's permissions and no more. A Service without a selector is served
// by nobody here: the test itself listens on its cluster IP.
func TestProbes(t *testing.T) {
	t.Parallel()
	// The agents of other tests would take away what none of theirs has asked for.
	c := testenv.Cluster(t, cluster.Options{OLM: true, Pods: true})
	testenv.InstallCRDs(t, c)
	k := clientOf(t, c)
	const user, operator = "probes-agent", "probed"
	permit(t, k, user)
	kubeconfig, err := c.WriteKubeconfig(user, user)
	if err != nil {
		t.Fatal(err)
	}
	var address string
	if err := loopback.OnFreePorts(t.Context(), 1,
		func(ports []int) error { address = loopback.Address(ports[0]); return nil }); err != nil {
		t.Fatal(err)
	}
	h := start(t, c, "probes", "--kubeconfig", kubeconfig, "--metrics-bind-address", address).of(t, operator)
	scraped := func() string { return scrape(t, address) }
	success := func(probe string, value int) string {
		return fmt.Sprintf("probe_success{cluster=\"probes\",operator=\"probed\",operator_namespace=\"fleet\","+
			"probe=%q,target=\"\",vantage=\"cluster\"} %d\n",
			probe, value)
	}

	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: operator, Name: "web"},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 18080}},
			Selector: map[string]string{"app": operator}},
	}

	// The hub names a Service: once the operator has succeeded, and there is a
	// namespace for it, its probe comes by itself and is run.
	r := release(v1alpha1.CatalogPin{Source: v1alpha1.CatalogSource{Directory: t.TempDir()}, Digest: "sha256:" + zeros},
		"1.0.0")
	r.Package = operator
	h.admit(r)
	fast := &metav1.Duration{Duration: 5 * time.Second}
	h.probesServices([]v1alpha1.ProbedService{{Name: "web", Port: 18080, Path: "/healthz", Interval: fast,
		Timeout: fast}})
	h.succeeded()
	h.must(h.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operator}}))
	h.must(h.Create(t.Context(), service))
	status := answering(t, net.JoinHostPort(service.Spec.ClusterIP, "18080"))
	made := h.probe("fleet.probed.web", "it succeeds", func(p *v1alpha1.EndpointProbe) bool {
		return conditions.IsTrue(p.Status.Conditions, v1alpha1.ConditionSuccess)
	})
	if made.Status.URL != "http://web.probed.svc:18080/healthz" || made.Spec.Name != "web" {
		t.Errorf("probe %q has the URL %q", made.Spec.Name, made.Status.URL)
	}
	h.shows("a Service that answers", scraped,
		[]string{success("web", 1),
			`probe_http_status_code{cluster="probes",operator="probed",operator_namespace="fleet",probe="web",` +
				`target="",vantage="cluster"} 200`}, nil)

	// It breaks; it goes; the probe fails and stays.
	status.Store(http.StatusInternalServerError)
	h.fails("fleet.probed.web", v1alpha1.ReasonBadStatus, "500 Internal Server Error")
	h.shows("a Service that breaks", scraped, []string{success("web", 0)}, nil)
	h.must(h.Delete(t.Context(), service))
	h.fails("fleet.probed.web", v1alpha1.ReasonTargetNotFound, "there is no Service probed/web")
	h.shows("a Service that is gone", scraped, []string{success("web", 0)}, nil)

	// People's own probes: each is told what is wrong with it.
	for name, wrong := range map[string]struct{ spec, reason, says string }{
		"metadata": {`{target: {url: "http://169.254.169.254/latest/meta-data/"}}`, v1alpha1.ReasonAddressRefused,
			"spec.allowPrivate"},
		"loopback": {`{target: {url: "tcp://127.0.0.1:1"}}`, v1alpha1.ReasonAddressRefused, "127.0.0.1"},
		"permitted": {`{target: {url: "tcp://127.0.0.1:1"}, allowPrivate: true}`, v1alpha1.ReasonConnectFailed,
			"refused"},
		"route": {`{target: {route: {name: console}}}`, v1alpha1.ReasonTargetNotFound,
			"does not serve the kind Route"},
		"ingress": {`{target: {ingress: {name: console}}}`, v1alpha1.ReasonTargetNotFound,
			"there is no Ingress console"},
	} {
		h.must(h.Create(t.Context(), endpointProbe(t, name, wrong.spec)))
		h.fails(name, wrong.reason, wrong.says)
	}
	for name, unusable := range map[string]struct{ spec, reason, says string }{
		"expression": {`{target: {url: "http://a.example/"}, http: {matches: ["("]}}`, v1alpha1.ReasonInvalidSpec,
			"spec.http.matches"},
		"second": {`{name: web, target: {url: "http://a.example/"}}`, v1alpha1.ReasonDuplicate,
			"probed/fleet.probed.web"},
	} {
		h.must(h.Create(t.Context(), endpointProbe(t, name, unusable.spec)))
		stalled := h.probe(name, "it is refused", func(p *v1alpha1.EndpointProbe) bool {
			return conditions.Get(p.Status.Conditions, v1alpha1.ConditionStalled).Reason == unusable.reason
		})
		if message := conditions.Get(stalled.Status.Conditions,
			v1alpha1.ConditionReady).Message; !strings.Contains(message, unusable.says) {
			t.Errorf("%s: %s", name, message)
		}
	}

	h.usesSecret(user)
	h.selectsServices(scraped)
	h.trustsWebhooks()

	// What nobody names any more is removed, with its series; others are left.
	h.probesServices(nil)
	h.gone(made)
	h.shows("a Service that nobody names", scraped, []string{success("permitted", 0)}, []string{`probe="web"`})
	h.probesServices([]v1alpha1.ProbedService{{Name: "web", Port: 18080, Interval: fast, Timeout: fast}})
	h.probe("fleet.probed.web", "it is back", func(*v1alpha1.EndpointProbe) bool { return true })
	h.uninstall(v1alpha1.RemovalOrphan)
	h.gone(made)
	h.probe("metadata", "one that a person made is left", func(*v1alpha1.EndpointProbe) bool { return true })
}

// usesSecret creates a probe with a Secret, which the agent may not read before
// the chart's role is bound in the namespace.
func (h *harness) usesSecret(user string) {
	h.t.Helper()
	h.must(h.Create(h.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.operator, Name: "token",
		Labels: map[string]string{v1alpha1.LabelProbeSecret: "true"}}, StringData: map[string]string{"token": "abc"}}))
	h.must(h.Create(h.t.Context(), endpointProbe(h.t, "secret",
		`{target: {url: "http://169.254.169.254/"}, http: {bearerToken: {name: token, key: token}}}`)))
	h.fails("secret", v1alpha1.ReasonSecretUnavailable, "the agent may not read Secret probed/token")

	const role = "agent-probe-secrets"
	h.must(h.Create(h.t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}}))
	h.must(h.Create(h.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.operator, Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}}))
	h.fails("secret", v1alpha1.ReasonAddressRefused, "spec.allowPrivate") // with the Secret, it is run
}

// answering serves an address with a status that can be changed.
func answering(t *testing.T, address string) *atomic.Int64 {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	var status atomic.Int64
	status.Store(http.StatusOK)
	server := &http.Server{ReadHeaderTimeout: time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(int(status.Load()))
			_, _ = io.WriteString(w, "hello")
		})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return &status
}

// probesServices plays the hub's slo controller.
func (h *harness) probesServices(services []v1alpha1.ProbedService) {
	h.t.Helper()
	oi := &v1alpha1.OperatorInstall{}
	h.must(h.Get(h.t.Context(), h.key(), oi))
	patch := client.MergeFrom(oi.DeepCopy())
	oi.Spec.Services = services
	h.must(h.Patch(h.t.Context(), oi, patch))
}

// succeeded says in the agent's place that what was admitted succeeded once.
func (h *harness) succeeded() {
	h.t.Helper()
	oi := &v1alpha1.OperatorInstall{}
	h.must(h.Get(h.t.Context(), h.key(), oi))
	patch := client.MergeFrom(oi.DeepCopy())
	oi.Status.SucceededHash = oi.Spec.Admission.Hash
	h.must(h.Status().Patch(h.t.Context(), oi, patch))
}

// probe waits until an EndpointProbe is as it should be.
func (h *harness) probe(name, what string, holds func(*v1alpha1.EndpointProbe) bool) *v1alpha1.EndpointProbe {
	h.t.Helper()
	p := &v1alpha1.EndpointProbe{}
	var err error
	defer func() {
		if h.t.Failed() {
			h.t.Logf("%s: %v, status %+v", name, err, p.Status)
		}
	}()
	h.eventually(name+": "+what, func() bool {
		err = h.Get(h.t.Context(), client.ObjectKey{Namespace: h.operator, Name: name}, p)
		return err == nil && holds(p)
	})
	return p
}

// fails waits until a probe fails for a reason, and says these things.
func (h *harness) fails(name, reason, says string) {
	h.t.Helper()
	p := h.probe(name, "it fails for "+reason+": "+says, func(p *v1alpha1.EndpointProbe) bool {
		// It may fail for something else before, such as a cache that is not filled yet.
		success := conditions.Get(p.Status.Conditions, v1alpha1.ConditionSuccess)
		return success.Reason == reason && strings.Contains(success.Message, says)
	})
	message := conditions.Get(p.Status.Conditions, v1alpha1.ConditionSuccess).Message
	h.t.Logf("%s: %s: %s", name, reason, message)
	if p.Status.LastFailure == nil || p.Status.LastFailure.Reason != reason {
		h.t.Errorf("%s says %q; last failure %+v", name, message, p.Status.LastFailure)
	}
}

// endpointProbe is one of the operator probed, at a short interval.
func endpointProbe(t *testing.T, name, spec string) *v1alpha1.EndpointProbe {
	t.Helper()
	p := &v1alpha1.EndpointProbe{ObjectMeta: metav1.ObjectMeta{Namespace: "probed", Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	fast := &metav1.Duration{Duration: 5 * time.Second}
	p.Spec.Operator = v1alpha1.OperatorReference{Namespace: "fleet", Name: "probed"}
	p.Spec.Interval, p.Spec.Timeout = fast, fast
	return p
}

// TestProbeValidation makes probes that the API server has to refuse with a
// message that helps, and good ones that it has to take.
func TestProbeValidation(t *testing.T) {
	t.Parallel()
	installing.Lock()
	config := testenv.APIServer(t)
	installing.Unlock()
	namespace := testenv.Namespace(t, config, "probevalid")
	k := clientOf(t, testenv.Shared(t, cluster.Options{APIServerOnly: true}))
	for name, tc := range map[string]struct{ spec, want string }{
		"http":      {`{target: {url: "https://app.example/healthz?x=1"}}`, ""},
		"tcp":       {`{target: {url: "tcp://db.example:5432"}}`, ""},
		"dns":       {`{target: {url: "dns://[fd12::1]:53"}, dns: {query: app.example}}`, ""},
		"a Service": {`{target: {service: {name: web, port: 80}}, interval: 10m}`, ""},
		"everything of http": {`{target: {route: {name: web, host: app.example}}, http: {method: HEAD, statuses: ` +
			`[200, 204], headers: {Accept: text/html}}, tls: {insecureSkipVerify: true}}`, ""},
		"no target": {`{target: {}}`, "name exactly one of url, service, route, ingress and httpRoute"},
		"two targets": {`{target: {url: "http://a.example/", service: {name: web, port: 80}}}`,
			"name exactly one of"},
		"a file": {`{target: {url: "file:///etc/passwd"}}`,
			"url must be http, https, tcp, grpc or dns"},
		"a user in the URL":  {`{target: {url: "http://user:secret@a.example/"}}`, "without user and fragment"},
		"tcp without a port": {`{target: {url: "tcp://db.example"}}`, "such as"},
		"a blank in the URL": {`{target: {url: "http://a.example/a b"}}`, "url must be"},
		"interval too short": {`{target: {url: "http://a.example/"}, interval: 1s, timeout: 1s}`,
			"interval must be from 5s to 10m"},
		"interval too long": {`{target: {url: "http://a.example/"}, interval: 1h}`,
			"interval must be from 5s to 10m"},
		"timeout of nothing": {`{target: {url: "http://a.example/"}, timeout: 0s}`,
			"timeout must be from 100ms to 30s"},
		"timeout beyond interval": {`{target: {url: "http://a.example/"}, interval: 5s, timeout: 10s}`,
			"timeout must not be longer than interval"},
		"no duration": {`{target: {url: "http://a.example/"}, interval: soon}`, "interval"},
		"JSON, headers and Secrets": {`{target: {url: "https://a.example/"}, maxDuration: 1s, timeout: 2s, http: {` +
			`json: "body.ok", headerMatches: [{name: X, regex: a}], bearerToken: {name: a, key: b}, ` +
			`secretHeaders: [{name: X-Key, value: {name: a, key: b}}]}, ` +
			`tls: {caSecret: {name: a, key: b}, clientSecret: c}}`, ""},
		"JSON and a regular expression": {`{target: {url: "http://a.example/"}, http: {json: "true", matches: [a]}}`,
			"json cannot be combined with matches and notMatches"},
		"two CAs": {`{target: {url: "https://a.example/"}, tls: {ca: x, caSecret: {name: a, key: b}}}`,
			"set only one of ca, caSecret, caConfigMap and caFromWebhooks"},
		"a selector of Services": {`{target: {service: {selector: {matchLabels: {app: web}}, port: 80}}}`, ""},
		"a selector of Ingresses": {`{target: {ingress: {selector: {matchExpressions: [{key: app, operator: ` +
			`Exists}], min: 0, minAge: 10m}, path: /healthz}}}`, ""},
		"neither name nor selector": {`{target: {service: {port: 80}}}`, "set either name or selector"},
		"name and selector": {`{target: {route: {name: web, selector: {matchLabels: {app: web}}}}}`,
			"set either name or selector"},
		"a selector of everything": {`{target: {service: {selector: {matchLabels: {}}, port: 80}}}`,
			"selector needs matchLabels or matchExpressions"},
		"a selector with a host": {`{target: {route: {host: a.example, selector: {matchLabels: {app: web}}}}}`,
			"host is for an object with a name"},
		"more than are probed": {`{target: {service: {selector: {matchLabels: {app: web}, min: 101}, port: 80}}}`,
			"less than or equal to 100"},
		"the CA of webhooks": {`{target: {service: {name: web, port: 443, scheme: https}}, ` +
			`tls: {caFromWebhooks: true}}`, ""},
		"the CA of webhooks for a URL": {`{target: {url: "https://a.example/"}, tls: {caFromWebhooks: true}}`,
			"caFromWebhooks needs a Service as target"},
		"maxDuration beyond timeout": {`{target: {url: "http://a.example/"}, timeout: 1s, maxDuration: 2s}`,
			"maxDuration must not be longer than timeout"},
		"a header with a line break": {`{target: {url: "http://a.example/"}, http: {secretHeaders: ` +
			`[{name: "X\nY", value: {name: a, key: b}}]}}`, "should match"},
		"http and tcp": {`{target: {url: "http://a.example/"}, http: {}, tcp: {}}`,
			"at most one of http, tcp, grpc and dns"},
		"a port of 0": {`{target: {service: {name: web, port: 0}}}`,
			"should be greater than or equal to 1"},
		"a path without slash": {`{target: {service: {name: web, port: 80, path: healthz}}}`,
			"path must begin with /"},
		"a path for tcp": {`{target: {service: {name: web, port: 80, scheme: tcp, path: /x}}}`,
			"path is for http and https only"},
		"a status that is none": {`{target: {url: "http://a.example/"}, http: {statuses: [20]}}`,
			"greater than or equal to 100"},
		"another method": {`{target: {url: "http://a.example/"}, http: {method: DELETE}}`,
			"Unsupported value"},
		"a name with odd letters": {`{target: {url: "http://a.example/"}, name: "We b"}`,
			"name must begin and end with a small letter or digit"},
		"a host with a port": {`{target: {route: {name: web, host: "a.example:80"}}}`, "without scheme and port"},
	} {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf(
				`{apiVersion: bellwether.dev/v1alpha1, kind: EndpointProbe, metadata: {namespace: %s, `+
					`generateName: valid-}, spec: %s}`,
				namespace,
				tc.spec,
			)
			probe := object{}
			if err := yaml.Unmarshal([]byte(text), &probe); err != nil {
				t.Fatal(err)
			}
			probe["spec"].(map[string]any)["operator"] = map[string]any{"namespace": "fleet", "name": "echo"}
			err := k.Create(t.Context(), &unstructured.Unstructured{Object: probe})
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && err == nil:
				t.Errorf("taken; it should be refused with %q", tc.want)
			case tc.want != "" && !strings.Contains(err.Error(), tc.want):
				t.Errorf("refused with %v, want %q", err, tc.want)
			}
		})
	}
}
