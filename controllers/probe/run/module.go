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

	"github.com/bellwether-dev/bellwether/alerts/probes"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// errSpec means that the API server accepted a spec that cannot be used.
var errSpec = errors.New("unusable spec")

// preferredProtocol is the version of IP that is tried first.
const preferredProtocol = "ip4"

// compile returns the module of blackbox_exporter for a spec. The error wraps
// errSpec and names the field.
func compile(spec v1alpha1.EndpointProbeSpec) (config.Module, error) {
	if probes.DurationOr(spec.Interval, probes.DefaultInterval) <= 0 ||
		probes.DurationOr(spec.Timeout, probes.DefaultTimeout) <= 0 {
		return config.Module{}, fmt.Errorf("%w: spec.interval and spec.timeout must be greater than 0", errSpec)
	}
	tls, err := compileTLS(spec.TLS)
	if err != nil {
		return config.Module{}, err
	}
	// The cost is checked before anything is compiled.
	limits, err := computeCost(spec)
	if err != nil {
		return config.Module{}, err
	}
	module := config.DefaultModule
	if module.HTTP, err = compileHTTP(spec.HTTP, tls, limits.bodyLimit); err != nil {
		return config.Module{}, err
	}
	if module.TCP, err = compileTCP(spec.TCP); err != nil {
		return config.Module{}, err
	}
	if module.DNS, err = compileDNS(spec.DNS); err != nil {
		return config.Module{}, err
	}
	module.GRPC = config.GRPCProbe{IPProtocolFallback: true, PreferredIPProtocol: preferredProtocol}
	if spec.GRPC != nil {
		module.GRPC.Service = spec.GRPC.Service
	}
	module.TCP.TLSConfig, module.DNS.TLSConfig, module.GRPC.TLSConfig = tls, tls, tls
	module.TCP.TLS, module.DNS.DNSOverTLS, module.GRPC.TLS = spec.TLS != nil, spec.TLS != nil, spec.TLS != nil
	if spec.TLS != nil && spec.DNS != nil && module.DNS.TransportProtocol != "tcp" {
		return config.Module{}, fmt.Errorf("%w: spec.dns.transport must be tcp where spec.tls is given", errSpec)
	}
	return module, checkScheme(spec)
}

// checkScheme returns an error unless the protocol section of the spec matches
// the scheme of the target.
func checkScheme(spec v1alpha1.EndpointProbeSpec) error {
	scheme := string(v1alpha1.ProbeHTTP) // Routes, Ingresses and HTTPRoutes
	if spec.Target.URL != "" {
		scheme, _, _ = strings.Cut(spec.Target.URL, "://")
	}
	if spec.Target.Service != nil {
		scheme = cmp.Or(string(spec.Target.Service.Scheme), scheme)
	}
	scheme = strings.TrimSuffix(scheme, "s") // https is HTTP with TLS
	if scheme == "dn" {                      // the s of dns is part of its name
		scheme = "dns"
	}
	for name, given := range map[string]bool{"http": spec.HTTP != nil, "tcp": spec.TCP != nil, "grpc": spec.GRPC != nil,
		"dns": spec.DNS != nil} {
		if given && scheme != name {
			return fmt.Errorf("%w: spec.%s cannot be used with a target with the scheme %s", errSpec, name, scheme)
		}
	}
	if scheme == "dns" && spec.DNS == nil {
		return fmt.Errorf("%w: a target with the scheme dns needs spec.dns.query", errSpec)
	}
	return nil
}

// compileTLS returns the TLS configuration of a spec; an empty configuration if spec is nil.
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

// compileHTTP returns the HTTP probe of a spec. body limits the bytes that are
// read of an answer's body.
func compileHTTP(spec *v1alpha1.HTTPProbe, tls pconfig.TLSConfig, bodyLimit int) (config.HTTPProbe, error) {
	out := config.DefaultHTTPProbe
	out.IPProtocol, out.BodySizeLimit = preferredProtocol, units.Base2Bytes(bodyLimit)
	// The proxy looks up names. HTTP/2 is disabled: a single request does not need it, and a few
	// bytes of compressed headers could become megabytes.
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
	return out, compileMatchers(spec, &out)
}

