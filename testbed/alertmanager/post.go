// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alertmanager

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
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

// Post sends alerts as Prometheus does, in one request, and returns when Alertmanager has sorted them into groups: it
// does so with several workers, and an alert that is posted twice at once may end up as it was posted first.
func (s *Server) Post(ctx context.Context, alerts ...PostableAlert) error {
	body, err := json.Marshal(alerts)
	if err != nil {
		return fmt.Errorf("encode alerts: %w", err)
	}
	sent := time.Now().Truncate(time.Millisecond) // Alertmanager answers in milliseconds
	if _, err := s.call(ctx, http.MethodPost, "/api/v2/alerts", body); err != nil {
		return fmt.Errorf("post alerts: %w", err)
	}
	return s.process.WaitReady(ctx, readyLimit, func(ctx context.Context) error { return s.grouped(ctx, alerts, sent) })
}

// grouped fails if the groups do not have the alerts as they were posted since then. One that has ended must not be in
// them.
func (s *Server) grouped(ctx context.Context, posted []PostableAlert, since time.Time) error {
	firing, err := s.Firing(ctx)
	if err != nil {
		return err
	}
	for _, a := range posted {
		name := identity(a.Labels)
		updated, isFiring := firing[name]
		hasEnded := !a.EndsAt.IsZero() && !a.EndsAt.After(time.Now())
		if isFiring == hasEnded || isFiring && updated.Before(since) {
			return fmt.Errorf("alert %s is not in the groups as it was posted", name)
		}
	}
	return nil
}

// Firing tells of the alerts in Alertmanager's groups that have not ended, by their labels, when they were last posted.
func (s *Server) Firing(ctx context.Context) (map[string]time.Time, error) {
	answer, err := s.call(ctx, http.MethodGet, "/api/v2/alerts/groups", nil)
	if err != nil {
		return nil, err
	}
	var groups []struct {
		Alerts []struct {
			Labels    map[string]string
			UpdatedAt time.Time
		}
	}
	if err := json.Unmarshal(answer, &groups); err != nil {
		return nil, fmt.Errorf("decode groups of alerts: %w", err)
	}
	updated := map[string]time.Time{}
	for _, g := range groups {
		for _, a := range g.Alerts {
			updated[identity(a.Labels)] = a.UpdatedAt
		}
	}
	return updated, nil
}

// identity writes the labels by which Alertmanager knows an alert: those that are not empty.
func identity(labels map[string]string) string {
	kept := maps.Clone(labels)
	maps.DeleteFunc(kept, func(_, value string) bool { return value == "" })
	return fmt.Sprint(kept)
}
