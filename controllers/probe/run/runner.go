// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/blackbox_exporter/config"
	"github.com/prometheus/blackbox_exporter/prober"
	"github.com/prometheus/client_golang/prometheus"
	pconfig "github.com/prometheus/common/config"

	"github.com/bellwether-dev/bellwether/alerts/probes"
	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// runner runs single probes. It is safe for concurrent use.
type runner struct {
	addresses addressResolver
	proxy     *socksProxy
}

// newRunner returns a runner. Its proxy starts with the first HTTP probe.
func newRunner(addresses addressResolver) *runner {
	return &runner{addresses: addresses, proxy: &socksProxy{addresses: addresses}}
}

// result is the result of a run.
type result struct {
	samples []sample
	// steps is the maximum cost of the probe's expressions.
	steps int
	// failure is nil after a success.
	failure *probes.Failure
}

// run runs one probe against its target. ctx must have a deadline. The result has a failure if
// the probe cannot be run, fails, or takes longer than spec.maxDuration.
func (r *runner) run(ctx context.Context, p *Probe, target probes.Target) result {
	module, err1 := compile(p.Spec)
	u, err2 := url.Parse(target.URL)
	if err := errors.Join(err1, err2); err != nil {
		return result{failure: &probes.Failure{Reason: v1alpha1.ReasonInvalidSpec, Message: err.Error()}}
	}
	if failure := addCredentials(&module, target.Credentials); failure != nil {
		return result{failure: failure}
	}
	startedAt := time.Now()
	var out result
	switch u.Scheme {
	case "http", "https":
		out = r.runHTTP(ctx, p, module, u, target.Address)
	default:
		out = r.runOther(ctx, p, module, u, target.Address)
	}
	duration := time.Since(startedAt)
	if limit := p.Spec.MaxDuration; out.failure == nil && limit != nil && duration > limit.Duration {
		out.failure = &probes.Failure{Reason: v1alpha1.ReasonTooSlow, Message: fmt.Sprintf(
			"the probe took %s, longer than spec.maxDuration (%s)", duration.Round(time.Millisecond), limit.Duration)}
	}
	success := 0.0
	if out.failure == nil {
		success = 1
	} else {
		out.failure.Message = target.Credentials.Redact(out.failure.Message)
	}
	out.samples = append(out.samples,
		sample{series: series.ProbeSuccess, value: success},
		sample{series: series.ProbeDuration, value: duration.Seconds()})
	return out
}

// runHTTP runs an HTTP probe through the proxy. If the answer is compressed with gzip, the
// request is sent again with decompression.
func (r *runner) runHTTP(ctx context.Context, p *Probe, module config.Module, u *url.URL, pinned netip.Addr) result {
	s := &session{ctx: ctx, allowPrivate: p.Spec.AllowPrivate, host: u.Hostname(), pinned: pinned,
		cost: p.cost}
	proxyURL, closeSession, err := r.proxy.openSession(s)
	if err != nil {
		return result{failure: &probes.Failure{Reason: v1alpha1.ReasonConnectFailed, Message: err.Error()}}
	}
	defer closeSession()
	module.HTTP.HTTPClientConfig.ProxyURL = pconfig.URL{URL: proxyURL}
	registry, logged := prometheus.NewRegistry(), &errorLog{}
	success := prober.ProbeHTTP(ctx, u.String(), refuseCompressed(module), registry, slog.New(logged))
	if logged.encoding == encodingGzip && canRepeat(&module.HTTP) {
		module.HTTP.Compression = "gzip"
		registry, logged = prometheus.NewRegistry(), &errorLog{}
		success = prober.ProbeHTTP(ctx, u.String(), module, registry, slog.New(logged))
	}
	samples, facts := gatherSamples(registry)
	if module.HTTP.Compression != "" {
		s.addReceived(int64(facts.bodyBytes)) // the decompressed body is larger than the received bytes
	}
	lookup, connect, address, proxyErr := s.outcome()
	samples = setProxyTimes(samples, lookup, connect, address)
	out := result{samples: samples, steps: s.countSteps() + countJSONSteps(&module)}
	switch {
	case success:
		return out
	case logged.encoding != encodingNone:
		out.failure = newCompressedFailure(logged.encoding)
		return out
	}
	logged.override(proxyErr) // the prober received only a refusal or a closed connection
	facts.codes = module.HTTP.ValidStatusCodes
	out.failure = explainFailure(ctx, logged, facts)
	return out
}

// setProxyTimes replaces the times for lookup and connect by the times of the proxy, because the
// prober measured only its connection to the proxy. It appends the samples about the address.
func setProxyTimes(samples []sample, lookup, connect time.Duration, address netip.Addr) []sample {
	for i, s := range samples {
		switch {
		case s.series == series.ProbeHTTPDuration && s.labelValue == "resolve":
			samples[i].value = lookup.Seconds()
		case s.series == series.ProbeHTTPDuration && s.labelValue == "connect":
			samples[i].value = connect.Seconds()
		}
	}
	return append(samples, newAddressSamples(lookup, address)...)
}

// newAddressSamples returns the samples about the lookup and the IP version of an address. The
// version is 0 if the address is not valid.
func newAddressSamples(lookup time.Duration, address netip.Addr) []sample {
	protocol := 0.0
	switch {
	case address.Is4():
		protocol = 4
	case address.Is6():
		protocol = 6
	}
	return []sample{
		{series: series.ProbeDNSLookupTime, value: lookup.Seconds()},
		{series: series.ProbeIPProtocol, value: protocol},
	}
}

