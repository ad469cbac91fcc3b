// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
)

const (
	// maxConnections bounds the connections of an endpoint, and maxConnectionsPerAddress the connections of one
	// client address. OLM has a few connections, and other clients must not take its place.
	maxConnections           = 256
	maxConnectionsPerAddress = 32
	// handshakeLimit is the time that a client has for the handshake.
	handshakeLimit = 20 * time.Second
)

// endpoint is a view or catalog that is served: a gRPC server on its own port, its present content, and its
// open connections.
type endpoint struct {
	server   *grpc.Server
	listener net.Listener
	port     int
	content  atomic.Pointer[content]

	mu          sync.Mutex
	connections map[*connection]struct{}
	reads       int
	// idleSince is when the last connection ended, or the endpoint opened.
	idleSince time.Time
}

// newEndpoint returns an endpoint that serves content on a listener. A connection without requests is closed after
// idleTimeout. The caller must call serve.
func newEndpoint(l net.Listener, served *content, idleTimeout time.Duration) *endpoint {
	// The connection to a catalog is nearly always idle and its requests are tiny, so buffers are small.
	server := grpc.NewServer(grpc.ReadBufferSize(4<<10), grpc.WriteBufferSize(16<<10),
		grpc.MaxRecvMsgSize(64<<10), grpc.MaxConcurrentStreams(100), grpc.MaxHeaderListSize(16<<10),
		// A client that sends nothing, or is gone, does not keep its connection. A connection that is merely idle
		// stays open for long, because OLM resolves again whenever a connection is restored.
		grpc.ConnectionTimeout(handshakeLimit),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 2 * time.Minute, Timeout: 20 * time.Second,
			MaxConnectionIdle: idleTimeout}))
	e := &endpoint{server: server, listener: l, port: l.Addr().(*net.TCPAddr).Port,
		connections: map[*connection]struct{}{}, idleSince: time.Now()}
	e.content.Store(served)
	api.RegisterRegistryServer(server, registry{endpoint: e})
	api.RegisterExperimentalRegistryServer(server, experimental{})
	healthv1.RegisterHealthServer(server, health{})
	return e
}

// serve accepts connections until the endpoint is closed.
func (e *endpoint) serve() {
	// Serve returns when close stops the server, which is not an error.
	_ = e.server.Serve(&listener{Listener: e.listener, endpoint: e})
}

// replaceContent replaces the content and then closes the connections, so that clients that connect again get the
// new content.
func (e *endpoint) replaceContent(served *content) {
	e.content.Store(served)
	e.mu.Lock()
	dropped := e.connections
	e.connections = map[*connection]struct{}{}
	if len(dropped) > 0 {
		e.idleSince = time.Now()
	}
	e.reads = 0
	e.mu.Unlock()
	for c := range dropped {
		_ = c.Conn.Close()
	}
}

// getIdleTime returns for how long no connection has been open. The caller must hold the lock.
func (e *endpoint) getIdleTime() time.Duration {
	if len(e.connections) > 0 {
		return 0
	}
	return time.Since(e.idleSince)
}

// countRead counts a complete listing, unless the content was replaced in the meantime.
func (e *endpoint) countRead(listed *content) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.content.Load() == listed {
		e.reads++
	}
}

// close frees the port and closes all connections.
func (e *endpoint) close() {
	// The server closes the listener only if it was already serving.
	_ = e.listener.Close()
	e.server.Stop()
}

// listener registers the connections of an endpoint.
type listener struct {
	net.Listener
	endpoint *endpoint
}

// Accept closes connections that exceed the limits.
func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.endpoint.register(accepted); c != nil {
			return c, nil
		}
		_ = accepted.Close()
	}
}

// register adds an accepted connection to the connections of the endpoint. It returns nil, and adds nothing, if the
// connection exceeds a limit.
func (e *endpoint) register(accepted net.Conn) *connection {
	c := &connection{Conn: accepted, endpoint: e, address: getAddress(accepted)}
	e.mu.Lock()
	defer e.mu.Unlock()
	sameAddress := 0
	for other := range e.connections {
		if other.address == c.address {
			sameAddress++
		}
	}
	if len(e.connections) >= maxConnections || sameAddress >= maxConnectionsPerAddress {
		return nil
	}
	e.connections[c] = struct{}{}
	return c
}

// getAddress returns the client's address without its port.
func getAddress(c net.Conn) string {
	host, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		return c.RemoteAddr().String()
	}
	return host
}

type connection struct {
	net.Conn
	endpoint *endpoint
	address  string
}

// Close closes the connection and removes it from the endpoint. idleSince stays unchanged if the connection was already
// removed, by replaceContent or by an earlier Close.
func (c *connection) Close() error {
	c.endpoint.mu.Lock()
	if _, isOpen := c.endpoint.connections[c]; isOpen {
		delete(c.endpoint.connections, c)
		c.endpoint.idleSince = time.Now()
	}
	c.endpoint.mu.Unlock()
	return c.Conn.Close()
}
