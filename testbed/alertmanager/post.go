// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alertmanager

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// PostableAlert is what Prometheus says of an alert.
type PostableAlert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// StartsAt is when it began to fire; zero: now, or as Alertmanager knows it.
	StartsAt time.Time `json:"startsAt,omitzero"`
	// EndsAt is when it ends unless it is posted again; in the past: it is resolved. Zero: after the configuration's
	// resolve_timeout.
	EndsAt       time.Time `json:"endsAt,omitzero"`
	GeneratorURL string    `json:"generatorURL,omitempty"`
}

// Post sends alerts as Prometheus does, in one request.
func (s *Server) Post(ctx context.Context, alerts ...PostableAlert) error {
	body, err := json.Marshal(alerts)
	if err != nil {
		return fmt.Errorf("encode alerts: %w", err)
	}
	if _, err := s.call(ctx, http.MethodPost, "/api/v2/alerts", body); err != nil {
		return fmt.Errorf("post alerts: %w", err)
	}
	return nil
}
