// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

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
	"github.com/bellwether-dev/bellwether/internal/outbound"
)

// ErrUnauthenticated is wrapped by errors about a token that belongs to no cluster.
var ErrUnauthenticated = errors.New("the token belongs to no cluster")

// Limits are the limits of the requests that the gate accepts. Zero values have defaults.
type Limits struct {
	// Body is the maximum size of a request in bytes, and Decoded the
	// maximum size of its uncompressed content. Defaults: 1 MiB, 16 MiB.
	Body, Decoded int
	// Series is how many different series a cluster may send within an hour. Default: 20,000.
	Series int
	// Requests is the maximum number of concurrent requests, and
	// PerCluster the maximum for one cluster. Defaults: 64, 4.
	Requests, PerCluster int
}

// applyDefaults returns the limits with the defaults in place of zero values.
func (l Limits) applyDefaults() Limits {
	for value, defaultValue := range map[*int]int{
		&l.Body: 1 << 20, &l.Decoded: 16 << 20, &l.Series: 20_000, &l.Requests: 64, &l.PerCluster: 4,
	} {
		if *value <= 0 {
			*value = defaultValue
		}
	}
	return l
}

// Store is the destination of series.
type Store struct {
	// URL is the remote-write URL.
	URL *url.URL
	// Client has the credentials of the store.
	Client *http.Client
	// Header is added to each request, such as the header of a tenant.
	Header http.Header
}

// GateOptions configure a Gate.
type GateOptions struct {
	// Authenticate returns the cluster of a token that was sent from an address. After an error that wraps
	// ErrUnauthenticated the sender gets status 401; after any other error it sends the request again.
	Authenticate func(ctx context.Context, token, address string) (cluster string, err error)
	Store        Store
	Limits       Limits
	// Metrics registers the metrics of the gate.
	Metrics prometheus.Registerer
	Now     func() time.Time
}

// Gate is the HTTP handler that checks and forwards remote writes.
type Gate struct {
	GateOptions

	requests chan struct{}
	metrics  metrics

	mu      sync.Mutex
	senders map[string]*sender
}

// sender is the state of a cluster that sends.
type sender struct {
	requests int
	// hashes are the hashes of the series of the hour that began at since,
	// and previousCount is the number of series in the hour before.
	hashes        map[uint64]struct{}
	since         time.Time
	previousCount int
}

const (
	// seriesWindow is the time in which different series are counted.
	seriesWindow = time.Hour
	// retryAfter is the value of the header Retry-After, in seconds.
	retryAfter = "10"
	// storeTimeout limits a request to the store.
	storeTimeout = 30 * time.Second
)

type metrics struct {
	requests, samples, refused *prometheus.CounterVec
	active                     *prometheus.GaugeVec
}

// NewGate returns a gate and registers its metrics.
func NewGate(o GateOptions) (*Gate, error) {
	o.Limits = o.Limits.applyDefaults()
	g := &Gate{GateOptions: o, requests: make(chan struct{}, o.Limits.Requests), senders: map[string]*sender{}}
	all := series.RemoteWriteGate()
	counter := func(s series.Series) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: s.Name, Help: s.Help}, s.Labels)
	}
	g.metrics = metrics{requests: counter(all[0]), samples: counter(all[1]), refused: counter(all[2]),
		active: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: all[3].Name, Help: all[3].Help}, all[3].Labels)}
	for _, c := range []prometheus.Collector{g.metrics.requests, g.metrics.samples, g.metrics.refused,
		g.metrics.active} {
		if err := o.Metrics.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return g, nil
}

// answer is the response to a sender.
type answer struct {
	status  int
	message string
	header  http.Header
}

// newRetryAnswer returns an answer after which the sender sends the same request again. It uses
// status 503, because all senders retry it; only some senders are configured to retry 429.
func newRetryAnswer(format string, args ...any) answer {
	return answer{http.StatusServiceUnavailable, fmt.Sprintf(format, args...),
		http.Header{"Retry-After": {retryAfter}}}
}

// ServeHTTP implements http.Handler.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := g.handle(w, r)
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

// handle checks a request and forwards it to the store. The cheap checks are first: the token is
// checked before the body is read, and the limits of concurrent requests after the token.
func (g *Gate) handle(w http.ResponseWriter, r *http.Request) answer {
	if r.Method != http.MethodPost {
		return answer{http.StatusMethodNotAllowed, "use POST", http.Header{"Allow": {http.MethodPost}}}
	}
	if r.ContentLength > int64(g.Limits.Body) {
		return answer{status: http.StatusRequestEntityTooLarge, message: g.newTooBigError().Error()}
	}
	if _, err := readMessageType(r.Header); err != nil {
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
		return newRetryAnswer("cannot check the token now: %v", err)
	}
	select {
	case g.requests <- struct{}{}:
		defer func() { <-g.requests }()
	default:
		return newRetryAnswer("%d requests are under way", cap(g.requests))
	}
	if !g.startRequest(cluster) {
		return newRetryAnswer("%d requests of cluster %q are under way", g.Limits.PerCluster, cluster)
	}
	defer g.endRequest(cluster)
	return g.writeRequest(w, r, cluster)
}

