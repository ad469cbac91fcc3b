// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pagerduty sends events to PagerDuty's Events API v2 with PagerDuty's own
// client: what Alertmanager cannot send, such as the resolution of an incident that a
// silence is about to hide, a self-test, and change events. It decides nothing.
//
// No error and nothing else that it returns has a routing key.
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

	"github.com/bellwether-dev/bellwether/outbound"
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

// maxAnswer is more than PagerDuty says of an event.
const maxAnswer = 1 << 20

// Hosts are those that serve an Events API beside PagerDuty itself, such as a proxy: a name or an address, with the
// port if the URL has one. Without any, only PagerDuty's own hosts are asked.
type Hosts []string

// own are the hosts of PagerDuty's service regions.
var own = []string{"events.pagerduty.com", "events.eu.pagerduty.com"}

// Check tells what is wrong with the URL of an Events API, as Client does.
func (h Hosts) Check(address string) error {
	_, err := h.base(address)
	return err
}

// base is what the path of a request is appended to.
func (h Hosts) base(address string) (string, error) {
	base, found := strings.CutSuffix(cmp.Or(address, DefaultURL), enqueuePath)
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%w: it must be an http or https URL, such as %s", ErrURL, DefaultURL)
	case !found:
		return "", fmt.Errorf("%w: it must end with %s", ErrURL, enqueuePath)
	case u.User != nil:
		return "", fmt.Errorf("%w: it must not have a user", ErrURL)
	case u.Scheme == "https" && slices.Contains(own, hostOf(u)), slices.Contains(h, hostOf(u)):
		return base, nil
	}
	return "", fmt.Errorf("%w: %s is no host of PagerDuty (%s with https): whoever runs the hub can add it to "+
		"hub.paging.pagerDutyHosts", ErrURL, u.Host, strings.Join(own, ", "))
}

// hostOf is the host of a URL, with its port if that is not the one of the scheme.
func hostOf(u *url.URL) string {
	host := strings.ToLower(u.Host)
	if port := map[string]string{"https": ":443", "http": ":80"}[u.Scheme]; port != "" {
		host = strings.TrimSuffix(host, port)
	}
	return host
}

// Client makes a client for a URL that ends with /v2/enqueue, as Alertmanager has it. Empty:
// DefaultURL. It does not connect. An error wraps ErrURL.
func (h Hosts) Client(address string) (*Client, error) {
	base, err := h.base(address)
	if err != nil {
		return nil, err
	}
	client := api.NewClient("", api.WithV2EventsAPIEndpoint(base))
	transport := outbound.Transport()
	// Events are rare. After an error on a connection that was idle, nobody would know whether an event was accepted.
	transport.DisableKeepAlives = true
	plain := outbound.Client(transport, maxAnswer)
	plain.Timeout = limit
	client.HTTPClient = plain
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
