// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what URL a probe is sent to, and what the status of its
// EndpointProbe says. It is given what was read and the time; it uses no
// client, network or clock.
package plan

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Target is the endpoint that is probed.
type Target struct {
	// URL with one of the schemes http, https, tcp, grpc and dns, as in
	// v1alpha1.ProbeTarget.
	URL string
	// Address of the URL's host if the object states it, such as the cluster IP
	// of a Service. It is trusted. If it is zero, the host is looked up by
	// name.
	Address netip.Addr
	// Credentials of the probe; nil if it has none.
	Credentials *Credentials
}

// Failure is why a probe failed: a reason of the API and a message.
type Failure struct {
	Reason, Message string
}

// Object is what was read of a target's object. All fields are empty if it does
// not exist.
type Object struct {
	Service *corev1.Service
	Ingress *networkingv1.Ingress
	// Route of OpenShift; HTTPRoute and its first parent that is a Gateway, as
	// the API server returned them.
	Route, HTTPRoute, Gateway map[string]any
	// Unreadable is why the object could not be read; empty if it could.
	Unreadable string
}

// ResolveTarget returns the URL of a target. A target that cannot be resolved
// is a failure with the reason TargetNotFound, which counts like any other
// failure.
func ResolveTarget(namespace string, target v1alpha1.ProbeTarget, object Object) (Target, *Failure) {
	switch {
	case target.URL != "":
		return Target{URL: target.URL}, nil
	case object.Unreadable != "":
		return Target{}, notFound("%s", object.Unreadable)
	case target.Service != nil:
		return serviceTarget(namespace, target.Service, object.Service)
	case target.Route != nil:
		return routeTarget(target.Route, object.Route)
	case target.Ingress != nil:
		return ingressTarget(target.Ingress, object.Ingress)
	case target.HTTPRoute != nil:
		return httpRouteTarget(target.HTTPRoute, object)
	}
	return Target{}, notFound("the spec names no target")
}

func notFound(format string, args ...any) *Failure {
	return &Failure{Reason: v1alpha1.ReasonTargetNotFound, Message: fmt.Sprintf(format, args...)}
}

func serviceTarget(namespace string, want *v1alpha1.ServiceTarget, service *corev1.Service) (Target, *Failure) {
	if service == nil {
		return Target{}, notFound("there is no Service %s/%s", namespace, want.Name)
	}
	if !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == want.Port }) {
		return Target{}, notFound("the Service %s/%s has no port %d", namespace, want.Name, want.Port)
	}
	scheme := want.Scheme
	if scheme == "" {
		scheme = v1alpha1.ProbeHTTP
	}
	host := want.Name + "." + namespace + ".svc"
	target := Target{URL: fmt.Sprintf("%s://%s", scheme, hostPort(host, strconv.Itoa(int(want.Port))))}
	if scheme == v1alpha1.ProbeHTTP || scheme == v1alpha1.ProbeHTTPS {
		target.URL += pathOrRoot(want.Path)
	}
	// A headless Service has no address, and neither an ExternalName nor a Service
	// without a selector, whose endpoints somebody wrote, must be trusted: all of them
	// are looked up by name.
	if address, err := netip.ParseAddr(service.Spec.ClusterIP); err == nil && len(service.Spec.Selector) > 0 &&
		service.Spec.Type != corev1.ServiceTypeExternalName {
		target.Address = address
	}
	return target, nil
}

func pathOrRoot(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

func webURL(tls bool, host, port, path string) Target {
	u := url.URL{Scheme: "http"}
	if tls {
		u.Scheme = "https"
	}
	u.Host = hostPort(host, port)
	return Target{URL: u.String() + pathOrRoot(path)}
}

func hostPort(host, port string) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == "" {
		return host
	}
	return host + ":" + port
}

// chooseHost returns the wanted host, or the first host that a client can use
// if none is wanted.
func chooseHost(kind, name, want string, hosts []string) (string, *Failure) {
	if want != "" {
		for _, host := range hosts {
			suffix, wildcard := strings.CutPrefix(host, "*")
			if strings.EqualFold(host, want) || wildcard &&
				strings.HasSuffix(strings.ToLower(want), strings.ToLower(suffix)) {
				return want, nil
			}
		}
		return "", notFound("the %s %s does not publish the host %s", kind, name, want)
	}
	for _, host := range hosts {
		if host != "" && !strings.HasPrefix(host, "*") {
			return host, nil
		}
	}
	return "", notFound("the %s %s publishes no host", kind, name)
}

func routeTarget(want *v1alpha1.HostTarget, route map[string]any) (Target, *Failure) {
	if route == nil {
		return Target{}, notFound("there is no Route %s", want.Name)
	}
	var hosts []string
	if host, _, _ := unstructured.NestedString(route, "spec", "host"); host != "" {
		hosts = append(hosts, host)
	}
	host, failure := chooseHost("Route", want.Name, want.Host,
		append(hosts, fieldOfEach(route, "host", "status", "ingress")...))
	if failure != nil {
		return Target{}, failure
	}
	_, tls, _ := unstructured.NestedMap(route, "spec", "tls")
	path := want.Path
	if path == "" {
		path, _, _ = unstructured.NestedString(route, "spec", "path")
	}
	return webURL(tls, host, "", path), nil
}