// writeRequest checks and forwards a request of a cluster.
func (g *Gate) writeRequest(w http.ResponseWriter, r *http.Request, cluster string) answer {
	body, c, err := g.readRequest(w, r, cluster)
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		g.metrics.refused.WithLabelValues(cluster, refused.reason).Inc()
		return answer{status: refused.status, message: refused.message}
	case err != nil:
		return answer{status: http.StatusBadRequest, message: err.Error()} // the body did not arrive completely
	case len(c.series) == 0:
		// The request has only metadata, with the names of all metrics of the
		// sender. Metadata is not forwarded, because no program reads it.
		return answer{status: http.StatusNoContent}
	}
	a := g.forward(r, body)
	if a.status/100 == 2 {
		g.metrics.samples.WithLabelValues(cluster).Add(float64(c.samples))
	}
	return a
}

// readRequest reads, decodes and checks the body of a request.
func (g *Gate) readRequest(w http.ResponseWriter, r *http.Request, cluster string) ([]byte, content, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(g.Limits.Body)))
	var tooBig *http.MaxBytesError
	if errors.As(err, &tooBig) {
		return nil, content{}, g.newTooBigError()
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
	return body, c, g.countSeries(cluster, c)
}

func (g *Gate) newTooBigError() error {
	return refuse(http.StatusRequestEntityTooLarge, reasonTooBig,
		"a request may have at most %d bytes: lower max_samples_per_send", g.Limits.Body)
}

// forwardedHeaders are the headers of a request that are sent to the store.
var forwardedHeaders = []string{"Content-Type", "Content-Encoding", "X-Prometheus-Remote-Write-Version", "User-Agent"}

// returnedHeaders are the headers of the store's response that are sent to the sender.
var returnedHeaders = []string{
	"X-Prometheus-Remote-Write-Samples-Written", "X-Prometheus-Remote-Write-Histograms-Written",
	"X-Prometheus-Remote-Write-Exemplars-Written",
}

// forward sends a request to the store. If the store refuses the samples, its response goes
// to the sender, which drops the samples. After any other failure the sender must retry.
func (g *Gate) forward(r *http.Request, body []byte) answer {
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	out, err := http.NewRequestWithContext(ctx, http.MethodPost, g.Store.URL.String(), bytes.NewReader(body))
	if err != nil {
		return newRetryAnswer("make a request: %v", err)
	}
	for _, name := range forwardedHeaders {
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
		return newRetryAnswer("the store redirects: --store-url of the gate must be the address itself")
	case err != nil:
		return newRetryAnswer("the store does not answer") // the sender must not get the address of the store
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	a := answer{status: response.StatusCode, message: strings.TrimSpace(string(text)), header: http.Header{}}
	for _, name := range returnedHeaders {
		if value := response.Header.Get(name); value != "" {
			a.header.Set(name, value)
		}
	}
	switch response.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent: // the store accepted the samples
		return a
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge,
		http.StatusUnprocessableEntity: // the store would refuse the samples again
		return a
	}
	a = newRetryAnswer("the store answered %s", response.Status)
	if value := response.Header.Get("Retry-After"); value != "" {
		a.header.Set("Retry-After", value)
	}
	return a
}

// startRequest reports whether another request of a cluster may start, and counts it.
func (g *Gate) startRequest(cluster string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.senders[cluster]
	if s == nil {
		g.deleteInactive()
		s = &sender{hashes: map[uint64]struct{}{}, since: g.Now()}
		g.senders[cluster] = s
	}
	if s.requests >= g.Limits.PerCluster {
		return false
	}
	s.requests++
	return true
}

// deleteInactive deletes the clusters that have sent no requests for hours, and their metrics.
func (g *Gate) deleteInactive() {
	for cluster, s := range g.senders {
		if s.requests > 0 || g.Now().Sub(s.since) < 3*seriesWindow {
			continue
		}
		delete(g.senders, cluster)
		labels := prometheus.Labels{series.Cluster: cluster}
		g.metrics.samples.DeletePartialMatch(labels)
		g.metrics.refused.DeletePartialMatch(labels)
		g.metrics.active.DeletePartialMatch(labels)
	}
}

// endRequest counts a request of a cluster as finished.
func (g *Gate) endRequest(cluster string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.senders[cluster].requests--
}

// countSeries counts the different series of a cluster. It returns a refusal if the
// request would exceed the limit; the series of a refused request are not counted.
func (g *Gate) countSeries(cluster string, c content) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.senders[cluster]
	if now := g.Now(); now.Sub(s.since) >= seriesWindow {
		s.previousCount, s.hashes, s.since = len(s.hashes), map[uint64]struct{}{}, now
	}
	newHashes := map[uint64]struct{}{}
	for _, entry := range c.series {
		if _, known := s.hashes[entry.Hash()]; !known {
			newHashes[entry.Hash()] = struct{}{}
		}
	}
	if n := len(s.hashes) + len(newHashes); len(newHashes) > 0 && n > g.Limits.Series {
		return refuse(http.StatusForbidden, reasonLimit,
			"cluster %q sends more than %d different series within an hour",
			cluster, g.Limits.Series)
	}
	for hash := range newHashes {
		s.hashes[hash] = struct{}{}
	}
	// The number of the previous hour is shown until it is exceeded, so that the metric does not drop every hour.
	g.metrics.active.WithLabelValues(cluster).Set(float64(max(len(s.hashes), s.previousCount)))
	return nil
}
