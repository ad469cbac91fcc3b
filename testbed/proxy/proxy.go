// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxy puts a TCP proxy between two programs of a testbed, which makes the connection slow, or cuts it, on
// request.
//
// It knows nothing of what passes through it.
package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/bellwether-dev/bellwether/testbed/loopback"
)

// Proxy listens on loopback and passes everything on to another address. At first it disturbs nothing.
type Proxy struct {
	proxy   *toxiproxy.Proxy
	address string
}

// Start runs a proxy to upstream, which is host:port, until Stop.
func Start(ctx context.Context, name, upstream string) (*Proxy, error) {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := &Proxy{}
	// The port is below those of outgoing connections, so that it is still free when the proxy listens again.
	err := loopback.OnFreePorts(ctx, 1, func(ports []int) error {
		p.address = loopback.Address(ports[0])
		p.proxy = toxiproxy.NewProxy(server, name, p.address, upstream)
		return p.proxy.Start()
	})
	if err != nil {
		return nil, fmt.Errorf("start proxy %s: %w", name, err)
	}
	return p, nil
}

// Address returns where the proxy listens, as host:port. It stays the same.
func (p *Proxy) Address() string { return p.address }

// Delay holds up everything that passes, in each direction, by the latency, more or less the jitter.
func (p *Proxy) Delay(latency, jitter time.Duration) error {
	return p.disturb("latency", map[string]int64{"latency": latency.Milliseconds(), "jitter": jitter.Milliseconds()})
}

// Cut lets nothing pass any more. Connections stay open, and new ones can be made: neither side is told, as where a
// firewall drops packets.
func (p *Proxy) Cut() error { return p.disturb("timeout", map[string]int64{"timeout": 0}) }

// Refuse closes all connections, and refuses new ones.
func (p *Proxy) Refuse() { p.proxy.Stop() }

// disturb begins a disturbance in both directions.
func (p *Proxy) disturb(kind string, attributes map[string]int64) error {
	for _, direction := range []string{"upstream", "downstream"} {
		toxic, err := json.Marshal(map[string]any{"type": kind, "stream": direction, "attributes": attributes})
		if err != nil {
			return fmt.Errorf("encode disturbance: %w", err)
		}
		if _, err := p.proxy.Toxics.AddToxicJson(bytes.NewReader(toxic)); err != nil {
			return fmt.Errorf("disturb proxy %s by %s: %w", p.proxy.Name, kind, err)
		}
	}
	return nil
}

// Heal ends all disturbances. Connections that were cut are closed: what was sent meanwhile is lost.
func (p *Proxy) Heal(ctx context.Context) error {
	p.proxy.Toxics.ResetToxics(ctx)
	if p.proxy.Enabled {
		return nil
	}
	if err := p.proxy.Start(); err != nil {
		return fmt.Errorf("heal proxy %s: %w", p.proxy.Name, err)
	}
	return nil
}

// Stop ends the proxy and its connections.
func (p *Proxy) Stop() { p.proxy.Stop() }
