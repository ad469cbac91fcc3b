// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alertmanager

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

// What a notification says of a group, or of an alert.
const (
	Firing   = "firing"
	Resolved = "resolved"
)

// Notification is what Alertmanager sent to a webhook, as far as tests look at it.
type Notification struct {
	// Path is that of the webhook's address, which tells the receivers apart.
	Path string `json:"-"`
	// At is when it arrived.
	At time.Time `json:"-"`

	// GroupKey identifies the group. Of it, pagers make the key of an incident.
	GroupKey    string            `json:"groupKey"`
	GroupLabels map[string]string `json:"groupLabels"`
	// Status is Firing while at least one alert of the group fires.
	Status string  `json:"status"`
	Alerts []Alert `json:"alerts"`
}

// Alert is one of a notification.
type Alert struct {
	Status      string            `json:"status"`
	Fingerprint string            `json:"fingerprint"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// Webhooks is a server that accepts every notification, at any path, and keeps it.
type Webhooks struct {
	server *httptest.Server
	mu     sync.Mutex
	got    []Notification
}

// NewWebhooks starts a server on loopback, until Close.
func NewWebhooks() *Webhooks {
	w := &Webhooks{}
	w.server = httptest.NewServer(http.HandlerFunc(w.receive))
	return w
}

// Close ends the server.
func (w *Webhooks) Close() { w.server.Close() }

// URL is where the server is, without a path.
func (w *Webhooks) URL() string { return w.server.URL }

func (w *Webhooks) receive(out http.ResponseWriter, in *http.Request) {
	n := Notification{Path: in.URL.Path, At: time.Now()}
	if err := json.NewDecoder(in.Body).Decode(&n); err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.got = append(w.got, n)
}

// At returns the notifications that came to a path, in the order in which they came.
func (w *Webhooks) At(path string) []Notification {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Notification
	for _, n := range w.got {
		if n.Path == path {
			out = append(out, n)
		}
	}
	return out
}

// Statuses are those of each group that came to a path, in the order in which they came, by the group's key.
func (w *Webhooks) Statuses(path string) map[string][]string {
	out := map[string][]string{}
	for _, n := range w.At(path) {
		out[n.GroupKey] = append(out[n.GroupKey], n.Status)
	}
	return out
}
