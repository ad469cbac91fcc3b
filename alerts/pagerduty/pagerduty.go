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
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
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
	return attempt(ctx, "trigger the incident", func(ctx context.Context) error {
		_, err := c.api.ManageEventWithContext(ctx, event)
		return err
	})
}

// Resolve ends an incident. PagerDuty accepts it for one that is not open, too.
func (c *Client) Resolve(ctx context.Context, routingKey, dedupKey string) error {
	return attempt(ctx, "resolve the incident", func(ctx context.Context) error {
		_, err := c.api.ManageEventWithContext(ctx,
			&api.V2Event{RoutingKey: routingKey, Action: "resolve", DedupKey: dedupKey})
		return err
	})
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
	return attempt(ctx, "send the change event", func(ctx context.Context) error {
		_, err := c.api.CreateChangeEventWithContext(ctx, event)
		return err
	})
}

// attempt sends, and says of an error what was tried, and whether it makes sense to try
// again.
func attempt(ctx context.Context, tried string, send func(context.Context) error) error {
	var connected atomic.Bool
	err := send(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	}))
	if err == nil {
		return nil
	}
	var answer api.APIError
	errors.As(err, &answer)
	switch {
	case !connected.Load(), answer.StatusCode == http.StatusTooManyRequests,
		answer.StatusCode == http.StatusServiceUnavailable:
		return fmt.Errorf("%s: %w: %w", tried, ErrNotAccepted, err)
	case answer.StatusCode/100 == 4 && answer.StatusCode != http.StatusRequestTimeout:
		return fmt.Errorf("%s: %w: %w", tried, ErrRefused, err)
	}
	return fmt.Errorf("%s: %w", tried, err)
}
