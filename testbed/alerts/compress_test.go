// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestCompressedDurations has durations of one unit and of several, as pyrra writes them.
func TestCompressedDurations(t *testing.T) {
	for expr, want := range map[string]string{
		"rate(up[5m])":                         "rate(up[5s])",
		"rate(up[1h4m]) > 0":                   "rate(up[1m4s]) > 0",
		"sum(up[4d6h51m] offset 1h30m)":        "sum(up[1h42m51s] offset 1m30s)",
		"max_over_time(up[1d1h43m:2m30s])":     "max_over_time(up[25m43s:2s500ms])",
		`increase(up{path="/a:5m"}[30m]) > 30`: `increase(up{path="/a:5m"}[30s]) > 30`,
	} {
		t.Run(expr, func(t *testing.T) {
			groups := []monitoringv1.RuleGroup{{Name: "a", Rules: []monitoringv1.Rule{
				{Alert: "A", Expr: intstr.FromString(expr), For: new(monitoringv1.Duration("1h4m"))}}}}
			got, err := Compress(groups, 60)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got[0].Rules[0].Expr.String()); diff != "" {
				t.Errorf("expression (-want +got):\n%s", diff)
			}
			if wait := string(*got[0].Rules[0].For); wait != "1m4s" {
				t.Errorf("it waits for %s, want 1m4s", wait)
			}
		})
	}
}