// fieldOfEach returns a text field of each object of a list.
func fieldOfEach(object map[string]any, field string, list ...string) []string {
	items, _, _ := unstructured.NestedSlice(object, list...)
	var values []string
	for _, item := range items {
		if fields, ok := item.(map[string]any); ok {
			if value, ok := fields[field].(string); ok && value != "" {
				values = append(values, value)
			}
		}
	}
	return values
}

func ingressTarget(want *v1alpha1.HostTarget, ingress *networkingv1.Ingress) (Target, *Failure) {
	if ingress == nil {
		return Target{}, notFound("there is no Ingress %s", want.Name)
	}
	var hosts []string
	for _, rule := range ingress.Spec.Rules {
		hosts = append(hosts, rule.Host)
	}
	if !slices.ContainsFunc(hosts, func(h string) bool { return h != "" }) {
		// It accepts any host: use its load balancer's address.
		for _, at := range ingress.Status.LoadBalancer.Ingress {
			hosts = append(hosts, at.Hostname, at.IP)
		}
	}
	host, failure := chooseHost("Ingress", want.Name, want.Host, hosts)
	if failure != nil {
		return Target{}, failure
	}
	tls := slices.ContainsFunc(ingress.Spec.TLS, func(t networkingv1.IngressTLS) bool {
		_, other := chooseHost("", "", host, t.Hosts)
		return len(t.Hosts) == 0 || other == nil
	})
	path := want.Path
	if path == "" {
		path = ingressPath(ingress, host)
	}
	return webURL(tls, host, "", path), nil
}

func ingressPath(ingress *networkingv1.Ingress, host string) string {
	for _, rule := range ingress.Spec.Rules {
		literal := func(p networkingv1.HTTPIngressPath) bool {
			return p.PathType == nil || *p.PathType != networkingv1.PathTypeImplementationSpecific
		}
		if rule.HTTP != nil && (rule.Host == host || rule.Host == "") && len(rule.HTTP.Paths) > 0 &&
			literal(rule.HTTP.Paths[0]) {
			return rule.HTTP.Paths[0].Path
		}
	}
	return ""
}

func httpRouteTarget(want *v1alpha1.HostTarget, object Object) (Target, *Failure) {
	if object.HTTPRoute == nil {
		return Target{}, notFound("there is no HTTPRoute %s", want.Name)
	}
	hosts, _, _ := unstructured.NestedStringSlice(object.HTTPRoute, "spec", "hostnames")
	if len(hosts) == 0 {
		hosts = append(fieldOfEach(object.Gateway, "hostname", "spec", "listeners"),
			fieldOfEach(object.Gateway, "value", "status", "addresses")...)
	}
	host, failure := chooseHost("HTTPRoute", want.Name, want.Host, hosts)
	if failure != nil {
		return Target{}, failure
	}
	tls, port := findListener(object.Gateway, host, sectionName(object.HTTPRoute))
	return webURL(tls, host, port, pathOrRoot(want.Path)), nil
}

// sectionName returns the section of the Gateway that an HTTPRoute names for
// its first parent; empty if it names none.
func sectionName(route map[string]any) string {
	for _, name := range fieldOfEach(route, "sectionName", "spec", "parentRefs") {
		return name
	}
	return ""
}

// findListener returns how a Gateway serves a host: by the first listener with
// TLS that accepts the host, otherwise by the first without. The port is empty
// if it is the scheme's default, or if no listener accepts the host.
func findListener(gateway map[string]any, host, section string) (tls bool, port string) {
	listeners, _, _ := unstructured.NestedSlice(gateway, "spec", "listeners")
	for _, protocol := range []string{"HTTPS", "HTTP"} {
		for _, item := range listeners {
			fields, _ := item.(map[string]any)
			if fields["protocol"] != protocol || !acceptsHost(fields, host, section) {
				continue
			}
			number, _, _ := unstructured.NestedInt64(fields, "port")
			return protocol == "HTTPS", portIfNotStandard(protocol, number)
		}
	}
	return false, ""
}

// acceptsHost tells whether a listener serves a host for a route that names a
// section of its Gateway, or none.
func acceptsHost(listener map[string]any, host, section string) bool {
	if section != "" && listener["name"] != section {
		return false
	}
	of, _ := listener["hostname"].(string)
	if of == "" {
		return true
	}
	_, other := chooseHost("", "", host, []string{of})
	return other == nil
}

func portIfNotStandard(protocol string, port int64) string {
	if protocol == "HTTPS" && port == 443 || protocol == "HTTP" && port == 80 {
		return ""
	}
	return strconv.FormatInt(port, 10)
}
