// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package alertmanager reads silences, alerts and notification counts from an Alertmanager, posts alerts to it, and
// creates and ends silences. It uses Alertmanager's own client for version 2 of the API. It makes no decisions.
package alertmanager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"time"

	"github.com/go-openapi/runtime"
	openapi "github.com/go-openapi/runtime/client"
	"github.com/go-openapi/strfmt"
	"github.com/prometheus/alertmanager/api/v2/client/alert"
	"github.com/prometheus/alertmanager/api/v2/client/general"
	"github.com/prometheus/alertmanager/api/v2/client/silence"
	"github.com/prometheus/alertmanager/api/v2/models"

	"github.com/bellwether-dev/bellwether/internal/outbound"
)

// ErrAddress is wrapped by errors about an invalid URL of an Endpoint.
var ErrAddress = errors.New("invalid address of Alertmanager")

// Endpoint is an Alertmanager, or another server with its API.
type Endpoint struct {
	// URL is the URL of the server, without /api/v2. It may have a path, and a user with a password.
	URL string
	// TokenFile has a bearer token, which is read again when the file changes. CAFile has the certificates of
	// the authority that signed the server's certificate. Empty: no token, and the authorities of the system.
	TokenFile, CAFile string
	// Patience is how long to wait for a response. After one timeout, further requests
	// of the client fail at once. 0: only the context of each request limits the wait.
	Patience time.Duration
}

// Client reads from one Alertmanager, and writes its silences.
type Client struct {
	silences silence.ClientService
	alerts   alert.ClientService
	general  general.ClientService
	http     *http.Client
	metrics  *url.URL
	// Address is the URL without its password.
	Address string
}

// Silence is a silence in Alertmanager, which keeps ended silences for some days.
type Silence struct {
	ID string
	// By is the creator, and Comment the reason in the creator's words.
	By, Comment string
	Matchers    []Matcher
	// Starts is the start of the silence, and Ends its end.
	Starts, Ends time.Time
}

// Matcher selects alerts by a label.
type Matcher struct {
	Name, Value string
	// Regex means that the value is an anchored regular expression.
	// Negated means that alerts that match are not selected.
	Regex, Negated bool
}

// Alert is an alert in Alertmanager that is not resolved.
type Alert struct {
	Labels, Annotations map[string]string
	// Since is when the alert began to fire.
	Since time.Time
	// SilencedBy are the IDs of the silences that suppress its notifications.
	SilencedBy []string
}

// maxAnswer is larger than all alerts and silences of a large fleet, in bytes.
const maxAnswer = 64 << 20

// Client returns a client without connecting. An error about the URL wraps ErrAddress.
func (e Endpoint) Client() (*Client, error) {
	address, err := url.Parse(e.URL)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return nil, fmt.Errorf("%w: %q is not a URL such as http://alertmanager.monitoring:9093", ErrAddress,
			redactURL(address))
	}
	transport, err := outbound.Credentials{TokenFile: e.TokenFile, CAFile: e.CAFile}.Transport()
	if err != nil {
		return nil, fmt.Errorf("connect to Alertmanager: %w", err)
	}
	if e.Patience > 0 {
		transport = outbound.NewPatientTransport(transport, e.Patience, "")
	}
	plain := outbound.NewClient(transport, maxAnswer)
	server := openapi.NewWithClient(
		address.Host,
		path.Join("/", address.Path, "api/v2"),
		[]string{address.Scheme},
		plain,
	)
	if user := address.User; user != nil {
		password, _ := user.Password()
		server.DefaultAuthentication = openapi.BasicAuth(user.Username(), password)
	}
	return &Client{silences: silence.New(server, nil), alerts: alert.New(server, nil),
		general: general.New(server, nil), http: plain, metrics: address.JoinPath("metrics"),
		Address: address.Redacted()}, nil
}

// redactURL returns a URL without its password. It is empty for a nil URL.
func redactURL(u *url.URL) string {
	if u == nil {
		return ""
	}
	return u.Redacted()
}

// Silences returns all silences that Alertmanager has: active, future, and ended silences.
func (c *Client) Silences(ctx context.Context) ([]Silence, error) {
	answer, err := c.silences.GetSilences(silence.NewGetSilencesParamsWithContext(ctx))
	if err == nil && answer.Payload == nil {
		err = errNoList
	}
	if err != nil {
		return nil, c.wrapReadError(ctx, "silences", err)
	}
	out := make([]Silence, 0, len(answer.Payload))
	for _, s := range answer.Payload {
		out = append(out, toSilence(s))
	}
	return out, nil
}

// Alerts returns the alerts that are not resolved and that match, such as alertname=~"Bellwether.+".
func (c *Client) Alerts(ctx context.Context, matchers ...string) ([]Alert, error) {
	answer, err := c.alerts.GetAlerts(alert.NewGetAlertsParamsWithContext(ctx).WithFilter(matchers))
	if err == nil && answer.Payload == nil {
		err = errNoList
	}
	if err != nil {
		return nil, c.wrapReadError(ctx, "alerts", err)
	}
	out := make([]Alert, 0, len(answer.Payload))
	for _, a := range answer.Payload {
		entry := Alert{Labels: a.Labels, Annotations: a.Annotations}
		if a.StartsAt != nil {
			entry.Since = time.Time(*a.StartsAt)
		}
		if a.Status != nil {
			entry.SilencedBy = a.Status.SilencedBy
		}
		out = append(out, entry)
	}
	return out, nil
}

