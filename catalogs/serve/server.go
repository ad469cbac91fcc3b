// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serve serves catalog views, and whole catalogs, to OLM: its registry gRPC API, with one port per view.
// Responses are prepared when the content is set, and kept in memory for a view, or in a temporary file for a
// whole catalog.
//
// A view keeps its port as long as it is served, because the port is part of a CatalogSource's address. When a view's
// content changes, the connections to that view are closed: OLM resolves again as soon as a catalog's connection is
// restored, and otherwise only minutes later.
package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bellwether-dev/bellwether/catalogs/view"
)

var (
	// ErrNoPort means that every port of the range is in use.
	ErrNoPort = errors.New("no free port")
	// ErrClosed means that the server was closed.
	ErrClosed = errors.New("catalog server closed")
)

// Ports are the ports that views can get, both ends included. The zero value lets the kernel choose.
type Ports struct {
	First, Last int
}

// DefaultPorts are the ports of an agent without a configured range.
var DefaultPorts = Ports{50100, 50999}

// ParsePorts parses a range in the format of String.
func ParsePorts(text string) (Ports, error) {
	from, to, ok := strings.Cut(text, "-")
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	if !ok || err1 != nil || err2 != nil || first < 1 || last < first || last > MaxPort {
		return Ports{}, fmt.Errorf("%q is no range of ports such as %s", text, DefaultPorts)
	}
	return Ports{First: first, Last: last}, nil
}

// MaxPort is the highest port number.
const MaxPort = 65535

func (p Ports) String() string { return fmt.Sprintf("%d-%d", p.First, p.Last) }

// Size returns the number of ports.
func (p Ports) Size() int { return p.Last - p.First + 1 }

// Includes reports whether all ports of other are among the ports.
func (p Ports) Includes(other Ports) bool { return p.First <= other.First && other.Last <= p.Last }

// Overlaps reports whether a port is in both ranges.
func (p Ports) Overlaps(other Ports) bool { return p.First <= other.Last && other.First <= p.Last }

// canUse reports whether a port is in the range; every valid port is in the zero range.
func (p Ports) canUse(port int) bool {
	return port > 0 && (p == Ports{} || p.Includes(Ports{port, port}))
}

// Options configure a Server.
type Options struct {
	// Listen is the address to listen on, without a port; empty means 127.0.0.1.
	Listen string
	// Advertise is the host under which OLM reaches the server; empty means Listen.
	Advertise string
	// Ports are the ports to listen on.
	Ports Ports
	// IdleTimeout is how long a connection without a request stays open; zero means 45 minutes. After that, OLM
	// connects and resolves again. OLM's gRPC client itself closes an idle connection after 30 minutes, so the
	// default matters only for other clients.
	IdleTimeout time.Duration
}

// Server serves any number of views. Its methods can be called concurrently.
type Server struct {
	options Options

	mu        sync.Mutex
	endpoints map[string]*endpoint
	closed    bool
}

// New returns a server that does not listen yet.
func New(o Options) *Server {
	o.Listen = cmp.Or(o.Listen, "127.0.0.1")
	o.Advertise = cmp.Or(o.Advertise, o.Listen)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 45*time.Minute)
	return &Server{options: o, endpoints: map[string]*endpoint{}}
}

// Set serves a view under a key, or replaces the content that is served there, and returns the address for the
// CatalogSource. A new view gets the preferred port if that port is positive, within the range and free, or else
// another port; a view that is already served keeps its port. changed reports whether the content was replaced.
func (s *Server) Set(key string, v view.View, preferredPort int) (addr string, changed bool, err error) {
	s.mu.Lock()
	current, isServed := s.endpoints[key]
	closed := s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return "", false, ErrClosed
	case isServed && current.content.Load().hash == v.Hash:
		return s.formatAddress(current), false, nil
	}
	content, err := newContent(v.Hash, v.Packages)
	if err != nil {
		return "", false, fmt.Errorf("serve view %q: %w", key, err)
	}
	if isServed {
		current.replaceContent(content)
		return s.formatAddress(current), true, nil
	}
	created, err := s.openEndpoint(key, content, preferredPort)
	if err != nil {
		return "", false, fmt.Errorf("serve view %q: %w", key, err)
	}
	return s.formatAddress(created), true, nil
}

