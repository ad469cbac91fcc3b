// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package remotewrite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/outbound"
)

// ErrUnauthenticated says that a token is that of no cluster.
var ErrUnauthenticated = errors.New("the token is that of no cluster")

// Limits of what the gate takes. What is zero has its default.
type Limits struct {
	// Body is the size of a request in bytes, and Decoded that of what is in it.
	// Defaults: 1 MiB, 16 MiB.
	Body, Decoded int
	// Series is how many different series a cluster may send within an hour. Default:
	// 20,000.
	Series int
	// Requests is how many requests are under way, and PerCluster how many of one
	// cluster. Defaults: 64, 4.
	Requests, PerCluster int
}

func (l Limits) defaulted() Limits {
	for value, otherwise := range map[*int]int{
		&l.Body: 1 << 20, &l.Decoded: 16 << 20, &l.Series: 20_000, &l.Requests: 64, &l.PerCluster: 4,
	} {
		if *value <= 0 {
			*value = otherwise
		}
	}
	return l
}

// Store is where series are written to.
type Store struct {
	// URL takes remote write.
	URL *url.URL
	// Client has the credentials for it.
	Client *http.Client
	// Header is added to each request, such as that of a tenant.
	Header http.Header
}

// Options configure a Gate.
type Options struct {
	// Authenticate returns the cluster of a token, which somebody at an address sent. An
	// error that wraps ErrUnauthenticated is the sender's; after any other it tries again.
	Authenticate func(ctx context.Context, token, address string) (cluster string, err error)
	Store        Store
	Limits       Limits
	// Metrics takes those of the gate.
	Metrics prometheus.Registerer
	Now     func() time.Time
}

// Gate is the handler.
type Gate struct {
	Options

	requests chan struct{}
	metrics  metrics

	mu      sync.Mutex
	senders map[string]*sender
}

// sender is what is known of a cluster.
type sender struct {
	requests int
	// seen are the hashes of the series of the hour that began at since, and before how
	// many there were in the hour before.
	seen   map[uint64]struct{}
	since  time.Time
	before int
}

const (
	// hour is how long a series counts.
	hour = time.Hour
	// retryAfter is what a sender is told to wait, in seconds.
	retryAfter = "10"
	// storeTimeout bounds a request to the store.
	storeTimeout = 30 * time.Second
)

type metrics struct {
	requests, samples, refused *prometheus.CounterVec
	active                     *prometheus.GaugeVec
}

// New makes a gate.
func New(o Options) (*Gate, error) {
	o.Limits = o.Limits.defaulted()
	g := &Gate{Options: o, requests: make(chan struct{}, o.Limits.Requests), senders: map[string]*sender{}}
	all := series.RemoteWriteGate()
	counter := func(s series.Series) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: s.Name, Help: s.Help}, s.Labels)
	}
	g.metrics = metrics{counter(all[0]), counter(all[1]), counter(all[2]),
		prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: all[3].Name, Help: all[3].Help}, all[3].Labels)}
	for _, c := range []prometheus.Collector{g.metrics.requests, g.metrics.samples, g.metrics.refused,
		g.metrics.active} {
		if err := o.Metrics.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return g, nil
}

// answer is what a sender gets.
type answer struct {
	status  int
	message string
	header  http.Header
}

// later asks a sender to send the same again. 503 does that with all senders, and 429 only
// with those that are configured so.
func later(format string, args ...any) answer {
	return answer{http.StatusServiceUnavailable, fmt.Sprintf(format, args...),
		http.Header{"Retry-After": {retryAfter}}}
}

// ServeHTTP implements http.Handler.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := g.answer(w, r)
	g.metrics.requests.WithLabelValues(strconv.Itoa(a.status)).Inc()
	for name, values := range a.header {
		w.Header()[name] = values
	}
	if a.status/100 == 2 {
		w.WriteHeader(a.status)
		return
	}
	http.Error(w, a.message, a.status)
}

func (g *Gate) answer(w http.ResponseWriter, r *http.Request) answer {
	if r.Method != http.MethodPost {
		return answer{http.StatusMethodNotAllowed, "use POST", http.Header{"Allow": {http.MethodPost}}}
	}
	if r.ContentLength > int64(g.Limits.Body) {
		return answer{status: http.StatusRequestEntityTooLarge, message: g.tooBig().Error()}
	}
	if _, err := kindOf(r.Header); err != nil {
		return answer{status: http.StatusUnsupportedMediaType, message: err.Error()}
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return answer{http.StatusUnauthorized, "send the token of the cluster", http.Header{
			"Www-Authenticate": {"Bearer"}}}
	}
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	cluster, err := g.Authenticate(r.Context(), token, address)
	switch {
	case errors.Is(err, ErrUnauthenticated):
		return answer{http.StatusUnauthorized, err.Error(), http.Header{"Www-Authenticate": {"Bearer"}}}
	case err != nil:
		return later("cannot check the token now: %v", err)
	}
	select {
	case g.requests <- struct{}{}:
		defer func() { <-g.requests }()
	default:
		return later("%d requests are under way", cap(g.requests))
	}
	if !g.enter(cluster) {
		return later("%d requests of cluster %q are under way", g.Limits.PerCluster, cluster)
	}
	defer g.leave(cluster)
	return g.write(w, r, cluster)
}