// Configuration returns the configuration that Alertmanager runs, as YAML without secrets.
func (c *Client) Configuration(ctx context.Context) (string, error) {
	answer, err := c.general.GetStatus(general.NewGetStatusParamsWithContext(ctx))
	if err == nil && (answer.Payload == nil || answer.Payload.Config == nil || answer.Payload.Config.Original == nil) {
		err = errNoConfiguration
	}
	if err != nil {
		return "", c.wrapReadError(ctx, "configuration", err)
	}
	return *answer.Payload.Config.Original, nil
}

// SetSilence creates a silence, or changes the silence with the ID of s, and returns its ID. Alertmanager
// returns a new ID if the matchers have changed or the silence has ended. A start in the past means now.
func (c *Client) SetSilence(ctx context.Context, s Silence) (string, error) {
	starts, ends := strfmt.DateTime(s.Starts), strfmt.DateTime(s.Ends)
	posted := &models.PostableSilence{ID: s.ID, Silence: models.Silence{CreatedBy: &s.By, Comment: &s.Comment,
		StartsAt: &starts, EndsAt: &ends}}
	for _, m := range s.Matchers {
		isEqual := !m.Negated
		posted.Matchers = append(posted.Matchers, &models.Matcher{Name: &m.Name, Value: &m.Value, IsRegex: &m.Regex,
			IsEqual: &isEqual})
	}
	answer, err := c.silences.PostSilences(silence.NewPostSilencesParamsWithContext(ctx).WithSilence(posted))
	if err == nil && (answer.Payload == nil || answer.Payload.SilenceID == "") {
		err = errNoID
	}
	if err != nil {
		return "", c.wrapError(ctx, "make a silence in", err)
	}
	return answer.Payload.SilenceID, nil
}

// errNoID means that a response has no ID of the new silence.
var errNoID = errors.New("the answer has no ID; check the address")

// EndSilence ends a silence now. It is not an error if Alertmanager does not have the silence.
func (c *Client) EndSilence(ctx context.Context, id string) error {
	_, err := c.silences.DeleteSilence(silence.NewDeleteSilenceParamsWithContext(ctx).WithSilenceID(strfmt.UUID(id)))
	var unknown *silence.DeleteSilenceNotFound
	if err == nil || errors.As(err, &unknown) {
		return nil
	}
	return c.wrapError(ctx, "end silence "+id+" in", err)
}

// errNoConfiguration means that a status has no configuration, so the server is not an Alertmanager.
var errNoConfiguration = errors.New("the answer has no configuration; check the address")

// errNoList means that a response has no list, so the server is not an Alertmanager.
var errNoList = errors.New("the answer has no list; check the address")

// wrapReadError wraps an error of reading a subject.
func (c *Client) wrapReadError(ctx context.Context, subject string, err error) error {
	return c.wrapError(ctx, "read the "+subject+" of", err)
}

// wrapError adds the action and the server to an error. If the context has ended, the error is its cause. Errors
// of the client are replaced, because they name the client's functions instead of the server's response.
func (c *Client) wrapError(ctx context.Context, action string, err error) error {
	var refused interface {
		Code() int
		GetPayload() string
	}
	var apiError *runtime.APIError
	var unreachable *url.Error
	switch {
	case context.Cause(ctx) != nil:
		err = context.Cause(ctx)
	case errors.As(err, &unreachable):
		err = unreachable.Err // without the address, which the message already contains
	case errors.As(err, &apiError): // a status that the definition of the API does not list
		err = fmt.Errorf("it answered with status %d", apiError.Code)
	case errors.As(err, &refused): // a status that the definition of the API lists
		err = fmt.Errorf("it answered with status %d: %s", refused.Code(), refused.GetPayload())
	}
	return fmt.Errorf("%s Alertmanager at %s: %w", action, c.Address, err)
}

// toSilence converts a silence, with zero values for missing fields. By the API
// only isEqual may be missing, which Alertmanager did not have before version 0.22.
func toSilence(s *models.GettableSilence) Silence {
	out := Silence{ID: dereference(s.ID), By: dereference(s.CreatedBy), Comment: dereference(s.Comment),
		Starts: time.Time(dereference(s.StartsAt)), Ends: time.Time(dereference(s.EndsAt))}
	for _, m := range s.Matchers {
		out.Matchers = append(out.Matchers, Matcher{Name: dereference(m.Name), Value: dereference(m.Value),
			Regex: dereference(m.IsRegex), Negated: m.IsEqual != nil && !*m.IsEqual})
	}
	return out
}

// dereference returns the value of a pointer, or the zero value for nil.
func dereference[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}
