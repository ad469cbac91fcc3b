// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo_test

import (
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/budgets"
	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/slo"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

// TestBudgetsFitAScreen: with names as long as those of real fleets, no line is wider than 120 columns.
func TestBudgetsFitAScreen(t *testing.T) {
	const worst = "prod-eu-central-1-a07"
	spent, excluding, burn := -0.25, 0.4, 200.0
	budget := budgets.Budget{Namespace: "cert-manager-operator", Operator: "openshift-cert-manager-operator",
		SLI: "probe:webhook", Cluster: worst, Target: "99.95", Period: "30d", Left: &spent, LeftExcluding: &excluding,
		Burn: &burn, Trend: []*float64{&excluding, &excluding, &spent, &spent},
		Firing: []budgets.Alert{
			{Name: "BellwetherOperatorSLOBurn", Severity: series.Page, Cluster: worst},
			{Name: "BellwetherOperatorSLOBurn", Severity: series.Page, Cluster: "prod-us-east-2-b12"},
			{Name: "BellwetherReleaseSLOBurn", Severity: series.Page, Scope: series.ScopeRelease,
				Version: "1.13.1-202409180000"}}}
	quiet := budget
	quiet.Firing = nil
	style, all := term.Style{Width: fixture.MaxWidth}, []budgets.Budget{budget, quiet}
	fixture.AssertWidth(t, "slo list", slo.BuildBudgetTable(all, 24*time.Hour, false).Render(style))
	fixture.AssertWidth(t, "slo get",
		slo.RenderOperatorBudgets(&budgets.Report{Objectives: all, Clusters: all}, 24*time.Hour, 0, style))
}
