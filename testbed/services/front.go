// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

const (
	// dialLimit bounds how long a client waits for a pod that does not answer at all; on loopback that hardly happens.
	dialLimit = 5 * time.Second
	// acceptPause keeps a lack of file descriptors from becoming a busy loop.
	acceptPause = 50 * time.Millisecond
)

// front listens on one address of a Service and brings each connection to the next of its backends.
type front struct {
	listener net.Listener
	conns    *connections

	mu    sync.Mutex
	backs []netip.AddrPort
	next  int
}

// openFront starts to listen. It serves until close, its connections until conns is cut. backs must not be empty.
func openFront(ctx context.Context, addr netip.AddrPort, backs []netip.AddrPort, conns *connections) (*front, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr.String())
	if err != nil {
		return nil, fmt.Errorf("listen for service: %w", err)
	}
	f := &front{listener: listener, conns: conns, backs: backs}
	conns.running.Go(func() { f.serve(ctx) })
	return f, nil
}

// lead sends new connections to backs, which must not be empty. Those that are open stay where they are, as with
// kube-proxy.
func (f *front) lead(backs []netip.AddrPort) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.backs = backs
}

// close refuses new connections. Open ones go on, since whether they can is the pod's to say.
func (f *front) close() { _ = f.listener.Close() }

func (f *front) serve(ctx context.Context) {
	for {
		client, err := f.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			klog.FromContext(ctx).Error(err, "Connection not accepted", "address", f.listener.Addr())
			select {
			case <-ctx.Done():
			case <-time.After(acceptPause):
			}
			continue
		}
		back := f.pick()
		f.conns.running.Go(func() { f.conns.join(ctx, client, back) })
	}
}

// pick takes the backends in turn.
func (f *front) pick() netip.AddrPort {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = (f.next + 1) % len(f.backs)
	return f.backs[f.next]
}

// connections are all that are open, of all fronts, and what serves them.
type connections struct {
	running sync.WaitGroup

	mu   sync.Mutex
	open map[net.Conn]struct{} // both ends of each; nil once cut
}

func newConnections() *connections { return &connections{open: map[net.Conn]struct{}{}} }

// cut ends all connections and waits until everything that served them has returned. The fronts must be closed before.
func (c *connections) cut() {
	c.mu.Lock()
	for conn := range c.open {
		_ = conn.Close()
	}
	c.open = nil
	c.mu.Unlock()
	c.running.Wait()
}

// join copies between a client and a backend until both have said all. If the backend cannot be reached, the client's
// connection is reset: it was refused, only later than it would have been without a proxy.
func (c *connections) join(ctx context.Context, client net.Conn, back netip.AddrPort) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	pod, err := new(net.Dialer).DialContext(ctx, "tcp", back.String())
	if err != nil {
		abort(client)
		return
	}
	if !c.keep(client, pod) {
		abort(client)
		_ = pod.Close()
		return
	}
	defer c.drop(client, pod)
	var there sync.WaitGroup
	there.Go(func() { pass(pod, client) })
	pass(client, pod)
	there.Wait()
}

// pass copies one direction, then says that no more comes. After an error nothing can come either way.
func pass(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		abort(to)
		abort(from)
		return
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // the other end may be gone already
	}
}

// abort ends a connection with a reset, so that the other end does not take it for a complete answer.
func abort(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// keep remembers connections for cut, and reports false if that has been already.
func (c *connections) keep(conns ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		return false
	}
	for _, conn := range conns {
		c.open[conn] = struct{}{}
	}
	return true
}

// drop closes connections and forgets them.
func (c *connections) drop(conns ...net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
		delete(c.open, conn)
	}
}
