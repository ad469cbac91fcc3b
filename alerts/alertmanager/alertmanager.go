// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package alertmanager reads silences, alerts and counts of notifications from an
// Alertmanager, posts alerts to it, and makes and ends silences, by version 2 of its API
// and with its own client. It decides nothing.
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

	"github.com/bellwether-dev/bellwether/outbound"
)

// ErrAddress says that the URL of an Endpoint cannot be used.
var ErrAddress = errors.New("invalid address of Alertmanager")

// Endpoint is an Alertmanager, or another server with its API.
type Endpoint struct {
	// URL of the server, without /api/v2. It may have a path, and a user with a
	// password.
	URL string
	// TokenFile has a bearer token, which is read again when the file changes, and
	// CAFile the certificates of the authority that signed the server's. Empty: no
	// token, and the authorities of the system.
	TokenFile, CAFile string
	// Patience is how long to wait for an answer. After a server has not answered once, further requests of the client
	// fail at once. 0: as long as the context of each request permits.
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

// Silence is one that Alertmanager has. It keeps those that ended for some days.
type Silence struct {
	ID string
	// By is who made it, and Comment why, in that person's words.
	By, Comment string
	Matchers    []Matcher
	// Starts is when it began or begins, and Ends when it ended or ends.
	Starts, Ends time.Time
}

// Matcher selects alerts by a label.
type Matcher struct {
	Name, Value string
	// Regex says that the value is an anchored regular expression, and Negated that
	// alerts that match are not selected.
	Regex, Negated bool
}

// Alert is one that Alertmanager has and that is not resolved.
type Alert struct {
	Labels, Annotations map[string]string
	// Since is when it began to fire.
	Since time.Time
	// SilencedBy are the IDs of the silences because of which nobody is notified.
	SilencedBy []string
}

// maxAnswer is more than all alerts and silences of a large fleet.
const maxAnswer = 64 << 20

// Client makes a client. It does not connect yet. An error about the URL wraps
// ErrAddress.
func (e Endpoint) Client() (*Client, error) {
	address, err := url.Parse(e.URL)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return nil, fmt.Errorf("%w: %q is not a URL such as http://alertmanager.monitoring:9093", ErrAddress,
			redacted(address))
	}
	transport, err := outbound.Credentials{TokenFile: e.TokenFile, CAFile: e.CAFile}.Transport()
	if err != nil {
		return nil, fmt.Errorf("connect to Alertmanager: %w", err)
	}
	if e.Patience > 0 {
		transport = outbound.Patient(transport, e.Patience, "")
	}
	plain := outbound.Client(transport, maxAnswer)
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

// redacted is a URL without its password; empty for one that cannot be read.
func redacted(u *url.URL) string {
	if u == nil {
		return ""
	}
	return u.Redacted()
}

// Silences returns all silences that Alertmanager still has: those in force, those
// that begin later, and those that ended.
func (c *Client) Silences(ctx context.Context) ([]Silence, error) {
	answer, err := c.silences.GetSilences(silence.NewGetSilencesParamsWithContext(ctx))
	if err == nil && answer.Payload == nil {
		err = errNoList
	}
	if err != nil {
		return nil, c.failure(ctx, "silences", err)
	}
	out := make([]Silence, 0, len(answer.Payload))
	for _, s := range answer.Payload {
		out = append(out, silenceOf(s))
	}
	return out, nil
}

// Alerts returns the alerts that are not resolved and that matchers select, such as
// alertname=~"Bellwether.+".
func (c *Client) Alerts(ctx context.Context, matchers ...string) ([]Alert, error) {
	answer, err := c.alerts.GetAlerts(alert.NewGetAlertsParamsWithContext(ctx).WithFilter(matchers))
	if err == nil && answer.Payload == nil {
		err = errNoList
	}
	if err != nil {
		return nil, c.failure(ctx, "alerts", err)
	}
	out := make([]Alert, 0, len(answer.Payload))
	for _, a := range answer.Payload {
		one := Alert{Labels: a.Labels, Annotations: a.Annotations}
		if a.StartsAt != nil {
			one.Since = time.Time(*a.StartsAt)
		}
		if a.Status != nil {
			one.SilencedBy = a.Status.SilencedBy
		}
		out = append(out, one)
	}
	return out, nil
}

// Configuration returns the configuration that Alertmanager runs, as YAML. It has no
// secrets.
func (c *Client) Configuration(ctx context.Context) (string, error) {
	answer, err := c.general.GetStatus(general.NewGetStatusParamsWithContext(ctx))
	if err == nil && (answer.Payload == nil || answer.Payload.Config == nil || answer.Payload.Config.Original == nil) {
		err = errNoConfiguration
	}
	if err != nil {
		return "", c.failure(ctx, "configuration", err)
	}
	return *answer.Payload.Config.Original, nil
}

// SetSilence makes a silence, or changes the one with the ID of s, and returns its ID. A
// silence that has other matchers than before gets another ID, and so does one that has
// ended. A start in the past means now.
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
		return "", c.failed(ctx, "make a silence in", err)
	}
	return answer.Payload.SilenceID, nil
}

// errNoID says that an answer does not name the silence that was made.
var errNoID = errors.New("the answer has no ID; check the address")

// EndSilence ends a silence now. One that Alertmanager does not have is not an error.
func (c *Client) EndSilence(ctx context.Context, id string) error {
	_, err := c.silences.DeleteSilence(silence.NewDeleteSilenceParamsWithContext(ctx).WithSilenceID(strfmt.UUID(id)))
	var unknown *silence.DeleteSilenceNotFound
	if err == nil || errors.As(err, &unknown) {
		return nil
	}
	return c.failed(ctx, "end silence "+id+" in", err)
}

// errNoConfiguration says that a status has no configuration: what was asked is not
// Alertmanager.
var errNoConfiguration = errors.New("the answer has no configuration; check the address")

// errNoList says that an answer has no list: what was asked is not Alertmanager.
var errNoList = errors.New("the answer has no list; check the address")

// failure says that something could not be read.
func (c *Client) failure(ctx context.Context, what string, err error) error {
	return c.failed(ctx, "read the "+what+" of", err)
}

// failed says which server failed and why. The client's own errors name its functions in
// place of what the server answered.
func (c *Client) failed(ctx context.Context, what string, err error) error {
	var refused interface {
		Code() int
		GetPayload() string
	}
	var other *runtime.APIError
	var unreachable *url.Error
	switch {
	case context.Cause(ctx) != nil:
		err = context.Cause(ctx)
	case errors.As(err, &unreachable):
		err = unreachable.Err // without the address, which is named already
	case errors.As(err, &other):
		err = fmt.Errorf("it answered with status %d", other.Code)
	case errors.As(err, &refused):
		err = fmt.Errorf("it answered with status %d: %s", refused.Code(), refused.GetPayload())
	}
	return fmt.Errorf("%s Alertmanager at %s: %w", what, c.Address, err)
}

// silenceOf fills in what a server left out. The API says that nothing is left out
// but isEqual, which Alertmanager did not have before version 0.22.
func silenceOf(s *models.GettableSilence) Silence {
	out := Silence{ID: value(s.ID), By: value(s.CreatedBy), Comment: value(s.Comment),
		Starts: time.Time(value(s.StartsAt)), Ends: time.Time(value(s.EndsAt))}
	for _, m := range s.Matchers {
		out.Matchers = append(out.Matchers, Matcher{Name: value(m.Name), Value: value(m.Value),
			Regex: value(m.IsRegex), Negated: m.IsEqual != nil && !*m.IsEqual})
	}
	return out
}

// value is what a pointer points to, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}
