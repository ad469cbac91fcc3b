// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/controllers/slo/plan"
)

// Endpoint is a Prometheus, or what speaks its API.
type Endpoint struct {
	// URL of the API, without /api/v1; empty: there is none.
	URL string
	// TokenFile holds a bearer token, read again when it changes, and CAFile the
	// certificates that its own is signed by. Empty: none, and the system's.
	TokenFile, CAFile string
}

// evaluator returns nil without a URL.
func (e Endpoint) evaluator() (Evaluator, error) {
	if e.URL == "" {
		return nil, nil
	}
	address, err := url.Parse(e.URL)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return nil, fmt.Errorf("read Prometheus's URL %q: write it as in http://prometheus.monitoring:9090", e.URL)
	}
	transport, err := rest.TransportFor(&rest.Config{BearerTokenFile: e.TokenFile,
		TLSClientConfig: rest.TLSClientConfig{CAFile: e.CAFile}})
	if err != nil {
		return nil, fmt.Errorf("make transport to Prometheus: %w", err)
	}
	client, err := api.NewClient(api.Config{Address: e.URL, RoundTripper: transport})
	if err != nil {
		return nil, fmt.Errorf("make client of Prometheus: %w", err)
	}
	return evaluator{prometheus.NewAPI(client), address.Redacted()}, nil
}

type evaluator struct {
	api     prometheus.API
	address string
}

// ours is how the names of our groups begin.
const ours = "bellwether-"

// Groups implements Evaluator.
func (e evaluator) Groups(ctx context.Context) ([]plan.Group, error) {
	result, err := e.api.Rules(ctx, nil)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("ask Prometheus at %s for its rules: %w", e.address, err)
	}
	var out []plan.Group
	for _, g := range result.Groups {
		if strings.HasPrefix(g.Name, ours) {
			out = append(out, groupOf(g))
		}
	}
	return out, nil
}

func groupOf(g prometheus.RuleGroup) plan.Group {
	out := plan.Group{Name: g.Name, File: g.File, Rules: len(g.Rules)}
	for _, rule := range g.Rules {
		switch r := rule.(type) {
		case prometheus.RecordingRule:
			note(&out, r.Name, r.Health, r.LastError)
			if r.Name == series.SLORulesInfo {
				out.Hash = string(r.Labels[series.Hash])
				out.Operator = types.NamespacedName{Namespace: string(r.Labels[series.OperatorNamespace]),
					Name: string(r.Labels[series.Operator])}
			}
		case prometheus.AlertingRule:
			note(&out, r.Name, r.Health, r.LastError)
		}
	}
	return out
}

func note(g *plan.Group, rule string, health prometheus.RuleHealth, lastError string) {
	switch {
	case health == prometheus.RuleHealthUnknown:
		g.Waiting++
	case health != prometheus.RuleHealthGood && g.Error == "":
		g.Error = rule + ": " + lastError
	}
}
