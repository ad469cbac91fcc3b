// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probes decides the URL of a probe, the status of its EndpointProbe, and the EndpointProbes for
// the Services of an operator. Its inputs are objects and the time; it uses no client, network or clock.
package probes

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
	// URL has one of the schemes http, https, tcp, grpc and dns, as in v1alpha1.ProbeTarget.
	URL string
	// Address is the address of the URL's host if the object defines it, such as the
	// cluster IP of a Service. It is trusted. If it is zero, the host is resolved by name.
	Address netip.Addr
	// Credentials of the probe; nil if it has none.
	Credentials *Credentials
}

// Failure is the reason why a probe failed: a reason of the API and a message.
type Failure struct {
	Reason, Message string
}

// Object is a target's object. All fields are empty if it does not exist.
type Object struct {
	Service *corev1.Service
	Ingress *networkingv1.Ingress
	// Route of OpenShift; HTTPRoute and its first parent that is a Gateway, as the API server returned them.
	Route, HTTPRoute, Gateway map[string]any
	// Unreadable is the reason why the object could not be read. It is empty if it could be read.
	Unreadable string
}

// ResolveTarget returns the URL of a target. If a target cannot be resolved, it returns
// a failure with the reason TargetNotFound, which counts like any other failure.
func ResolveTarget(namespace string, target v1alpha1.ProbeTarget, object Object) (Target, *Failure) {
	switch {
	case target.URL != "":
		return Target{URL: target.URL}, nil
	case object.Unreadable != "":
		return Target{}, newNotFound("%s", object.Unreadable)
	case target.Service != nil:
		return resolveService(namespace, target.Service, object.Service)
	case target.Route != nil:
		return resolveRoute(target.Route, object.Route)
	case target.Ingress != nil:
		return resolveIngress(target.Ingress, object.Ingress)
	case target.HTTPRoute != nil:
		return resolveHTTPRoute(target.HTTPRoute, object)
	}
	return Target{}, newNotFound("the spec names no target")
}

// newNotFound returns a failure with the reason TargetNotFound.
func newNotFound(format string, args ...any) *Failure {
	return &Failure{Reason: v1alpha1.ReasonTargetNotFound, Message: fmt.Sprintf(format, args...)}
}

// resolveService returns the URL of a Service, and its cluster IP if the IP can be trusted.
func resolveService(namespace string, want *v1alpha1.ServiceTarget, service *corev1.Service) (Target, *Failure) {
	if service == nil {
		return Target{}, newNotFound("there is no Service %s/%s", namespace, want.Name)
	}
	if !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == want.Port }) {
		return Target{}, newNotFound("the Service %s/%s has no port %d", namespace, want.Name, want.Port)
	}
	scheme := want.Scheme
	if scheme == "" {
		scheme = v1alpha1.ProbeHTTP
	}
	host := want.Name + "." + namespace + ".svc"
	target := Target{URL: fmt.Sprintf("%s://%s", scheme, formatHostPort(host, strconv.Itoa(int(want.Port))))}
	if scheme == v1alpha1.ProbeHTTP || scheme == v1alpha1.ProbeHTTPS {
		target.URL += normalizePath(want.Path)
	}
	// Services of the following kinds are resolved by name: a headless Service,
	// which has no address, and an ExternalName Service or a Service without a
	// selector, which must not be trusted because users write their endpoints.
	if address, err := netip.ParseAddr(service.Spec.ClusterIP); err == nil && len(service.Spec.Selector) > 0 &&
		service.Spec.Type != corev1.ServiceTypeExternalName {
		target.Address = address
	}
	return target, nil
}

// normalizePath returns the path, or / if it is empty.
func normalizePath(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// newWebTarget returns the target with an http or https URL.
func newWebTarget(tls bool, host, port, path string) Target {
	u := url.URL{Scheme: "http"}
	if tls {
		u.Scheme = "https"
	}
	u.Host = formatHostPort(host, port)
	return Target{URL: u.String() + normalizePath(path)}
}

func formatHostPort(host, port string) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == "" {
		return host
	}
	return host + ":" + port
}

// chooseHost returns the wanted host if the object publishes it, also with a wildcard such as *.example.com.
// If want is empty, it returns the first host that is not a wildcard. Otherwise it returns a failure.
func chooseHost(kind, name, want string, hosts []string) (string, *Failure) {
	if want != "" {
		for _, host := range hosts {
			suffix, wildcard := strings.CutPrefix(host, "*")
			if strings.EqualFold(host, want) || wildcard &&
				strings.HasSuffix(strings.ToLower(want), strings.ToLower(suffix)) {
				return want, nil
			}
		}
		return "", newNotFound("the %s %s does not publish the host %s", kind, name, want)
	}
	for _, host := range hosts {
		if host != "" && !strings.HasPrefix(host, "*") {
			return host, nil
		}
	}
	return "", newNotFound("the %s %s publishes no host", kind, name)
}

