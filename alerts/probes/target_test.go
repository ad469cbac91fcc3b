// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	// As the API server's client reads numbers of unstructured objects.
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return floatsToInts(out).(map[string]any)
}

func floatsToInts(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = floatsToInts(v[k])
		}
	case []any:
		for i := range v {
			v[i] = floatsToInts(v[i])
		}
	case float64:
		return int64(v)
	}
	return v
}

func typed[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestResolveTarget(t *testing.T) {
	service := typed[corev1.Service](t, `{spec: {clusterIP: 10.0.0.7, selector: {app: echo}, ports: [{port: 8080}]}}`)
	byHand := typed[corev1.Service](t, `{spec: {clusterIP: 10.0.0.7, ports: [{port: 8080}]}}`)
	headless := typed[corev1.Service](t, `{spec: {clusterIP: None, ports: [{port: 8080}]}}`)
	alias := typed[corev1.Service](t,
		`{spec: {type: ExternalName, selector: {app: echo}, clusterIP: 10.0.0.7, `+
			`externalName: db.example, ports: [{port: 8080}]}}`)
	ingress := typed[networkingv1.Ingress](t, `
spec:
  tls: [{hosts: [secure.example, "*.apps.example"]}]
  rules:
  - host: "*.apps.example"
  - host: plain.example
    http: {paths: [{path: /api, pathType: Prefix, backend: {}}]}
  - host: secure.example
    http: {paths: [{path: "/re(gex)?", pathType: ImplementationSpecific, backend: {}}]}`)
	anyHost := typed[networkingv1.Ingress](t,
		`{spec: {rules: [{}]}, status: {loadBalancer: {ingress: [{ip: "fd12::1"}]}}}`)
	route := object(t, `{spec: {host: app.example, path: /console, tls: {termination: edge}}}`)
	plainRoute := object(t, `{spec: {}, status: {ingress: [{host: late.example}]}}`)
	httpRoute := object(t,
		`{spec: {hostnames: ["*.shop.example", www.shop.example], parentRefs: [{name: gw, sectionName: web}]}}`)
	gateway := object(t, `
spec:
  listeners:
  - {name: other, protocol: HTTPS, port: 9443}
  - {name: web, protocol: HTTP, port: 8080, hostname: "*.shop.example"}
  - {name: web, protocol: HTTPS, port: 8443, hostname: "*.shop.example"}
  - {name: web, protocol: HTTPS, port: 443, hostname: elsewhere.example}`)
	target := func(change func(*v1alpha1.ProbeTarget)) (t v1alpha1.ProbeTarget) { change(&t); return t }
	named := func(kind string, h v1alpha1.HostTarget) v1alpha1.ProbeTarget {
		h.Name = "x"
		return target(func(t *v1alpha1.ProbeTarget) {
			switch kind {
			case "route":
				t.Route = &h
			case "ingress":
				t.Ingress = &h
			default:
				t.HTTPRoute = &h
			}
		})
	}
	of := func(s v1alpha1.ServiceTarget) v1alpha1.ProbeTarget {
		s.Name = "echo"
		return target(func(t *v1alpha1.ProbeTarget) { t.Service = &s })
	}
	cases := map[string]struct {
		target  v1alpha1.ProbeTarget
		object  Object
		want    string
		address string
		missing string // part of the failure's message
	}{
		"a URL": {target: v1alpha1.ProbeTarget{URL: "tcp://db.example:5432"},
			want: "tcp://db.example:5432"},
		"a Service": {target: of(v1alpha1.ServiceTarget{Port: 8080}),
			object: Object{Service: service}, want: "http://echo.ns.svc:8080/", address: "10.0.0.7"},
		"a Service whose endpoints somebody wrote is looked up": {target: of(v1alpha1.ServiceTarget{Port: 8080}),
			object: Object{Service: byHand}, want: "http://echo.ns.svc:8080/"},
		"a Service's path": {target: of(v1alpha1.ServiceTarget{Port: 8080, Scheme: "https",
			Path: "/readyz"}), object: Object{Service: service}, want: "https://echo.ns.svc:8080/readyz",
			address: "10.0.0.7"},
		"a Service over gRPC": {target: of(v1alpha1.ServiceTarget{Port: 8080, Scheme: "grpc"}),
			object: Object{Service: service}, want: "grpc://echo.ns.svc:8080", address: "10.0.0.7"},
		"a headless Service": {target: of(v1alpha1.ServiceTarget{Port: 8080}),
			object: Object{Service: headless}, want: "http://echo.ns.svc:8080/"},
		"an ExternalName is not trusted": {target: of(v1alpha1.ServiceTarget{Port: 8080}),
			object: Object{Service: alias},
			want:   "http://echo.ns.svc:8080/"},
		"a missing Service": {target: of(v1alpha1.ServiceTarget{Port: 8080}),
			missing: "there is no Service ns/echo"},
		"a missing port": {target: of(v1alpha1.ServiceTarget{Port: 9}), object: Object{Service: service},
			missing: "no port 9"},
		"a Route": {target: named("route", v1alpha1.HostTarget{}), object: Object{Route: route},
			want: "https://app.example/console"},
		"a Route's other path": {target: named("route", v1alpha1.HostTarget{Path: "/healthz"}),
			object: Object{Route: route}, want: "https://app.example/healthz"},
		"a Route with a late host": {target: named("route", v1alpha1.HostTarget{}),
			object: Object{Route: plainRoute}, want: "http://late.example/"},
		"a Route of another host": {target: named("route", v1alpha1.HostTarget{Host: "b.example"}),
			object: Object{Route: route}, missing: "does not publish the host b.example"},
		"a missing Route": {target: named("route", v1alpha1.HostTarget{}), missing: "there is no Route x"},
		"an Ingress": {target: named("ingress", v1alpha1.HostTarget{}),
			object: Object{Ingress: ingress}, want: "http://plain.example/api"},
		"an Ingress with TLS": {target: named("ingress", v1alpha1.HostTarget{Host: "secure.example"}),
			object: Object{Ingress: ingress}, want: "https://secure.example/"},
		"an Ingress with a wildcard": {target: named("ingress", v1alpha1.HostTarget{Host: "a.apps.example"}),
			object: Object{Ingress: ingress}, want: "https://a.apps.example/"},
		"an Ingress of any host": {target: named("ingress", v1alpha1.HostTarget{}),
			object: Object{Ingress: anyHost}, want: "http://[fd12::1]/"},
		"a missing Ingress": {target: named("ingress", v1alpha1.HostTarget{}),
			missing: "there is no Ingress x"},
		"an HTTPRoute": {target: named("", v1alpha1.HostTarget{}),
			object: Object{HTTPRoute: httpRoute, Gateway: gateway}, want: "https://www.shop.example:8443/"},
		"an HTTPRoute without Gateway": {target: named("", v1alpha1.HostTarget{}), object: Object{HTTPRoute: httpRoute},
			want: "http://www.shop.example/"},
		"a missing HTTPRoute": {target: named("", v1alpha1.HostTarget{}), missing: "there is no HTTPRoute x"},
		"a kind that is not served": {target: named("", v1alpha1.HostTarget{}),
			object: Object{Unreadable: "not served"}, missing: "not served"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, failure := ResolveTarget("ns", tc.target, tc.object)
			if tc.missing != "" {
				if failure == nil || failure.Reason != v1alpha1.ReasonTargetNotFound ||
					!strings.Contains(failure.Message, tc.missing) {
					t.Fatalf("got %+v, %+v; want TargetNotFound with %q", got, failure, tc.missing)
				}
				return
			}
			want := Target{URL: tc.want}
			if tc.address != "" {
				want.Address = netip.MustParseAddr(tc.address)
			}
			if failure != nil || got != want {
				t.Errorf("got %+v, %+v; want %+v", got, failure, want)
			}
		})
	}
}
