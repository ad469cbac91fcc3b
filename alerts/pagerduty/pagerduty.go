// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pagerduty sends events to PagerDuty's Events API v2 with PagerDuty's own
// client: what Alertmanager cannot send, such as the resolution of an incident that a
// silence is about to hide, a self-test, and change events. It decides nothing.
//
// No error and nothing else that it returns has a routing key.
package pagerduty

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	api "github.com/PagerDuty/go-pagerduty"
)

// DefaultURL is where PagerDuty takes events in its service region US.
const DefaultURL = "https://events.pagerduty.com/v2/enqueue"

const (
	enqueuePath = "/v2/enqueue"
	limit       = 15 * time.Second
)

var (
	// ErrURL says that the URL of the Events API cannot be used.
	ErrURL = errors.New("invalid URL of the Events API")
	// ErrRefused says that PagerDuty refused an event, and would refuse it again. Any other
	// error of sending may be gone the next time.
	ErrRefused = errors.New("PagerDuty refused the event")
	// ErrNotAccepted says that PagerDuty certainly did not accept an event, and may accept it
	// the next time: no connection was made, or the answer was 429 or 503. After an error
	// that is neither this nor ErrRefused, such as a timeout, it may have accepted it.
	ErrNotAccepted = errors.New("PagerDuty did not accept the event")
)

// Client sends events to one Events API. All methods may be called by several goroutines.
type Client struct{ api *api.Client }

// Event opens an incident, or updates the open one with its key.
type Event struct {
	// DedupKey is by what PagerDuty knows the incident: at most 255 characters.
	DedupKey string
	// Summary is the title of the incident: at most 1024 characters.
	Summary string
	// Source is what has the problem, and Severity one of critical, error, warning and info.
	Source, Severity string
	// Details are shown as a table.
	Details map[string]any
	// Links are shown with the incident.
	Links []Link
}

// Change is something that was changed, which PagerDuty shows beside incidents. It
// notifies nobody.
type Change struct {
	Summary, Source string
	Time            time.Time
	Details         map[string]any
	Links           []Link
}

// Link is a page in the web.
type Link struct {
	URL  string `json:"href"`
	Text string `json:"text,omitempty"`
}

// New makes a client for a URL that ends with /v2/enqueue, as Alertmanager has it. Empty:
// DefaultURL. It does not connect. An error wraps ErrURL.
func New(address string) (*Client, error) {
	if address == "" {
		address = DefaultURL
	}
	base, found := strings.CutSuffix(address, enqueuePath)
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%w: it must be an http or https URL, such as %s", ErrURL, DefaultURL)
	case !found:
		return nil, fmt.Errorf("%w: it must end with %s", ErrURL, enqueuePath)
	}
	client := api.NewClient("", api.WithV2EventsAPIEndpoint(base))
	client.HTTPClient = &http.Client{Timeout: limit}
	return &Client{client}, nil
}

// Trigger opens an incident, or updates the one that is open.
func (c *Client) Trigger(ctx context.Context, routingKey string, e Event) error {
	event := &api.V2Event{
		RoutingKey: routingKey, Action: "trigger", DedupKey: e.DedupKey, Client: "Bellwether",
		Payload: &api.V2Payload{Summary: e.Summary, Source: e.Source, Severity: e.Severity},
	}
	if len(e.Details) > 0 { // the API refuses null
		event.Payload.Details = e.Details
	}
	for _, link := range e.Links {
		event.Links = append(event.Links, link)
	}
	_, err := c.api.ManageEventWithContext(ctx, event)
	return failure("trigger the incident", err)
}

// Resolve ends an incident. PagerDuty accepts it for one that is not open, too.
func (c *Client) Resolve(ctx context.Context, routingKey, dedupKey string) error {
	_, err := c.api.ManageEventWithContext(ctx,
		&api.V2Event{RoutingKey: routingKey, Action: "resolve", DedupKey: dedupKey})
	return failure("resolve the incident", err)
}

// Change sends a change event.
func (c *Client) Change(ctx context.Context, routingKey string, change Change) error {
	event := api.ChangeEvent{RoutingKey: routingKey, Payload: api.ChangeEventPayload{
		Summary: change.Summary, Source: change.Source, CustomDetails: change.Details}}
	if !change.Time.IsZero() {
		event.Payload.Timestamp = change.Time.UTC().Format(time.RFC3339)
	}
	for _, link := range change.Links {
		event.Links = append(event.Links, api.ChangeEventLink{Href: link.URL, Text: link.Text})
	}
	_, err := c.api.CreateChangeEventWithContext(ctx, event)
	return failure("send the change event", err)
}

// failure says what was tried, and tells what is refused for good from what may work the
// next time.
func failure(tried string, err error) error {
	if err == nil {
		return nil
	}
	var answer api.APIError
	if errors.As(err, &answer) && answer.StatusCode/100 == 4 && !answer.Temporary() &&
		answer.StatusCode != http.StatusRequestTimeout {
		return fmt.Errorf("%s: %w: %w", tried, ErrRefused, err)
	}
	if !reached(err) || answer.StatusCode == http.StatusTooManyRequests ||
		answer.StatusCode == http.StatusServiceUnavailable {
		return fmt.Errorf("%s: %w: %w", tried, ErrNotAccepted, err)
	}
	return fmt.Errorf("%s: %w", tried, err)
}

// reached is false where there was no connection to send the event over.
func reached(err error) bool {
	var operation *net.OpError
	if errors.As(err, &operation) && (operation.Op == "dial" || operation.Op == "proxyconnect") {
		return false
	}
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	return !errors.As(err, &name) && !errors.As(err, &certificate)
}
