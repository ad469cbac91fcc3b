// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alertmanager

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Counter is the sum of all series of one of Alertmanager's own counters. One that it does not have is an error.
func (s *Server) Counter(ctx context.Context, name string) (float64, error) {
	text, err := s.call(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return 0, fmt.Errorf("read metrics: %w", err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return 0, fmt.Errorf("parse metrics: %w", err)
	}
	if families[name] == nil {
		return 0, fmt.Errorf("Alertmanager has no metric %s", name) //nolint:staticcheck // a name
	}
	total := 0.0
	for _, m := range families[name].GetMetric() {
		total += m.GetCounter().GetValue()
	}
	return total, nil
}