// write checks and forwards a request of a cluster.
func (g *Gate) write(w http.ResponseWriter, r *http.Request, cluster string) answer {
	body, c, err := g.read(w, r, cluster)
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		g.metrics.refused.WithLabelValues(cluster, refused.reason).Inc()
		return answer{status: refused.status, message: refused.message}
	case err != nil:
		return answer{status: http.StatusBadRequest, message: err.Error()} // it did not arrive
	case len(c.series) == 0:
		// Metadata, which names all that the sender has. Nobody reads it.
		return answer{status: http.StatusNoContent}
	}
	a := g.forward(r, body)
	if a.status/100 == 2 {
		g.metrics.samples.WithLabelValues(cluster).Add(float64(c.samples))
	}
	return a
}

func (g *Gate) read(w http.ResponseWriter, r *http.Request, cluster string) ([]byte, content, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(g.Limits.Body)))
	var tooBig *http.MaxBytesError
	if errors.As(err, &tooBig) {
		return nil, content{}, g.tooBig()
	}
	if err != nil {
		return nil, content{}, fmt.Errorf("read the request: %w", err)
	}
	c, err := decode(r.Header, body, g.Limits.Decoded)
	if err != nil {
		return nil, content{}, err
	}
	if err := c.check(cluster, g.Now()); err != nil {
		return nil, content{}, err
	}
	return body, c, g.count(cluster, c)
}

func (g *Gate) tooBig() error {
	return refuse(http.StatusRequestEntityTooLarge, reasonTooBig,
		"a request may have %d bytes: lower max_samples_per_send", g.Limits.Body)
}

// passed are the headers of a request that are the store's business.
var passed = []string{"Content-Type", "Content-Encoding", "X-Prometheus-Remote-Write-Version", "User-Agent"}

// returned are those of an answer that are the sender's.
var returned = []string{
	"X-Prometheus-Remote-Write-Samples-Written", "X-Prometheus-Remote-Write-Histograms-Written",
	"X-Prometheus-Remote-Write-Exemplars-Written",
}

// forward sends a request on. What the store finds wrong with the samples is for the
// sender, which drops them; any other failure is not the sender's, which has to try again.
func (g *Gate) forward(r *http.Request, body []byte) answer {
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	out, err := http.NewRequestWithContext(ctx, http.MethodPost, g.Store.URL.String(), bytes.NewReader(body))
	if err != nil {
		return later("make a request: %v", err)
	}
	for _, name := range passed {
		if value := r.Header.Get(name); value != "" {
			out.Header.Set(name, value)
		}
	}
	for name, values := range g.Store.Header {
		out.Header[http.CanonicalHeaderKey(name)] = values
	}
	response, err := g.Store.Client.Do(out)
	switch {
	case errors.Is(err, outbound.ErrRedirect):
		return later("the store redirects: --store-url of the gate has to be the address itself")
	case err != nil:
		return later("the store does not answer") // its address is nobody's business
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	a := answer{status: response.StatusCode, message: strings.TrimSpace(string(text)), header: http.Header{}}
	for _, name := range returned {
		if value := response.Header.Get(name); value != "" {
			a.header.Set(name, value)
		}
	}
	switch response.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return a
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge,
		http.StatusUnprocessableEntity:
		return a
	}
	a = later("the store answered %s", response.Status)
	if value := response.Header.Get("Retry-After"); value != "" {
		a.header.Set("Retry-After", value)
	}
	return a
}

// enter says whether another request of a cluster may begin.
func (g *Gate) enter(cluster string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.senders[cluster]
	if s == nil {
		g.forget()
		s = &sender{seen: map[uint64]struct{}{}, since: g.Now()}
		g.senders[cluster] = s
	}
	if s.requests >= g.Limits.PerCluster {
		return false
	}
	s.requests++
	return true
}

// forget drops the clusters that have sent nothing new for hours, with their metrics.
func (g *Gate) forget() {
	for cluster, s := range g.senders {
		if s.requests > 0 || g.Now().Sub(s.since) < 3*hour {
			continue
		}
		delete(g.senders, cluster)
		of := prometheus.Labels{series.Cluster: cluster}
		g.metrics.samples.DeletePartialMatch(of)
		g.metrics.refused.DeletePartialMatch(of)
		g.metrics.active.DeletePartialMatch(of)
	}
}

func (g *Gate) leave(cluster string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.senders[cluster].requests--
}

// count wants that a cluster does not send more different series than it may. Those of a
// request that is refused do not count.
func (g *Gate) count(cluster string, c content) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.senders[cluster]
	if now := g.Now(); now.Sub(s.since) >= hour {
		s.before, s.seen, s.since = len(s.seen), map[uint64]struct{}{}, now
	}
	fresh := map[uint64]struct{}{}
	for _, one := range c.series {
		if _, known := s.seen[one.Hash()]; !known {
			fresh[one.Hash()] = struct{}{}
		}
	}
	if n := len(s.seen) + len(fresh); len(fresh) > 0 && n > g.Limits.Series {
		return refuse(http.StatusForbidden, reasonLimit,
			"cluster %q sends more than %d different series within an hour",
			cluster, g.Limits.Series)
	}
	for hash := range fresh {
		s.seen[hash] = struct{}{}
	}
	g.metrics.active.WithLabelValues(cluster).Set(float64(max(len(s.seen), s.before)))
	return nil
}
