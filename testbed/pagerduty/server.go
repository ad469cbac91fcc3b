// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pagerduty is a strict local server of PagerDuty's Events API v2, for tests, the demo and benchmarks. It
// accepts what the published schema allows, keeps a ledger of incidents, change events and anomalies, and can
// be down or slow.
//
// Its inputs are the names of services. It makes their routing keys, and neither keeps them in the ledger nor prints
// them. It notifies nobody, and does not group alerts into incidents: each dedup_key is one. It is stricter than
// PagerDuty: it refuses fields that are not documented, and events that carry a routing key in another field.
package pagerduty

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"mime"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/loopback"
)

// Paths of the API.
const (
	EnqueuePath       = "/v2/enqueue"
	ChangeEnqueuePath = "/v2/change/enqueue"
)

const headerLimit = 10 * time.Second

// ErrUnknownService says that the server has no service of a name.
var ErrUnknownService = errors.New("unknown service")

// Options say what to serve.
type Options struct {
	// Services are names, at least one. Each gets a routing key.
	Services []string
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Server is a running server. All methods may be called at any time by several goroutines.
type Server struct {
	now     func() time.Time
	keys    map[string]string // by service
	address string

	mu     sync.Mutex
	book   *book
	faults Faults
	closed bool
	// server and listener are nil while it refuses connections, and after Close.
	server   *http.Server
	listener net.Listener
}

// Start serves on a free port of loopback until Close.
func Start(ctx context.Context, opts Options) (*Server, error) {
	s := &Server{now: opts.Now, keys: map[string]string{}, book: newBook()}
	if s.now == nil {
		s.now = time.Now
	}
	for _, name := range opts.Services {
		key := make([]byte, routingKeySize/2)
		_, _ = rand.Read(key) // never fails
		s.keys[name] = hex.EncodeToString(key)
	}
	err := loopback.OnFreePorts(ctx, 1, func(ports []int) error {
		s.address = loopback.Address(ports[0])
		return s.listen()
	})
	if err != nil {
		return nil, fmt.Errorf("start events API: %w", err)
	}
	return s, nil
}

// listen begins to serve at the server's address. Its caller holds the lock, or is alone.
func (s *Server) listen() error {
	// It outlives whatever context it is started in, until Close.
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", s.address)
	if err != nil {
		return err
	}
	s.server = &http.Server{
		Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: headerLimit, ErrorLog: log.New(io.Discard, "", 0),
	}
	s.listener = listener
	go func(server *http.Server) { _ = server.Serve(listener) }(s.server) // ends with ErrServerClosed
	return nil
}

// refuse closes the port and all connections. Its caller holds the lock.
func (s *Server) refuse() {
	if s.server == nil {
		return
	}
	_ = s.server.Close()
	_ = s.listener.Close() // the server knows of it only once it has begun to serve
	s.server, s.listener = nil, nil
}

// Close ends the server and its connections. The ledger stays.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.refuse()
}

// URL is where the server is, without a path. It stays the same when connections were refused meanwhile.
func (s *Server) URL() string { return "http://" + s.address }

// Host is that of the URL.
func (s *Server) Host() string { return s.address }

// RoutingKey is the key that events of a service carry.
func (s *Server) RoutingKey(service string) (string, error) {
	key, ok := s.keys[service]
	if !ok {
		return "", fmt.Errorf("find routing key of %q: %w", service, ErrUnknownService)
	}
	return key, nil
}

// Ledger returns what was taken in until now.
func (s *Server) Ledger() Ledger {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.book.snapshot()
}

// SetFaults replaces the faults. It returns when they hold. It fails only where faults.Refused ends and another program
// took the port.
func (s *Server) SetFaults(faults Faults) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = faults
	switch {
	case faults.Refused:
		s.refuse()
	case s.server == nil && !s.closed:
		if err := s.listen(); err != nil {
			return fmt.Errorf("listen again: %w", err)
		}
	}
	return nil
}

// answer is what a request is answered with.
type answer struct {
	code   int
	header map[string]string
	body   reply
	plain  string // instead of body
}

// reply is the body of most answers.
type reply struct {
	Status   string   `json:"status"`
	Message  string   `json:"message"`
	DedupKey string   `json:"dedup_key,omitempty"`
	Errors   []string `json:"errors,omitempty"`
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	a, delay := s.handle(w, r)
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return
		}
	}
	for name, value := range a.header {
		w.Header().Set(name, value)
	}
	if a.plain != "" {
		http.Error(w, a.plain, a.code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.code)
	_ = json.NewEncoder(w).Encode(a.body) // an error says that the client is gone
}

// handle takes in a request, and says after which time to answer what.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) (answer, time.Duration) {
	// The body is read before anything is decided, and without the lock: clients may be slow.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxEventBytes))

	s.mu.Lock()
	defer s.mu.Unlock()
	s.book.Attempts.Total++
	if s.faults.Unavailable {
		s.book.Attempts.Unavailable++
		return answer{code: http.StatusServiceUnavailable, body: reply{
			Status: "service unavailable", Message: "Events are not accepted at the moment",
		}}, 0
	}
	a := s.decide(r, body, err)
	if s.faults.Delay > 0 {
		s.book.Attempts.Delayed++
	}
	return a, s.faults.Delay
}

