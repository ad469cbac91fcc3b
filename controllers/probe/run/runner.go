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

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/probe/plan"
)

// runner runs single probes. It can be used by any number of goroutines.
type runner struct {
	addresses addressResolver
	proxy     *socksProxy
}

func newRunner(g addressResolver) *runner {
	return &runner{addresses: g, proxy: &socksProxy{addresses: g}}
}

// result is the result of a run.
type result struct {
	samples []sample
	// steps are those of its expressions, at most.
	steps int
	// failure is nil after a success.
	failure *plan.Failure
}

// run runs one probe. ctx must have a deadline.
func (r *runner) run(ctx context.Context, p *Probe, target plan.Target) result {
	module, err1 := compile(p.Spec)
	u, err2 := url.Parse(target.URL)
	if err := errors.Join(err1, err2); err != nil {
		return result{failure: &plan.Failure{Reason: v1alpha1.ReasonInvalidSpec, Message: err.Error()}}
	}
	if failure := addCredentials(&module, target.Credentials); failure != nil {
		return result{failure: failure}
	}
	begin := time.Now()
	var out result
	switch u.Scheme {
	case "http", "https":
		out = r.runHTTP(ctx, p, module, u, target.Address)
	default:
		out = r.runOther(ctx, p, module, u, target.Address)
	}
	took := time.Since(begin)
	if limit := p.Spec.MaxDuration; out.failure == nil && limit != nil && took > limit.Duration {
		out.failure = &plan.Failure{Reason: v1alpha1.ReasonTooSlow, Message: fmt.Sprintf(
			"the probe took %s, longer than spec.maxDuration (%s)", took.Round(time.Millisecond), limit.Duration)}
	}
	success := 0.0
	if out.failure == nil {
		success = 1
	} else {
		out.failure.Message = target.Credentials.Redact(out.failure.Message)
	}
	out.samples = append(out.samples,
		sample{series: series.ProbeSuccess, value: success},
		sample{series: series.ProbeDuration, value: took.Seconds()})
	return out
}

