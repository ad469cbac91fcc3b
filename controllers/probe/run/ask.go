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

// asker runs one probe at a time, in any number of goroutines.
type asker struct {
	guard guard
	relay *relay
}

func newAsker(g guard) *asker { return &asker{guard: g, relay: &relay{guard: g}} }

// answer is what a run came to.
type answer struct {
	samples []sample
	// failure is nil after a success.
	failure *plan.Failure
}

// ask runs one probe until ctx ends, which must have a deadline.
func (a *asker) ask(ctx context.Context, p *Probe, target plan.Target) answer {
	module, err1 := compile(p.Spec)
	u, err2 := url.Parse(target.URL)
	if err := errors.Join(err1, err2); err != nil {
		return answer{failure: &plan.Failure{Reason: v1alpha1.ReasonInvalidSpec, Message: err.Error()}}
	}
	begin := time.Now()
	var out answer
	switch u.Scheme {
	case "http", "https":
		out = a.askHTTP(ctx, p, module, u, target.Address)
	default:
		out = a.askDirectly(ctx, p, module, u, target.Address)
	}
	success := 0.0
	if out.failure == nil {
		success = 1
	}
	out.samples = append(out.samples,
		sample{series: series.ProbeSuccess, value: success},
		sample{series: series.ProbeDuration, value: time.Since(begin).Seconds()})
	return out
}

func (a *asker) askHTTP(ctx context.Context, p *Probe, module config.Module, u *url.URL, pinned netip.Addr) answer {
	way := &passage{ctx: ctx, allowPrivate: p.Spec.AllowPrivate, host: u.Hostname(), pinned: pinned}
	proxy, closePassage, err := a.relay.open(way)
	if err != nil {
		return answer{failure: &plan.Failure{Reason: v1alpha1.ReasonConnectFailed, Message: err.Error()}}
	}
	defer closePassage()
	module.HTTP.HTTPClientConfig.ProxyURL = pconfig.URL{URL: proxy}
	registry, heard := prometheus.NewRegistry(), &listener{}
	success := prober.ProbeHTTP(ctx, u.String(), module, registry, slog.New(heard))
	samples, facts := gather(registry)
	lookup, connect, address, blocked := way.seen()
	samples = replaced(samples, lookup, connect, address)
	if success {
		return answer{samples: samples}
	}
	heard.first(blocked)
	facts.codes = module.HTTP.ValidStatusCodes
	return answer{samples: samples, failure: explain(ctx, heard, facts)}
}

// replaced sets what only the relay knows: the prober saw itself connect to the
// relay.
func replaced(samples []sample, lookup, connect time.Duration, address netip.Addr) []sample {
	for i, s := range samples {
		switch {
		case s.series == series.ProbeHTTPDuration && s.label == "resolve":
			samples[i].value = lookup.Seconds()
		case s.series == series.ProbeHTTPDuration && s.label == "connect":
			samples[i].value = connect.Seconds()
		}
	}
	return append(samples, ofAddress(lookup, address)...)
}

func ofAddress(lookup time.Duration, address netip.Addr) []sample {
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

// askDirectly looks the host up itself, so that what was looked up is what the
// prober connects to.
func (a *asker) askDirectly(ctx context.Context, p *Probe, module config.Module, u *url.URL, pinned netip.Addr) answer {
	begin, address := time.Now(), pinned
	if !address.IsValid() {
		var err error
		if address, err = a.guard.address(ctx, u.Hostname(), p.Spec.AllowPrivate); err != nil {
			heard := &listener{}
			heard.first(err)
			return answer{failure: explain(ctx, heard, facts{})}
		}
	}
	lookup := time.Since(begin)
	for _, tls := range []*pconfig.TLSConfig{&module.TCP.TLSConfig, &module.DNS.TLSConfig, &module.GRPC.TLSConfig} {
		tls.ServerName = cmp.Or(tls.ServerName, u.Hostname())
	}
	to := net.JoinHostPort(address.String(), cmp.Or(u.Port(), standardPort(u.Scheme, p.Spec.TLS != nil)))
	registry, heard := prometheus.NewRegistry(), &listener{}
	success := false
	switch u.Scheme {
	case "tcp":
		success = prober.ProbeTCP(ctx, to, module, registry, slog.New(heard))
	case "grpc":
		success = checkHealth(ctx, to, module.GRPC, registry, heard)
	case "dns":
		success = prober.ProbeDNS(ctx, to, module, registry, slog.New(heard))
	default:
		heard.first(fmt.Errorf("%w: the scheme %s is not one of http, https, tcp, grpc and dns", errSpec, u.Scheme))
	}
	samples, facts := gather(registry)
	out := answer{samples: withAddress(samples, lookup, address)}
	if !success {
		out.failure = explain(ctx, heard, facts)
	}
	return out
}

// withAddress replaces what the prober says of an address that it was given.
func withAddress(samples []sample, lookup time.Duration, address netip.Addr) []sample {
	kept := samples[:0]
	for _, s := range samples {
		if s.series != series.ProbeDNSLookupTime && s.series != series.ProbeIPProtocol {
			kept = append(kept, s)
		}
	}
	return append(kept, ofAddress(lookup, address)...)
}

func standardPort(scheme string, tls bool) string {
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

// listener hears what the prober has to say: errors are told to its log alone.
type listener struct {
	message string
	err     error
}

// first sets an error that comes before all that the prober said.
func (l *listener) first(err error) {
	if err != nil {
		l.message, l.err = "", err
	}
}

func (l *listener) heard() bool { return l.message != "" || l.err != nil }

// Enabled implements slog.Handler.
func (l *listener) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }

// Handle implements slog.Handler. What was said first is the cause.
func (l *listener) Handle(_ context.Context, r slog.Record) error {
	if l.heard() {
		return nil
	}
	l.message = r.Message
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
func (l *listener) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler.
func (l *listener) WithGroup(string) slog.Handler { return l }

// say is what was heard as a sentence for a person.
func (l *listener) say() string {
	switch {
	case l.err == nil:
		return strings.ToLower(l.message)
	case l.message == "":
		return l.err.Error()
	}
	return strings.ToLower(l.message) + ": " + l.err.Error()
}