// SetCatalog serves a whole catalog under a key, as Set does for a view. The catalog can be closed after the server
// was closed, or after other content was set.
func (s *Server) SetCatalog(key string, c *Catalog, preferredPort int) (addr string, err error) {
	s.mu.Lock()
	current, isServed := s.endpoints[key]
	closed := s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return "", ErrClosed
	case isServed:
		current.replaceContent(c.content)
		return s.formatAddress(current), nil
	}
	created, err := s.openEndpoint(key, c.content, preferredPort)
	if err != nil {
		return "", fmt.Errorf("serve catalog %q: %w", key, err)
	}
	return s.formatAddress(created), nil
}

// openEndpoint starts an endpoint for the key. If another call has already started an endpoint, openEndpoint replaces
// the content there.
func (s *Server) openEndpoint(key string, content *content, preferredPort int) (*endpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if existing, ok := s.endpoints[key]; ok {
		existing.replaceContent(content)
		return existing, nil
	}
	l, err := s.listen(preferredPort)
	if err != nil {
		return nil, err
	}
	created := newEndpoint(l, content, s.options.IdleTimeout)
	s.endpoints[key] = created
	go created.serve()
	return created, nil
}

// listen listens on the preferred port if possible, or else on the first free port of the range.
func (s *Server) listen(preferred int) (net.Listener, error) {
	if s.options.Ports.canUse(preferred) {
		if l, err := s.listenOn(preferred); err == nil {
			return l, nil
		}
	}
	if (s.options.Ports == Ports{}) { // the kernel chooses a port
		return s.listenOn(0)
	}
	isUsed := map[int]bool{}
	for _, other := range s.endpoints {
		isUsed[other.port] = true
	}
	var lastErr error
	for port := s.options.Ports.First; port <= s.options.Ports.Last; port++ {
		if isUsed[port] {
			continue
		}
		l, err := s.listenOn(port)
		if err == nil {
			return l, nil
		}
		lastErr = err
	}
	if lastErr == nil { // the server itself uses every port of the range
		lastErr = fmt.Errorf("%d views are served", len(s.endpoints))
	}
	return nil, fmt.Errorf("%w from %d to %d: %w", ErrNoPort, s.options.Ports.First, s.options.Ports.Last, lastErr)
}

func (s *Server) listenOn(port int) (net.Listener, error) {
	var listen net.ListenConfig
	// Opening a port takes too little time for a context to matter.
	return listen.Listen(context.Background(), "tcp", net.JoinHostPort(s.options.Listen, strconv.Itoa(port)))
}

func (s *Server) formatAddress(e *endpoint) string {
	return net.JoinHostPort(s.options.Advertise, strconv.Itoa(e.port))
}

// Remove stops serving a view and frees its port. Unknown keys are ignored.
func (s *Server) Remove(key string) {
	s.mu.Lock()
	e, ok := s.endpoints[key]
	delete(s.endpoints, key)
	s.mu.Unlock()
	if ok {
		e.close()
	}
}

// State is the state of the content under a key.
type State struct {
	Hash string
	Addr string
	// Connections is the number of open connections to the view; OLM has one.
	Connections int
	// Idle is for how long no connection has been open; zero if a connection is open.
	Idle time.Duration
	// Reads is how often the present content was listed completely.
	Reads int
}

// State returns the state of the content under a key; false if there is no content.
func (s *Server) State(key string) (State, bool) {
	s.mu.Lock()
	e, ok := s.endpoints[key]
	s.mu.Unlock()
	if !ok {
		return State{}, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return State{Hash: e.content.Load().hash, Addr: s.formatAddress(e), Connections: len(e.connections),
		Idle: e.getIdleTime(), Reads: e.reads}, true
}

// CSV returns the manifest of the ClusterServiceVersion of a bundle that is served under a key; nil if there is none.
func (s *Server) CSV(key, pkg, bundle string) []byte {
	s.mu.Lock()
	e, ok := s.endpoints[key]
	s.mu.Unlock()
	if !ok {
		return nil
	}
	return e.content.Load().findCSV(pkg, bundle)
}

// Close stops serving all content. The server cannot be used again.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	endpoints := s.endpoints
	s.endpoints = map[string]*endpoint{}
	s.mu.Unlock()
	for _, e := range endpoints {
		e.close()
	}
}
