// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serve gives catalog views, and whole catalogs, to OLM: its registry gRPC API, with one port per view. Answers
// are prepared when the content is set; a view's are kept in memory, and a whole catalog's in a temporary file.
//
// A view keeps its port for as long as it is served, because the port is part of a CatalogSource's address. When a
// view's content changes, the connections to that view are dropped: OLM resolves anew as soon as a catalog's connection
// comes back, and otherwise only minutes later.
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
	// ErrNoPort says that every port a view could have is taken.
	ErrNoPort = errors.New("no free port")
	// ErrClosed says that the server was closed.
	ErrClosed = errors.New("catalog server closed")
)

// Ports are the ports that views may get, both ends included. The zero value lets the kernel choose.
type Ports struct {
	First, Last int
}

// DefaultPorts are those of an agent that is not told others.
var DefaultPorts = Ports{50100, 50999}

// ParsePorts reads a range as String writes it.
func ParsePorts(text string) (Ports, error) {
	from, to, ok := strings.Cut(text, "-")
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	if !ok || err1 != nil || err2 != nil || first < 1 || last < first || last > MaxPort {
		return Ports{}, fmt.Errorf("%q is no range of ports such as %s", text, DefaultPorts)
	}
	return Ports{First: first, Last: last}, nil
}

// MaxPort is the highest port that there is.
const MaxPort = 65535

func (p Ports) String() string { return fmt.Sprintf("%d-%d", p.First, p.Last) }

// Size returns how many ports there are.
func (p Ports) Size() int { return p.Last - p.First + 1 }

// Includes tells whether all of other are among the ports.
func (p Ports) Includes(other Ports) bool { return p.First <= other.First && other.Last <= p.Last }

// Overlaps tells whether any port is among both.
func (p Ports) Overlaps(other Ports) bool { return p.First <= other.Last && other.First <= p.Last }

func (p Ports) contains(port int) bool {
	return port > 0 && (p == Ports{} || p.Includes(Ports{port, port}))
}

// Options configure a Server.
type Options struct {
	// Listen is the address to listen on, without a port; empty means 127.0.0.1.
	Listen string
	// Advertise is the host under which OLM reaches the server; empty means Listen.
	Advertise string
	// Ports are those to listen on.
	Ports Ports
	// IdleTimeout is after how long without a request a connection is closed; zero means 45 minutes. OLM connects
	// again, and resolves anew then. A gRPC client of its kind ends an idle connection itself after 30 minutes, so the
	// default is about others.
	IdleTimeout time.Duration
}

// Server serves any number of views. Its methods may be called at the same time.
type Server struct {
	options Options

	mu        sync.Mutex
	endpoints map[string]*endpoint
	closed    bool
}

// New returns a server that listens nowhere yet.
func New(o Options) *Server {
	o.Listen = cmp.Or(o.Listen, "127.0.0.1")
	o.Advertise = cmp.Or(o.Advertise, o.Listen)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 45*time.Minute)
	return &Server{options: o, endpoints: map[string]*endpoint{}}
}

// Set serves a view under a key, or exchanges what is served there, and returns the address for the CatalogSource.
// A new view gets the preferred port if that is positive, within the range and free, otherwise another one; a view that
// is served already keeps its port. changed reports whether the content is another than before.
func (s *Server) Set(key string, v view.View, preferredPort int) (addr string, changed bool, err error) {
	s.mu.Lock()
	current, served := s.endpoints[key]
	closed := s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return "", false, ErrClosed
	case served && current.content.Load().hash == v.Hash:
		return s.addr(current), false, nil
	}
	content, err := newContent(v.Hash, v.Packages)
	if err != nil {
		return "", false, fmt.Errorf("serve view %q: %w", key, err)
	}
	if served {
		current.replace(content)
		return s.addr(current), true, nil
	}
	created, err := s.open(key, content, preferredPort)
	if err != nil {
		return "", false, fmt.Errorf("serve view %q: %w", key, err)
	}
	return s.addr(created), true, nil
}

// SetCatalog serves a whole catalog under a key, as Set does a view. The catalog may be closed once the server is
// closed, or other content was set.
func (s *Server) SetCatalog(key string, c *Catalog, preferredPort int) (addr string, err error) {
	s.mu.Lock()
	current, served := s.endpoints[key]
	closed := s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return "", ErrClosed
	case served:
		current.replace(c.content)
		return s.addr(current), nil
	}
	created, err := s.open(key, c.content, preferredPort)
	if err != nil {
		return "", fmt.Errorf("serve catalog %q: %w", key, err)
	}
	return s.addr(created), nil
}

func (s *Server) open(key string, content *content, preferredPort int) (*endpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if racing, ok := s.endpoints[key]; ok {
		racing.replace(content)
		return racing, nil
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

func (s *Server) listen(preferred int) (net.Listener, error) {
	if s.options.Ports.contains(preferred) {
		if l, err := s.listenOn(preferred); err == nil {
			return l, nil
		}
	}
	if (s.options.Ports == Ports{}) {
		return s.listenOn(0)
	}
	used := map[int]bool{}
	for _, other := range s.endpoints {
		used[other.port] = true
	}
	var last error
	for port := s.options.Ports.First; port <= s.options.Ports.Last; port++ {
		if used[port] {
			continue
		}
		l, err := s.listenOn(port)
		if err == nil {
			return l, nil
		}
		last = err
	}
	if last == nil {
		last = fmt.Errorf("%d views are served", len(s.endpoints))
	}
	return nil, fmt.Errorf("%w from %d to %d: %w", ErrNoPort, s.options.Ports.First, s.options.Ports.Last, last)
}

func (s *Server) listenOn(port int) (net.Listener, error) {
	var listen net.ListenConfig
	// Opening a port takes no time that a caller could want to cut short.
	return listen.Listen(context.Background(), "tcp", net.JoinHostPort(s.options.Listen, strconv.Itoa(port)))
}

func (s *Server) addr(e *endpoint) string {
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

// State is what is served under a key.
type State struct {
	Hash string
	Addr string
	// Connections to the view that are open now; OLM holds one.
	Connections int
	// Idle is for how long none has been open; zero while one is.
	Idle time.Duration
	// Reads is how often the present content was listed from beginning to end.
	Reads int
}

// State returns what is served under a key, and false if nothing is.
func (s *Server) State(key string) (State, bool) {
	s.mu.Lock()
	e, ok := s.endpoints[key]
	s.mu.Unlock()
	if !ok {
		return State{}, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return State{Hash: e.content.Load().hash, Addr: s.addr(e), Connections: len(e.connections), Idle: e.idle(),
		Reads: e.reads}, true
}

// CSV returns the manifest of the ClusterServiceVersion of a bundle that is served under a key; nil if there is none.
func (s *Server) CSV(key, pkg, bundle string) []byte {
	s.mu.Lock()
	e, ok := s.endpoints[key]
	s.mu.Unlock()
	if !ok {
		return nil
	}
	return e.content.Load().csv(pkg, bundle)
}

// Close stops serving everything. The server cannot be used again.
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
