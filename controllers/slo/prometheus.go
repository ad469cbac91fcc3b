// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"context"
	"strings"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/prometheus"
	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/controllers/slo/plan"
)

// evaluatorOf returns the client of an endpoint, or nil without a URL.
func evaluatorOf(e prometheus.Endpoint) (Evaluator, error) {
	if e.URL == "" {
		return nil, nil
	}
	client, err := e.Client()
	if err != nil {
		return nil, err
	}
	return evaluator{client}, nil
}

type evaluator struct{ client *prometheus.Client }

// ours is how the names of our groups begin.
const ours = "bellwether-"

// Groups implements Evaluator.
func (e evaluator) Groups(ctx context.Context) ([]plan.Group, error) {
	result, err := e.client.Rules(ctx)
	if err != nil {
		return nil, err
	}
	var out []plan.Group
	for _, g := range result.Groups {
		if strings.HasPrefix(g.Name, ours) {
			out = append(out, groupOf(g))
		}
	}
	return out, nil
}

// Retention implements Evaluator.
func (e evaluator) Retention(ctx context.Context) (time.Duration, error) {
	return e.client.Retention(ctx)
}

func groupOf(g promv1.RuleGroup) plan.Group {
	out := plan.Group{Name: g.Name, File: g.File, Rules: len(g.Rules)}
	for _, rule := range g.Rules {
		switch r := rule.(type) {
		case promv1.RecordingRule:
			note(&out, g, r.Name, r.Health, r.LastError)
			if r.Name == series.SLORulesInfo {
				out.Hash = string(r.Labels[series.Hash])
				out.Operator = types.NamespacedName{Namespace: string(r.Labels[series.OperatorNamespace]),
					Name: string(r.Labels[series.Operator])}
			}
		case promv1.AlertingRule:
			note(&out, g, r.Name, r.Health, r.LastError)
		}
	}
	return out
}

// patience is the longest interval of groups that are waited for. What is evaluated once
// an hour says nothing of whether the rules work until then.
const patience = 5 * time.Minute

func note(out *plan.Group, of promv1.RuleGroup, rule string, health promv1.RuleHealth, lastError string) {
	switch {
	case health == promv1.RuleHealthUnknown:
		if of.Interval <= patience.Seconds() {
			out.Waiting++
		}
	case health != promv1.RuleHealthGood && out.Error == "":
		out.Error = rule + ": " + lastError
	}
}
