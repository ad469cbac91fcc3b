// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package ruleset

import (
	"strings"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestRetention compares the periods of objectives with the retention of
// Prometheus. The last result is kept while the retention is unknown.
func TestRetention(t *testing.T) {
	day := 24 * time.Hour
	weekly := objectives("echo", "echo", 1, func(s *v1alpha1.OperatorSLO) {
		s.Spec.Profile = v1alpha1.ProfileNone
		s.Spec.Objectives = []v1alpha1.SLOObjective{{SLI: "csv", Target: "99", Period: "7d"}}
	})
	monthly := objectives("echo", "echo", 1)
	found := monthly
	found.Status.Conditions = next(t, withRetention(fleet(monthly), 15*day)).Statuses[toKey(&monthly)].Conditions
	for name, test := range map[string]struct {
		in   Input
		want string
	}{
		"not known":               {fleet(monthly), "True Succeeded"},
		"no limit":                {withRetention(fleet(monthly), 0), "True Succeeded"},
		"as long as the period":   {withRetention(fleet(monthly), 30*day), "True Succeeded"},
		"shorter":                 {withRetention(fleet(monthly), 30*day-time.Hour), "False RetentionTooShort"},
		"longer than its period":  {withRetention(fleet(weekly), 15*day), "True Succeeded"},
		"shorter than its period": {withRetention(fleet(weekly), 6*day), "False RetentionTooShort"},
		"not known any more":      {fleet(found), "False RetentionTooShort"},
		"put right":               {withRetention(fleet(found), 30*day), "True Succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			c := conditions.Get(next(t, test.in).Statuses[toKey(&monthly)].Conditions, v1alpha1.ConditionFeasible)
			if got := string(c.Status) + " " + c.Reason; got != test.want {
				t.Errorf("%s (%s), want %s", got, c.Message, test.want)
			}
			if c.Reason == v1alpha1.ReasonRetentionTooShort &&
				!strings.Contains(c.Message, "--storage.tsdb.retention.time") {
				t.Errorf("the message does not say what to do: %s", c.Message)
			}
		})
	}
}

func withRetention(in Input, retention time.Duration) Input {
	in.Prometheus.Retention = &retention
	return in
}

// TestHubPart writes no rules that read metrics of clusters.
func TestHubPart(t *testing.T) {
	own := objectives("echo", "echo", 1, target("http", "99"), func(s *v1alpha1.OperatorSLO) {
		s.Spec.Own = []v1alpha1.OwnSLI{{Name: "http", Latency: &v1alpha1.LatencyThreshold{Histogram: "h", LE: "0.5"}}}
	})
	in := fleet(own)
	if all := next(t, in).Files; len(all) != 2 {
		t.Fatalf("%d files with own SLIs, want 2", len(all))
	}
	in.Part = slo.Hub
	out := next(t, in)
	if len(out.Files) != 1 || out.Files[0].Hash == "" || out.Files[0].Groups[0].QueryOffset == nil {
		t.Errorf("%d files: %+v", len(out.Files), out.Files)
	}
	in.Prometheus = loadedFrom(out.Files)
	c := conditions.Get(next(t, in).Statuses[toKey(&own)].Conditions, v1alpha1.ConditionRulesLoaded)
	if c.Reason != v1alpha1.ReasonSucceeded {
		t.Errorf("%s: %s", c.Reason, c.Message)
	}
}
