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
	"github.com/bellwether-dev/bellwether/alerts/slo/ruleset"
)

// newEvaluator returns a client for the endpoint; nil if the endpoint has no URL.
func newEvaluator(e prometheus.Endpoint) (Evaluator, error) {
	if e.URL == "" {
		return nil, nil
	}
	client, err := e.Client()
	if err != nil {
		return nil, err
	}
	return evaluator{client}, nil
}

// evaluator implements Evaluator with a client of Prometheus.
type evaluator struct{ client *prometheus.Client }

// groupPrefix is the prefix of the names of Bellwether's rule groups.
const groupPrefix = "bellwether-"

// Groups implements Evaluator.
func (e evaluator) Groups(ctx context.Context) ([]ruleset.Group, error) {
	result, err := e.client.Rules(ctx)
	if err != nil {
		return nil, err
	}
	var out []ruleset.Group
	for _, g := range result.Groups {
		if strings.HasPrefix(g.Name, groupPrefix) {
			out = append(out, toGroup(g))
		}
	}
	return out, nil
}

// Retention implements Evaluator.
func (e evaluator) Retention(ctx context.Context) (time.Duration, error) {
	return e.client.Retention(ctx)
}

// toGroup converts a rule group of Prometheus, with the number of rules that are not evaluated yet
// and the first error. The hash and the operator are labels of the group's information rule.
func toGroup(g promv1.RuleGroup) ruleset.Group {
	out := ruleset.Group{Name: g.Name, File: g.File, Rules: len(g.Rules)}
	for _, rule := range g.Rules {
		switch r := rule.(type) {
		case promv1.RecordingRule:
			recordRuleHealth(&out, r.Name, r.Health, r.LastError)
			if r.Name == series.SLORulesInfo {
				out.Hash = string(r.Labels[series.Hash])
				out.Operator = types.NamespacedName{Namespace: string(r.Labels[series.OperatorNamespace]),
					Name: string(r.Labels[series.Operator])}
			}
		case promv1.AlertingRule:
			recordRuleHealth(&out, r.Name, r.Health, r.LastError)
		}
	}
	return out
}

// recordRuleHealth counts a rule without an evaluation as waiting, and stores the error of a
// failed rule if it is the first error of the group.
func recordRuleHealth(g *ruleset.Group, rule string, health promv1.RuleHealth, lastError string) {
	switch {
	case health == promv1.RuleHealthUnknown:
		g.Waiting++
	case health != promv1.RuleHealthGood && g.Error == "":
		g.Error = rule + ": " + lastError
	}
}