// runOther runs probes other than HTTP. It looks up the host itself, so that the prober connects
// to the address that was checked.
func (r *runner) runOther(ctx context.Context, p *Probe, module config.Module, u *url.URL, pinned netip.Addr) result {
	startedAt, address := time.Now(), pinned
	var err error
	if address.IsValid() {
		err = r.addresses.checkAddress(u.Hostname(), address, p.Spec.AllowPrivate, true)
	} else {
		address, err = r.addresses.resolve(ctx, u.Hostname(), p.Spec.AllowPrivate)
	}
	if err != nil {
		logged := &errorLog{}
		logged.override(err)
		return result{failure: explainFailure(ctx, logged, facts{})}
	}
	lookup := time.Since(startedAt)
	for _, tls := range []*pconfig.TLSConfig{&module.TCP.TLSConfig, &module.DNS.TLSConfig, &module.GRPC.TLSConfig} {
		tls.ServerName = cmp.Or(tls.ServerName, u.Hostname())
	}
	hostPort := net.JoinHostPort(address.String(), cmp.Or(u.Port(), getDefaultPort(u.Scheme, p.Spec.TLS != nil)))
	registry, logged := prometheus.NewRegistry(), &errorLog{}
	success, s := false, &session{ctx: ctx, cost: p.cost}
	switch u.Scheme {
	case "tcp":
		success = r.runTCP(s, module, hostPort, registry, logged)
	case "grpc":
		success = checkHealth(ctx, hostPort, module.GRPC, registry, logged)
	case "dns":
		s.received = maxDNSAnswer // the received bytes are not counted, so the most is assumed
		success = prober.ProbeDNS(ctx, hostPort, module, registry, slog.New(logged))
	default:
		logged.override(fmt.Errorf("%w: scheme %q is not supported: use http, https, tcp, grpc or dns", errSpec,
			u.Scheme))
	}
	samples, facts := gatherSamples(registry)
	out := result{samples: replaceAddressSamples(samples, lookup, address), steps: s.countSteps()}
	if _, _, _, tooLarge := s.outcome(); facts.regexFailed {
		// A limited answer might lack the text that matches.
		logged.override(tooLarge)
	}
	if !success {
		out.failure = explainFailure(ctx, logged, facts)
	}
	return out
}

// runTCP runs a TCP probe over a relay that limits the received bytes, because the prober
// matches each line until its deadline.
func (r *runner) runTCP(s *session, module config.Module, hostPort string, registry *prometheus.Registry,
	logged *errorLog) bool {
	server, err := r.proxy.dialer.DialContext(s.ctx, "tcp", hostPort)
	if err != nil {
		logged.override(err)
		return false
	}
	address, stop, err := startRelay(s, server)
	if err != nil {
		_ = server.Close()
		logged.override(err)
		return false
	}
	defer stop()
	return prober.ProbeTCP(s.ctx, address, module, registry, slog.New(logged))
}

// replaceAddressSamples replaces the prober's samples about the lookup, because the prober
// received an address and not a name.
func replaceAddressSamples(samples []sample, lookup time.Duration, address netip.Addr) []sample {
	remaining := samples[:0]
	for _, s := range samples {
		if s.series != series.ProbeDNSLookupTime && s.series != series.ProbeIPProtocol {
			remaining = append(remaining, s)
		}
	}
	return append(remaining, newAddressSamples(lookup, address)...)
}

// maxDNSAnswer is the size of the largest answer of a DNS server.
const maxDNSAnswer = 64 << 10

// getDefaultPort returns the port of a scheme for a URL without a port.
func getDefaultPort(scheme string, tls bool) string {
	switch {
	case scheme == "dns" && tls:
		return "853"
	case scheme == "dns":
		return "53"
	case tls:
		return "443"
	}
	return "80"
}

// errorLog stores the first error that the prober logs. The prober
// reports errors only in its log.
type errorLog struct {
	message string
	err     error
	// encoding is the compression because of which the answer was refused before it was matched.
	encoding encoding
}

// override sets an error that takes precedence over the logged error. It does nothing for nil.
func (l *errorLog) override(err error) {
	if err != nil {
		l.message, l.err = "", err
	}
}

// hasError reports whether an error was logged or set.
func (l *errorLog) hasError() bool { return l.message != "" || l.err != nil }

// Enabled implements slog.Handler.
func (l *errorLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }

// Handle implements slog.Handler. The first message is the cause.
func (l *errorLog) Handle(_ context.Context, r slog.Record) error {
	if l.hasError() {
		return nil
	}
	l.message, l.encoding = r.Message, readEncoding(r)
	r.Attrs(func(attr slog.Attr) bool {
		if attr.Key != "err" {
			return true
		}
		if err, ok := attr.Value.Any().(error); ok {
			l.err = err
		} else if text := attr.Value.String(); text != "" {
			l.message += ": " + text
		}
		return true
	})
	return nil
}

// WithAttrs implements slog.Handler.
func (l *errorLog) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler.
func (l *errorLog) WithGroup(string) slog.Handler { return l }

// text returns the error as a message: the logged message in lower case, and the error's text.
func (l *errorLog) text() string {
	switch {
	case l.err == nil:
		return strings.ToLower(l.message)
	case l.message == "":
		return l.err.Error()
	}
	return strings.ToLower(l.message) + ": " + l.err.Error()
}