// compileMatchers adds the expressions for the body and the headers to the probe.
func compileMatchers(spec *v1alpha1.HTTPProbe, out *config.HTTPProbe) error {
	var err error
	if out.FailIfBodyNotMatchesRegexp, err = compileRegexps("spec.http.matches", spec.Matches...); err != nil {
		return err
	}
	if out.FailIfBodyMatchesRegexp, err = compileRegexps("spec.http.notMatches", spec.NotMatches...); err != nil {
		return err
	}
	out.FailIfHeaderNotMatchesRegexp, err = compileHeaders("spec.http.headerMatches", spec.HeaderMatches, false)
	if err != nil {
		return err
	}
	out.FailIfHeaderMatchesRegexp, err = compileHeaders("spec.http.headerNotMatches", spec.HeaderNotMatches, true)
	if err != nil {
		return err
	}
	out.FailIfBodyJsonNotMatchesCEL, err = compileJSON(spec.JSON)
	return err
}

// compileHeaders compiles the expressions for headers. allowMissing accepts an
// answer without the header.
func compileHeaders(field string, matches []v1alpha1.HeaderMatch, allowMissing bool) ([]config.HeaderMatch, error) {
	var out []config.HeaderMatch
	for _, m := range matches {
		compiled, err := compileRegexps(field, m.Regex)
		if err != nil {
			return nil, err
		}
		out = append(out, config.HeaderMatch{Header: m.Name, Regexp: compiled[0], AllowMissing: allowMissing})
	}
	return out, nil
}

// addCredentials adds credentials to a module; nil adds nothing. It returns a failure if the
// certificates cannot be used. A probe with private credentials follows no redirects, because the
// prober would send the headers to the other server.
func addCredentials(module *config.Module, c *probes.Credentials) *probes.Failure {
	if c == nil {
		return nil
	}
	for _, tls := range []*pconfig.TLSConfig{&module.HTTP.HTTPClientConfig.TLSConfig, &module.TCP.TLSConfig,
		&module.DNS.TLSConfig, &module.GRPC.TLSConfig} {
		tls.CA = cmp.Or(c.CA, tls.CA)
		tls.Cert, tls.Key = c.Certificate, pconfig.Secret(c.Key)
	}
	if _, err := pconfig.NewTLSConfig(&module.TCP.TLSConfig); err != nil {
		return &probes.Failure{Reason: v1alpha1.ReasonSecretUnavailable,
			Message: c.Redact(fmt.Sprintf("the certificates in the Secrets of spec.tls cannot be used: %v", err))}
	}
	for name, value := range c.Headers {
		module.HTTP.Headers[name] = value
	}
	if c.BearerToken != "" {
		module.HTTP.HTTPClientConfig.Authorization = &pconfig.Authorization{Type: "Bearer",
			Credentials: pconfig.Secret(c.BearerToken)}
	}
	if c.ArePrivate() {
		module.HTTP.HTTPClientConfig.FollowRedirects = false
	}
	return nil
}

// compileRegexps compiles the regular expressions of a field.
func compileRegexps(field string, texts ...string) ([]config.Regexp, error) {
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

// compileTCP returns the TCP probe of a spec.
func compileTCP(spec *v1alpha1.TCPProbe) (config.TCPProbe, error) {
	out := config.DefaultTCPProbe
	out.IPProtocol = preferredProtocol
	if spec == nil {
		return out, nil
	}
	if spec.Send != "" {
		out.QueryResponse = append(out.QueryResponse, config.QueryResponse{Send: spec.Send})
	}
	if spec.Expect != "" {
		expect, err := compileRegexps("spec.tcp.expect", spec.Expect)
		if err != nil {
			return out, err
		}
		out.QueryResponse = append(out.QueryResponse, config.QueryResponse{Expect: expect[0]})
	}
	return out, nil
}

// compileDNS returns the DNS probe of a spec.
func compileDNS(spec *v1alpha1.DNSProbe) (config.DNSProbe, error) {
	out := config.DefaultDNSProbe
	out.IPProtocol = preferredProtocol
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