// resolveRoute returns the URL of an OpenShift Route. Its hosts are the host in its spec, and the hosts in its status.
func resolveRoute(want *v1alpha1.HostTarget, route map[string]any) (Target, *Failure) {
	if route == nil {
		return Target{}, newNotFound("there is no Route %s", want.Name)
	}
	var hosts []string
	if host, _, _ := unstructured.NestedString(route, "spec", "host"); host != "" {
		hosts = append(hosts, host)
	}
	host, failure := chooseHost("Route", want.Name, want.Host,
		append(hosts, listFields(route, "host", "status", "ingress")...))
	if failure != nil {
		return Target{}, failure
	}
	_, tls, _ := unstructured.NestedMap(route, "spec", "tls")
	path := want.Path
	if path == "" {
		path, _, _ = unstructured.NestedString(route, "spec", "path")
	}
	return newWebTarget(tls, host, "", path), nil
}

// listFields returns a text field of each object of a list.
func listFields(object map[string]any, field string, list ...string) []string {
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

// resolveIngress returns the URL of an Ingress.
func resolveIngress(want *v1alpha1.HostTarget, ingress *networkingv1.Ingress) (Target, *Failure) {
	if ingress == nil {
		return Target{}, newNotFound("there is no Ingress %s", want.Name)
	}
	var hosts []string
	for _, rule := range ingress.Spec.Rules {
		hosts = append(hosts, rule.Host)
	}
	if !slices.ContainsFunc(hosts, func(h string) bool { return h != "" }) {
		// The Ingress accepts any host: use its load balancer's address.
		for _, address := range ingress.Status.LoadBalancer.Ingress {
			hosts = append(hosts, address.Hostname, address.IP)
		}
	}
	host, failure := chooseHost("Ingress", want.Name, want.Host, hosts)
	if failure != nil {
		return Target{}, failure
	}
	tls := slices.ContainsFunc(ingress.Spec.TLS, func(t networkingv1.IngressTLS) bool {
		_, mismatch := chooseHost("", "", host, t.Hosts)
		return len(t.Hosts) == 0 || mismatch == nil
	})
	path := want.Path
	if path == "" {
		path = findIngressPath(ingress, host)
	}
	return newWebTarget(tls, host, "", path), nil
}

// findIngressPath returns the first path of an Ingress for a host, if it is a literal path, or an empty string.
func findIngressPath(ingress *networkingv1.Ingress, host string) string {
	for _, rule := range ingress.Spec.Rules {
		isLiteral := func(p networkingv1.HTTPIngressPath) bool {
			return p.PathType == nil || *p.PathType != networkingv1.PathTypeImplementationSpecific
		}
		if rule.HTTP != nil && (rule.Host == host || rule.Host == "") && len(rule.HTTP.Paths) > 0 &&
			isLiteral(rule.HTTP.Paths[0]) {
			return rule.HTTP.Paths[0].Path
		}
	}
	return ""
}

// resolveHTTPRoute returns the URL of an HTTPRoute.
func resolveHTTPRoute(want *v1alpha1.HostTarget, object Object) (Target, *Failure) {
	if object.HTTPRoute == nil {
		return Target{}, newNotFound("there is no HTTPRoute %s", want.Name)
	}
	hosts, _, _ := unstructured.NestedStringSlice(object.HTTPRoute, "spec", "hostnames")
	if len(hosts) == 0 {
		hosts = append(listFields(object.Gateway, "hostname", "spec", "listeners"),
			listFields(object.Gateway, "value", "status", "addresses")...)
	}
	host, failure := chooseHost("HTTPRoute", want.Name, want.Host, hosts)
	if failure != nil {
		return Target{}, failure
	}
	tls, port := findListener(object.Gateway, host, findSectionName(object.HTTPRoute))
	return newWebTarget(tls, host, port, normalizePath(want.Path)), nil
}

// findSectionName returns the section of the Gateway that an HTTPRoute
// names for its first parent. It is empty if the route names none.
func findSectionName(route map[string]any) string {
	for _, name := range listFields(route, "sectionName", "spec", "parentRefs") {
		return name
	}
	return ""
}

// findListener returns how a Gateway serves a host: by the first listener with TLS
// that accepts the host, otherwise by the first listener without TLS. The port is
// empty if it is the scheme's default, or if no listener accepts the host.
func findListener(gateway map[string]any, host, section string) (tls bool, port string) {
	listeners, _, _ := unstructured.NestedSlice(gateway, "spec", "listeners")
	for _, protocol := range []string{"HTTPS", "HTTP"} {
		for _, item := range listeners {
			fields, _ := item.(map[string]any)
			if fields["protocol"] != protocol || !canAcceptHost(fields, host, section) {
				continue
			}
			number, _, _ := unstructured.NestedInt64(fields, "port")
			return protocol == "HTTPS", formatPort(protocol, number)
		}
	}
	return false, ""
}

// canAcceptHost reports whether a listener serves a host for a route that names a section of its Gateway, or none.
func canAcceptHost(listener map[string]any, host, section string) bool {
	if section != "" && listener["name"] != section {
		return false
	}
	hostname, _ := listener["hostname"].(string)
	if hostname == "" {
		return true
	}
	_, mismatch := chooseHost("", "", host, []string{hostname})
	return mismatch == nil
}

// formatPort returns the port, or an empty string for the default port of the protocol.
func formatPort(protocol string, port int64) string {
	if protocol == "HTTPS" && port == 443 || protocol == "HTTP" && port == 80 {
		return ""
	}
	return strconv.FormatInt(port, 10)
}
