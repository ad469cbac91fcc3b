// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pagerduty sends events to PagerDuty's Events API v2 with PagerDuty's own
// client. It sends events that Alertmanager cannot send: the resolution of an incident
// that a silence is about to hide, self-tests, and change events. It makes no decisions.
//
// Its errors and results never contain a routing key.
package pagerduty

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	api "github.com/PagerDuty/go-pagerduty"

	"github.com/bellwether-dev/bellwether/internal/outbound"
)

// DefaultURL is the URL of the Events API in PagerDuty's service region US.
const DefaultURL = "https://events.pagerduty.com/v2/enqueue"

const (
	enqueuePath    = "/v2/enqueue"
	requestTimeout = 15 * time.Second
)

var (
	// ErrURL is wrapped by errors about an invalid URL of the Events API.
	ErrURL = errors.New("invalid URL of the Events API")
	// ErrRefused means that PagerDuty refused an event, and would refuse it
	// again. After any other error of sending, another attempt may succeed.
	ErrRefused = errors.New("PagerDuty refused the event")
	// ErrNotAccepted means that PagerDuty did not accept an event, and may accept it at the next
	// attempt: no connection was made, or the status was 429 or 503. After an error that is neither
	// ErrNotAccepted nor ErrRefused, such as a timeout, PagerDuty may have accepted the event.
	ErrNotAccepted = errors.New("PagerDuty did not accept the event")
)

// Client sends events to one Events API. It is safe for concurrent use.
type Client struct{ api *api.Client }

// Event opens an incident, or updates the open incident with the same key.
type Event struct {
	// DedupKey identifies the incident in PagerDuty: at most 255 characters.
	DedupKey string
	// Summary is the title of the incident: at most 1024 characters.
	Summary string
	// Source is the object with the problem. Severity is one of critical, error, warning and info.
	Source, Severity string
	// Details are shown as a table.
	Details map[string]any
	// Links are shown with the incident.
	Links []Link
}

// Change is a change that PagerDuty shows with incidents. It notifies no user.
type Change struct {
	Summary, Source string
	Time            time.Time
	Details         map[string]any
	Links           []Link
}

// Link is a link to a web page.
type Link struct {
	URL  string `json:"href"`
	Text string `json:"text,omitempty"`
}

// maxAnswer is larger than PagerDuty's responses, in bytes.
const maxAnswer = 1 << 20

// Hosts are the hosts that serve an Events API in addition to PagerDuty itself, such as a proxy: a name or
// an address, with the port if the URL has one. If it is empty, only PagerDuty's own hosts are allowed.
type Hosts []string

// ownHosts are the hosts of PagerDuty's service regions.
var ownHosts = []string{"events.pagerduty.com", "events.eu.pagerduty.com"}

// Check returns the error of Client for the URL of an Events API.
func (h Hosts) Check(address string) error {
	_, err := h.parseBase(address)
	return err
}

// parseBase checks a URL and returns the base that request paths are appended to. An empty
// address is DefaultURL. Only PagerDuty's own hosts, with https, and the Hosts are allowed.
func (h Hosts) parseBase(address string) (string, error) {
	base, found := strings.CutSuffix(cmp.Or(address, DefaultURL), enqueuePath)
	u, err := url.Parse(base)
	isOwnHost := func() bool { return u.Scheme == "https" && slices.Contains(ownHosts, normalizeHost(u)) }
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%w: it must be an http or https URL, such as %s", ErrURL, DefaultURL)
	case !found:
		return "", fmt.Errorf("%w: it must end with %s", ErrURL, enqueuePath)
	case u.User != nil:
		return "", fmt.Errorf("%w: it must not have a user", ErrURL)
	case isOwnHost(), slices.Contains(h, normalizeHost(u)):
		return base, nil
	}
	return "", fmt.Errorf("%w: %s is no host of PagerDuty (%s with https): an administrator of the hub can add it to "+
		"hub.paging.pagerDutyHosts", ErrURL, u.Host, strings.Join(ownHosts, ", "))
}

// normalizeHost returns the host of a URL in lower case, without the default port of the scheme.
func normalizeHost(u *url.URL) string {
	host := strings.ToLower(u.Host)
	if port := map[string]string{"https": ":443", "http": ":80"}[u.Scheme]; port != "" {
		host = strings.TrimSuffix(host, port)
	}
	return host
}

// Client returns a client for a URL that ends with /v2/enqueue, as in Alertmanager's
// configuration. Empty: DefaultURL. It does not connect. An error wraps ErrURL.
func (h Hosts) Client(address string) (*Client, error) {
	base, err := h.parseBase(address)
	if err != nil {
		return nil, err
	}
	client := api.NewClient("", api.WithV2EventsAPIEndpoint(base))
	transport := outbound.NewTransport()
	// Events are rare. If keep-alive were enabled, an error on an idle
	// connection would not show whether PagerDuty accepted an event.
	transport.DisableKeepAlives = true
	plain := outbound.NewClient(transport, maxAnswer)
	plain.Timeout = requestTimeout
	client.HTTPClient = plain
	return &Client{client}, nil
}

// Trigger opens an incident, or updates the open incident with the same key.
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

// Resolve ends an incident. It is not an error if the incident is not open.
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

// attempt calls send, and adds the action to its error. The error wraps ErrNotAccepted
// or ErrRefused if the response shows whether another attempt can succeed.
func attempt(ctx context.Context, action string, send func(context.Context) error) error {
	var connected atomic.Bool
	err := send(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	}))
	if err == nil {
		return nil
	}
	var answer api.APIError
	errors.As(err, &answer) // the status stays 0 if there was no response
	switch {
	// PagerDuty has not processed the event.
	case !connected.Load(), answer.StatusCode == http.StatusTooManyRequests,
		answer.StatusCode == http.StatusServiceUnavailable:
		return fmt.Errorf("%s: %w: %w", action, ErrNotAccepted, err)
	// A status 4xx is final, except a timeout, after which PagerDuty may have accepted the event.
	case answer.StatusCode/100 == 4 && answer.StatusCode != http.StatusRequestTimeout:
		return fmt.Errorf("%s: %w: %w", action, ErrRefused, err)
	}
	return fmt.Errorf("%s: %w", action, err)
}
