// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/proxy"
)

// start runs a server that sends each line back, and a proxy to it.
func start(t *testing.T) *proxy.Proxy {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	p, err := proxy.Start(t.Context(), "test", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

func dial(t *testing.T, p *proxy.Proxy) net.Conn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ask sends a line and returns the error of reading it again, within the time.
func ask(t *testing.T, c net.Conn, limit time.Duration) error {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "hello\n"); err != nil {
		return err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && line != "hello\n" {
		t.Fatalf("answer %q", line)
	}
	return err
}

const (
	patience = 30 * time.Second
	// never is how long nothing is waited for.
	never = 200 * time.Millisecond
)

func TestDelay(t *testing.T) {
	t.Parallel()
	p := start(t)
	c := dial(t, p)
	if err := ask(t, c, patience); err != nil {
		t.Fatal(err)
	}
	const latency = 150 * time.Millisecond
	if err := p.Delay(latency, 0); err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{c, dial(t, p)} {
		began := time.Now()
		if err := ask(t, c, patience); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 2*latency {
			t.Errorf("there and back in %s, with a latency of %s", took, latency)
		}
	}
	if err := p.Heal(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ask(t, c, patience); err != nil {
		t.Errorf("a connection that was slow: %v", err)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	p := start(t)
	before := dial(t, p)
	if err := ask(t, before, patience); err != nil {
		t.Fatal(err)
	}
	if err := p.Cut(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{before, dial(t, p)} {
		if err := ask(t, c, never); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("asked through a proxy that is cut: %v", err)
		}
	}
	if err := p.Heal(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ask(t, before, patience); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection that was cut is not closed: %v", err)
	}
	if err := ask(t, dial(t, p), patience); err != nil {
		t.Errorf("after the cut: %v", err)
	}
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	p := start(t)
	before := dial(t, p)
	if err := ask(t, before, patience); err != nil {
		t.Fatal(err)
	}
	p.Refuse()
	if err := ask(t, before, patience); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection is not closed: %v", err)
	}
	if c, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.Address()); err == nil {
		_ = c.Close()
		t.Error("a new connection is accepted")
	}
	if err := p.Heal(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ask(t, dial(t, p), patience); err != nil {
		t.Errorf("after it refused: %v", err)
	}
}
