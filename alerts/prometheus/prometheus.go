// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prometheus is the client of a Prometheus for the hub and the command
// line: it reads the loaded rules and evaluates queries. It makes no decisions.
package prometheus

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/bellwether-dev/bellwether/internal/outbound"
)

// ErrAddress is wrapped by errors about an invalid URL of an Endpoint.
var ErrAddress = errors.New("invalid address of Prometheus")

// Endpoint is a Prometheus, or another server with its API.
type Endpoint struct {
	// URL of the API, without /api/v1.
	URL string
	// TokenFile has a bearer token, which is read again when the file changes. CAFile has the certificates of
	// the authority that signed the server's certificate. Empty: no token, and the authorities of the system.
	TokenFile, CAFile string
	// Patience is how long to wait for a response of the server, either to the request itself
	// or to a cheap test query. While the server answers test queries, only the context of a
	// request limits its duration. After the server has once not responded, further requests
	// of the client fail at once. 0: only the context of each request limits the wait.
	Patience time.Duration
}

// maxAnswer is larger than the rules of a large fleet, or a sample of each of its SLIs, in bytes.
const maxAnswer = 64 << 20

// Client evaluates queries of one Prometheus.
type Client struct {
	api prometheus.API
	// Address is the URL without its password.
	Address string
}

// Client returns a client without connecting. An error about the URL wraps ErrAddress.
func (e Endpoint) Client() (*Client, error) {
	address, err := url.Parse(e.URL)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return nil, fmt.Errorf("%w: %q is not a URL such as http://prometheus.monitoring:9090", ErrAddress, e.URL)
	}
	transport, err := outbound.Credentials{TokenFile: e.TokenFile, CAFile: e.CAFile}.Transport()
	if err != nil {
		return nil, fmt.Errorf("connect to Prometheus: %w", err)
	}
	if e.Patience > 0 {
		transport = outbound.NewPatientTransport(transport, e.Patience,
			address.JoinPath("api/v1/query").String()+"?query=1")
	}
	client, err := api.NewClient(api.Config{Address: e.URL, Client: outbound.NewClient(transport, maxAnswer)})
	if err != nil {
		return nil, fmt.Errorf("make client of Prometheus: %w", err)
	}
	return &Client{prometheus.NewAPI(client), address.Redacted()}, nil
}

// Rules returns all rules that are loaded.
func (c *Client) Rules(ctx context.Context) (prometheus.RulesResult, error) {
	rules, err := c.api.Rules(ctx, nil)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return rules, fmt.Errorf("read the rules of Prometheus at %s: %w", c.Address, err)
	}
	return rules, nil
}

// Retention returns how long Prometheus keeps samples. It returns 0 if only their size is limited.
func (c *Client) Retention(ctx context.Context) (time.Duration, error) {
	info, err := c.api.Runtimeinfo(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the retention of Prometheus at %s: %w", c.Address, err)
	}
	// The value is a duration, a size, or both as in "15d or 10GiB".
	first, _, _ := strings.Cut(info.StorageRetention, " ")
	retention, err := model.ParseDuration(first)
	if err != nil {
		return 0, nil //nolint:nilerr // a size
	}
	return time.Duration(retention), nil
}

// Query evaluates a query whose result is a vector.
func (c *Client) Query(ctx context.Context, query string, at time.Time) (model.Vector, error) {
	value, _, _, err := c.api.Query(ctx, query, at)
	if err != nil {
		return nil, fmt.Errorf("query %q: %w", query, err)
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("query %q: the result is a %s and not a vector", query, value.Type())
	}
	return vector, nil
}

// Evaluate evaluates a query and returns its result of any type. It returns an error if Prometheus returns
// a warning, such as for incomplete results. The timeout also limits the evaluation in Prometheus.
func (c *Client) Evaluate(ctx context.Context, query string, at time.Time, timeout time.Duration) (model.Value,
	error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	value, warnings, _, err := c.api.Query(ctx, query, at, prometheus.WithTimeout(timeout))
	var refusal *prometheus.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("query Prometheus at %s: it did not answer within %s", c.Address, timeout)
	case errors.As(err, &refusal):
		return nil, fmt.Errorf("query Prometheus at %s: it refused: %w %s", c.Address, err, refusal.Detail)
	case err != nil:
		return nil, fmt.Errorf("query Prometheus at %s: %w", c.Address, err)
	case len(warnings) > 0:
		return nil, fmt.Errorf("query Prometheus at %s: it warns: %s", c.Address, strings.Join(warnings, "; "))
	}
	return value, nil
}

// QueryRange evaluates a query at every step from start to end.
func (c *Client) QueryRange(ctx context.Context, query string, start, end time.Time,
	step time.Duration) (model.Matrix, error) {
	value, _, _, err := c.api.QueryRange(ctx, query, prometheus.Range{Start: start, End: end, Step: step})
	if err != nil {
		return nil, fmt.Errorf("query %q from %s to %s: %w", query, start, end, err)
	}
	matrix, ok := value.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("query %q: the result is a %s and not a matrix", query, value.Type())
	}
	return matrix, nil
}

// Alerts returns the alerts that fire or are pending now.
func (c *Client) Alerts(ctx context.Context) ([]prometheus.Alert, error) {
	alerts, err := c.api.Alerts(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the alerts of Prometheus at %s: %w", c.Address, err)
	}
	return alerts.Alerts, nil
}
