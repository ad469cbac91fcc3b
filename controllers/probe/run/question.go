// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/alecthomas/units"
	"github.com/prometheus/blackbox_exporter/config"
	pconfig "github.com/prometheus/common/config"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/probe/plan"
)

// errSpec says that a probe's spec cannot be used, though the API server took it.
var errSpec = errors.New("unusable spec")

// preferred is asked first; the other version of IP is the fall-back.
const preferred = "ip4"

// compile makes a module of blackbox_exporter of a spec. Its error wraps errSpec
// and names the field.
func compile(spec v1alpha1.EndpointProbeSpec) (config.Module, error) {
	if plan.Length(spec.Interval, plan.DefaultInterval) <= 0 || plan.Length(spec.Timeout, plan.DefaultTimeout) <= 0 {
		return config.Module{}, fmt.Errorf("%w: spec.interval and spec.timeout must be longer than nothing", errSpec)
	}
	tls, err := compileTLS(spec.TLS)
	if err != nil {
		return config.Module{}, err
	}
	module := config.DefaultModule
	if module.HTTP, err = compileHTTP(spec.HTTP, tls); err != nil {
		return config.Module{}, err
	}
	if module.TCP, err = compileTCP(spec.TCP); err != nil {
		return config.Module{}, err
	}
	if module.DNS, err = compileDNS(spec.DNS); err != nil {
		return config.Module{}, err
	}
	module.GRPC = config.GRPCProbe{IPProtocolFallback: true, PreferredIPProtocol: preferred}
	if spec.GRPC != nil {
		module.GRPC.Service = spec.GRPC.Service
	}
	module.TCP.TLSConfig, module.DNS.TLSConfig, module.GRPC.TLSConfig = tls, tls, tls
	module.TCP.TLS, module.DNS.DNSOverTLS, module.GRPC.TLS = spec.TLS != nil, spec.TLS != nil, spec.TLS != nil
	if spec.TLS != nil && spec.DNS != nil && module.DNS.TransportProtocol != "tcp" {
		return config.Module{}, fmt.Errorf("%w: spec.dns.transport must be tcp where spec.tls is given", errSpec)
	}
	return module, scheme(spec)
}

// scheme checks that what is asked suits the target.
func scheme(spec v1alpha1.EndpointProbeSpec) error {
	of := string(v1alpha1.ProbeHTTP) // whatever publishes a host name
	if spec.Target.URL != "" {
		of, _, _ = strings.Cut(spec.Target.URL, "://")
	}
	if spec.Target.Service != nil {
		of = cmp.Or(string(spec.Target.Service.Scheme), of)
	}
	of = strings.TrimSuffix(of, "s")
	if of == "dn" {
		of = "dns"
	}
	for name, given := range map[string]bool{"http": spec.HTTP != nil, "tcp": spec.TCP != nil, "grpc": spec.GRPC != nil,
		"dns": spec.DNS != nil} {
		if given && of != name {
			return fmt.Errorf("%w: spec.%s does not suit a target with the scheme %s", errSpec, name, of)
		}
	}
	if of == "dns" && spec.DNS == nil {
		return fmt.Errorf("%w: a target with the scheme dns needs spec.dns.query", errSpec)
	}
	return nil
}

func compileTLS(spec *v1alpha1.ProbeTLS) (pconfig.TLSConfig, error) {
	if spec == nil {
		return pconfig.TLSConfig{}, nil
	}
	tls := pconfig.TLSConfig{CA: spec.CA, ServerName: spec.ServerName, InsecureSkipVerify: spec.InsecureSkipVerify}
	if _, err := pconfig.NewTLSConfig(&tls); err != nil {
		return tls, fmt.Errorf("%w: spec.tls: %w", errSpec, err)
	}
	return tls, nil
}

func compileHTTP(spec *v1alpha1.HTTPProbe, tls pconfig.TLSConfig) (config.HTTPProbe, error) {
	out := config.DefaultHTTPProbe
	out.IPProtocol, out.BodySizeLimit = preferred, units.Base2Bytes(maxBody)
	// The relay looks names up. HTTP/2 would let a few bytes of headers become
	// megabytes; one request needs none of it.
	out.SkipResolvePhaseWithProxy, out.HTTPClientConfig.EnableHTTP2 = true, false
	out.HTTPClientConfig.TLSConfig = tls
	out.Headers = map[string]string{"User-Agent": "bellwether-probe"}
	if spec == nil {
		return out, nil
	}
	for name, value := range spec.Headers {
		out.Headers[name] = value
	}
	out.Method, out.Body = spec.Method, spec.Body
	out.HTTPClientConfig.FollowRedirects = spec.FollowRedirects == nil || *spec.FollowRedirects
	for _, status := range spec.Statuses {
		out.ValidStatusCodes = append(out.ValidStatusCodes, int(status))
	}
	var err error
	if out.FailIfBodyNotMatchesRegexp, err = expressions("spec.http.matches", spec.Matches...); err != nil {
		return out, err
	}
	out.FailIfBodyMatchesRegexp, err = expressions("spec.http.notMatches", spec.NotMatches...)
	return out, err
}

func expressions(field string, texts ...string) ([]config.Regexp, error) {
	var out []config.Regexp
	for _, text := range texts {
		compiled, err := config.NewRegexp(text)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", errSpec, field, err)
		}
		out = append(out, compiled)
	}
	return out, nil
}

func compileTCP(spec *v1alpha1.TCPProbe) (config.TCPProbe, error) {
	out := config.DefaultTCPProbe
	out.IPProtocol = preferred
	if spec == nil {
		return out, nil
	}
	if spec.Send != "" {
		out.QueryResponse = append(out.QueryResponse, config.QueryResponse{Send: spec.Send})
	}
	if spec.Expect != "" {
		expect, err := expressions("spec.tcp.expect", spec.Expect)
		if err != nil {
			return out, err
		}
		out.QueryResponse = append(out.QueryResponse, config.QueryResponse{Expect: expect[0]})
	}
	return out, nil
}

func compileDNS(spec *v1alpha1.DNSProbe) (config.DNSProbe, error) {
	out := config.DefaultDNSProbe
	out.IPProtocol = preferred
	if spec == nil {
		return out, nil
	}
	out.QueryName, out.QueryType, out.TransportProtocol = spec.Query, cmp.Or(spec.Type, "A"),
		cmp.Or(spec.Transport, "udp")
	if spec.Matches != "" {
		if _, err := regexp.Compile(spec.Matches); err != nil {
			return out, fmt.Errorf("%w: spec.dns.matches: %w", errSpec, err)
		}
		out.ValidateAnswer.FailIfNoneMatchesRegexp = []string{spec.Matches}
	}
	return out, nil
}
