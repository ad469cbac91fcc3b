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
	// maxConnections bounds those of an endpoint, and maxOfAddress those of one client's address among them: OLM has a
	// few, and nobody else is to take its place.
	maxConnections = 256
	maxOfAddress   = 32
	// handshakeLimit is how long a client may take to begin.
	handshakeLimit = 20 * time.Second
)

// endpoint is one view or catalog that is served: a gRPC server on a port of its own, its present content, and its open
// connections.
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

func newEndpoint(l net.Listener, served *content, idleTimeout time.Duration) *endpoint {
	// A catalog's connection is idle nearly always and its requests are tiny, so buffers are kept small.
	server := grpc.NewServer(grpc.ReadBufferSize(4<<10), grpc.WriteBufferSize(16<<10),
		grpc.MaxRecvMsgSize(64<<10), grpc.MaxConcurrentStreams(100), grpc.MaxHeaderListSize(16<<10),
		// A client that says nothing, or is gone, does not keep its connection. One that is merely idle does for long:
		// OLM resolves anew whenever a connection comes back.
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
	// It returns when close stops the server, which is no error.
	_ = e.server.Serve(&listener{Listener: e.listener, endpoint: e})
}

// replace exchanges the content and drops the connections afterwards, so that clients that connect again see the new
// content.
func (e *endpoint) replace(served *content) {
	e.content.Store(served)
	e.mu.Lock()
	open := e.connections
	e.connections = map[*connection]struct{}{}
	if len(open) > 0 {
		e.idleSince = time.Now()
	}
	e.reads = 0
	e.mu.Unlock()
	for c := range open {
		_ = c.Conn.Close()
	}
}

// idle returns for how long no connection has been open. The caller holds the lock.
func (e *endpoint) idle() time.Duration {
	if len(e.connections) > 0 {
		return 0
	}
	return time.Since(e.idleSince)
}

// countRead counts a complete listing, unless the content was replaced meanwhile.
func (e *endpoint) countRead(of *content) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.content.Load() == of {
		e.reads++
	}
}

// close frees the port and drops all connections.
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

// Accept closes the connections that are too many.
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

// register returns nil for a connection that is one too many.
func (e *endpoint) register(accepted net.Conn) *connection {
	c := &connection{Conn: accepted, endpoint: e, from: addressOf(accepted)}
	e.mu.Lock()
	defer e.mu.Unlock()
	same := 0
	for open := range e.connections {
		if open.from == c.from {
			same++
		}
	}
	if len(e.connections) >= maxConnections || same >= maxOfAddress {
		return nil
	}
	e.connections[c] = struct{}{}
	return c
}

// addressOf is the client's address without its port.
func addressOf(c net.Conn) string {
	host, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		return c.RemoteAddr().String()
	}
	return host
}

type connection struct {
	net.Conn
	endpoint *endpoint
	from     string
}

func (c *connection) Close() error {
	c.endpoint.mu.Lock()
	if _, open := c.endpoint.connections[c]; open {
		delete(c.endpoint.connections, c)
		c.endpoint.idleSince = time.Now()
	}
	c.endpoint.mu.Unlock()
	return c.Conn.Close()
}
