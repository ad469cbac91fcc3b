// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alertmanager

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-openapi/strfmt"
	"github.com/prometheus/alertmanager/api/v2/client/alert"
	"github.com/prometheus/alertmanager/api/v2/models"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Post sends an alert as Prometheus does. The alert fires until
// the given time, or until it is posted again with an earlier time.
func (c *Client) Post(ctx context.Context, a Alert, until time.Time) error {
	posted := &models.PostableAlert{Alert: models.Alert{Labels: a.Labels}, Annotations: a.Annotations,
		StartsAt: strfmt.DateTime(a.Since), EndsAt: strfmt.DateTime(until)}
	_, err := c.alerts.PostAlerts(alert.NewPostAlertsParamsWithContext(ctx).WithAlerts(models.PostableAlerts{posted}))
	if err != nil {
		return c.wrapError(ctx, "post an alert to", err)
	}
	return nil
}

// Attempts counts the notifications that Alertmanager tried to send since it started.
type Attempts struct {
	// All includes Failed.
	All, Failed int
	// GivenUp is the number of notifications whose last attempt failed.
	GivenUp int
}

// Metrics of Alertmanager.
const (
	metricAttempts = "alertmanager_notification_requests_total"
	metricFailed   = "alertmanager_notification_requests_failed_total"
	metricGivenUp  = "alertmanager_notifications_failed_total"
	maxMetrics     = 32 << 20
)

// Attempts returns the counts by the kind of notification, such as pagerduty. They are from
// Alertmanager's own metrics. It returns an error if the metrics do not count attempts.
func (c *Client) Attempts(ctx context.Context) (map[string]Attempts, error) {
	families, err := c.scrape(ctx)
	if err != nil {
		return nil, c.wrapReadError(ctx, "metrics", err)
	}
	if families[metricAttempts] == nil {
		return nil, c.wrapReadError(ctx, "metrics", fmt.Errorf("there is no %s", metricAttempts))
	}
	out := map[string]Attempts{}
	for name, add := range map[string]func(*Attempts, int){
		metricAttempts: func(a *Attempts, n int) { a.All += n },
		metricFailed:   func(a *Attempts, n int) { a.Failed += n },
		metricGivenUp:  func(a *Attempts, n int) { a.GivenUp += n },
	} {
		for _, m := range families[name].GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "integration" {
					sum := out[l.GetValue()]
					add(&sum, int(m.GetCounter().GetValue()))
					out[l.GetValue()] = sum
				}
			}
		}
	}
	return out, nil
}

// scrape reads the metrics of Alertmanager, by name.
func (c *Client) scrape(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.metrics.String(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answered with status %d", answer.StatusCode)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(io.LimitReader(answer.Body, maxMetrics))
}