// decide takes in a request of which the body, or an error, was read. Its caller holds the lock.
func (s *Server) decide(r *http.Request, body []byte, readError error) answer {
	if a, ok := envelope(r, readError); !ok {
		return s.refused(a, "", "", a.body.Errors)
	}
	fields, err := decode(body)
	if err != nil {
		a := invalid("JSON parse error")
		a.body.Status, a.body.Message = "Unrecognized object", "Event object format is unrecognized"
		return s.refused(a, "", "", a.body.Errors)
	}
	service := s.serviceOf(fields)
	if field, leaked := s.leak(fields); leaked {
		a := invalid("'" + field + "' contains a routing key")
		return s.refused(a, service, "", a.body.Errors)
	}
	dedupKey, _ := fields["dedup_key"].(string)
	valid := check(checkAlert)
	if r.URL.Path == ChangeEnqueuePath {
		valid = changeEvent
	}
	if problems := valid("", fields); len(problems) > 0 {
		return s.refused(invalid(problems...), service, dedupKey, problems)
	}
	if service == "" {
		return s.refused(unknownKey(), "", dedupKey, []string{unknownKey().plain})
	}
	if a, ok := s.admit(service); !ok {
		return a
	}
	if r.URL.Path == ChangeEnqueuePath {
		return s.takeChange(service, body)
	}
	return s.takeAlert(service, body)
}

// envelope checks everything but the content of a request.
func envelope(r *http.Request, readError error) (answer, bool) {
	refuse := func(code int, reason string) (answer, bool) {
		return answer{code: code, body: reply{
			Status: "invalid request", Message: http.StatusText(code), Errors: []string{reason},
		}}, false
	}
	if r.URL.Path != EnqueuePath && r.URL.Path != ChangeEnqueuePath {
		return refuse(http.StatusNotFound, "no such path")
	}
	if r.Method != http.MethodPost {
		a, _ := refuse(http.StatusMethodNotAllowed, "method must be POST")
		a.header = map[string]string{"Allow": http.MethodPost}
		return a, false
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, "Content-Type must be application/json")
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(readError, &tooLarge):
		return refuse(http.StatusRequestEntityTooLarge, "event is larger than 512 KB")
	case readError != nil:
		return refuse(http.StatusBadRequest, "the body ended early")
	}
	return answer{}, true
}

func invalid(problems ...string) answer {
	return answer{code: http.StatusBadRequest, body: reply{
		Status: "invalid event", Message: "Event object is invalid", Errors: problems,
	}}
}

// unknownKey is not JSON, as that of PagerDuty.
func unknownKey() answer { return answer{code: http.StatusBadRequest, plain: "Invalid routing key"} }

// refused keeps an anomaly, and returns its answer.
func (s *Server) refused(a answer, service, dedupKey string, reasons []string) answer {
	s.book.Anomalies = append(s.book.Anomalies, Anomaly{
		At: s.now(), Status: a.code, Service: service, DedupKey: dedupKey, Reasons: reasons,
	})
	return a
}

// serviceOf returns the service whose key an event carries; empty: none.
func (s *Server) serviceOf(event map[string]any) string {
	key, _ := event["routing_key"].(string)
	for service, k := range s.keys {
		if k == key {
			return service
		}
	}
	return ""
}

// leak finds a top-level field, other than the one for it, that contains a routing key of a service. People read all
// other fields.
func (s *Server) leak(event map[string]any) (string, bool) {
	for _, name := range slices.Sorted(maps.Keys(event)) {
		if name == "routing_key" {
			continue
		}
		content, err := json.Marshal(event[name])
		for _, key := range s.keys {
			switch {
			case bytes.Contains([]byte(name), []byte(key)):
				return "a field's name", true
			case err == nil && bytes.Contains(content, []byte(key)):
				return name, true
			}
		}
	}
	return "", false
}

// admit applies the faults that concern one service.
func (s *Server) admit(service string) (answer, bool) {
	if slices.Contains(s.faults.Rejected, service) {
		s.book.Attempts.Rejected++
		return unknownKey(), false
	}
	return answer{}, true
}

func (s *Server) takeAlert(service string, body []byte) answer {
	var event alertRequest
	if err := json.Unmarshal(body, &event); err != nil {
		return s.refused(invalid("JSON parse error"), service, "", []string{err.Error()})
	}
	if blank(event.DedupKey) {
		event.DedupKey = rand.Text()
	}
	s.book.alert(s.now(), service, body, event)
	return answer{code: http.StatusAccepted, body: reply{
		Status: "success", Message: "Event processed", DedupKey: event.DedupKey,
	}}
}

func (s *Server) takeChange(service string, body []byte) answer {
	var event changeRequest
	err := json.Unmarshal(body, &event)
	if err == nil {
		err = s.book.change(s.now(), service, body, event)
	}
	if err != nil {
		return s.refused(invalid("JSON parse error"), service, "", []string{err.Error()})
	}
	return answer{code: http.StatusAccepted, body: reply{Status: "success", Message: "Change event processed"}}
}