func (r *runner) runHTTP(ctx context.Context, p *Probe, module config.Module, u *url.URL, pinned netip.Addr) result {
	s := &session{ctx: ctx, allowPrivate: p.Spec.AllowPrivate, host: u.Hostname(), pinned: pinned,
		cost: p.cost}
	proxyURL, closeSession, err := r.proxy.openSession(s)
	if err != nil {
		return result{failure: &plan.Failure{Reason: v1alpha1.ReasonConnectFailed, Message: err.Error()}}
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
	samples, facts := gather(registry)
	if module.HTTP.Compression != "" {
		s.addReceived(int64(facts.bodyBytes)) // what is matched is more than what was sent
	}
	lookup, connect, address, blocked := s.outcome()
	samples = setProxyTimes(samples, lookup, connect, address)
	out := result{samples: samples, steps: s.steps() + jsonSteps(&module)}
	switch {
	case success:
		return out
	case logged.encoding != encodingNone:
		out.failure = compressedFailure(logged.encoding)
		return out
	}
	logged.override(blocked)
	facts.codes = module.HTTP.ValidStatusCodes
	out.failure = explainFailure(ctx, logged, facts)
	return out
}

// setProxyTimes sets what only the proxy knows, because the prober saw only its
// connection to the proxy.
func setProxyTimes(samples []sample, lookup, connect time.Duration, address netip.Addr) []sample {
	for i, s := range samples {
		switch {
		case s.series == series.ProbeHTTPDuration && s.label == "resolve":
			samples[i].value = lookup.Seconds()
		case s.series == series.ProbeHTTPDuration && s.label == "connect":
			samples[i].value = connect.Seconds()
		}
	}
	return append(samples, addressSamples(lookup, address)...)
}

func addressSamples(lookup time.Duration, address netip.Addr) []sample {
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

// runOther runs probes other than HTTP. It looks up the host itself, so that
// the prober connects to the address that was checked.
func (r *runner) runOther(ctx context.Context, p *Probe, module config.Module, u *url.URL, pinned netip.Addr) result {
	begin, address := time.Now(), pinned
	var err error
	if address.IsValid() {
		err = r.addresses.permit(u.Hostname(), address, p.Spec.AllowPrivate, true)
	} else {
		address, err = r.addresses.resolve(ctx, u.Hostname(), p.Spec.AllowPrivate)
	}
	if err != nil {
		logged := &errorLog{}
		logged.override(err)
		return result{failure: explainFailure(ctx, logged, facts{})}
	}
	lookup := time.Since(begin)
	for _, tls := range []*pconfig.TLSConfig{&module.TCP.TLSConfig, &module.DNS.TLSConfig, &module.GRPC.TLSConfig} {
		tls.ServerName = cmp.Or(tls.ServerName, u.Hostname())
	}
	hostPort := net.JoinHostPort(address.String(), cmp.Or(u.Port(), defaultPort(u.Scheme, p.Spec.TLS != nil)))
	registry, logged := prometheus.NewRegistry(), &errorLog{}
	success, s := false, &session{ctx: ctx, cost: p.cost}
	switch u.Scheme {
	case "tcp":
		success = r.runTCP(s, module, hostPort, registry, logged)
	case "grpc":
		success = checkHealth(ctx, hostPort, module.GRPC, registry, logged)
	case "dns":
		s.received = maxDNS
		success = prober.ProbeDNS(ctx, hostPort, module, registry, slog.New(logged))
	default:
		logged.override(fmt.Errorf("%w: scheme %q is not supported: use http, https, tcp, grpc or dns", errSpec,
			u.Scheme))
	}
	samples, facts := gather(registry)
	out := result{samples: replaceAddressSamples(samples, lookup, address), steps: s.steps()}
	if _, _, _, tooLarge := s.outcome(); facts.regexFailed {
		logged.override(tooLarge) // the line that matches may have been cut off
	}
	if !success {
		out.failure = explainFailure(ctx, logged, facts)
	}
	return out
}

// runTCP runs a TCP probe over a relay, which bounds what is read: the prober matches each line until its deadline.
func (r *runner) runTCP(s *session, module config.Module, hostPort string, registry *prometheus.Registry,
	logged *errorLog) bool {
	server, err := r.proxy.dialer.DialContext(s.ctx, "tcp", hostPort)
	if err != nil {
		logged.override(err)
		return false
	}
	address, stop, err := relay(s, server)
	if err != nil {
		_ = server.Close()
		logged.override(err)
		return false
	}
	defer stop()
	return prober.ProbeTCP(s.ctx, address, module, registry, slog.New(logged))
}

// replaceAddressSamples replaces the prober's samples about its lookup, which
// was of an address.
func replaceAddressSamples(samples []sample, lookup time.Duration, address netip.Addr) []sample {
	kept := samples[:0]
	for _, s := range samples {
		if s.series != series.ProbeDNSLookupTime && s.series != series.ProbeIPProtocol {
			kept = append(kept, s)
		}
	}
	return append(kept, addressSamples(lookup, address)...)
}

// maxDNS is the largest answer of a DNS server.
const maxDNS = 64 << 10

func defaultPort(scheme string, tls bool) string {
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

// errorLog keeps the first error that the prober logs. The prober reports
// errors to its log only.
type errorLog struct {
	message string
	err     error
	// encoding is what the answer was refused for, before it was matched.
	encoding encoding
}

// override sets an error that takes precedence over what the prober logged.
func (l *errorLog) override(err error) {
	if err != nil {
		l.message, l.err = "", err
	}
}

func (l *errorLog) hasError() bool { return l.message != "" || l.err != nil }

// Enabled implements slog.Handler.
func (l *errorLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }

// Handle implements slog.Handler. The first message is the cause.
func (l *errorLog) Handle(_ context.Context, r slog.Record) error {
	if l.hasError() {
		return nil
	}
	l.message, l.encoding = r.Message, encodingOf(r)
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

// text returns the logged error as a message.
func (l *errorLog) text() string {
	switch {
	case l.err == nil:
		return strings.ToLower(l.message)
	case l.message == "":
		return l.err.Error()
	}
	return strings.ToLower(l.message) + ": " + l.err.Error()
}
