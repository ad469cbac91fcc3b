// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package runbooks_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/runbooks"
	"github.com/bellwether-dev/bellwether/alerts/runbooks/internal/generate"
	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// TestEachAlertHasARunbook follows the link of each alert that
// rules can make, and reports pages that no alert links to.
func TestEachAlertHasARunbook(t *testing.T) {
	names := map[string]bool{}
	for variant, groups := range generate.Variants() {
		if err := runbooks.Check(groups); err != nil {
			t.Errorf("%s: %v", variant, err)
		}
		for _, g := range groups {
			for _, r := range g.Rules {
				if r.Alert != "" {
					names[r.Alert] = true
				}
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(names)), runbooks.Alerts()); diff != "" {
		t.Errorf("pages (-alerts +pages):\n%s", diff)
	}
	for _, name := range append(slo.SwitchableAlerts(), slo.AlertOperator, slo.AlertRelease, slo.AlertCluster) {
		if !names[name] {
			t.Errorf("no variant of the rules makes %s", name)
		}
	}
}

// one is a rule set with one alert.
func one(alert, link string) []monitoringv1.RuleGroup {
	return []monitoringv1.RuleGroup{{Name: "g", Rules: []monitoringv1.Rule{{Record: "x"},
		{Alert: alert, Annotations: map[string]string{slo.AnnotationRunbook: link}}}}}
}

func TestCheck(t *testing.T) {
	const ours = slo.DefaultRunbooks + "/"
	section := `{{ reReplaceAll ":.*" "" $labels.sli }}`
	for name, test := range map[string]struct {
		alert, link string
		want        error
	}{
		"our page":              {slo.AlertHubDown, ours + slo.AlertHubDown + ".md", nil},
		"a heading of our page": {slo.AlertHubDown, ours + slo.AlertHubDown + ".md#what-to-do", nil},
		"somebody else's page":  {slo.AlertHubDown, "https://example.com/x", nil},
		"an operator's own, and ours for others": {slo.AlertHubDown, `{{ if eq $labels.operator "a" }}https://x/` +
			`{{ else }}` + ours + slo.AlertHubDown + `.md{{ end }}`, nil},
		"no link":                     {slo.AlertHubDown, "", runbooks.ErrNoLink},
		"a link for one operator":     {slo.AlertHubDown, `{{ if eq $labels.operator "a" }}https://x/{{ end }}`, runbooks.ErrNoLink},
		"a link that is no template":  {slo.AlertHubDown, "https://x/{{ nothing }}", runbooks.ErrNoLink},
		"a link that is no URL":       {slo.AlertHubDown, "see the wiki", runbooks.ErrNoLink},
		"an unknown alert":            {"BellwetherNew", ours + "BellwetherNew.md", runbooks.ErrNoPage},
		"the page of another alert":   {slo.AlertHubDown, ours + slo.AlertRulesStale + ".md", runbooks.ErrNoPage},
		"the index":                   {"README", ours + "README.md", runbooks.ErrNoPage},
		"an unknown heading":          {slo.AlertHubDown, ours + slo.AlertHubDown + ".md#mitigate", runbooks.ErrNoSection},
		"no section of the SLI":       {slo.AlertRelease, ours + slo.AlertRelease + ".md", runbooks.ErrNoSection},
		"one section for all SLIs":    {slo.AlertRelease, ours + slo.AlertRelease + ".md#csv", runbooks.ErrNoSection},
		"no section for SLIs of own":  {slo.AlertRelease, ours + slo.AlertRelease + ".md#" + section, runbooks.ErrNoSection},
		"a pattern that is no regexp": {slo.AlertRelease, `https://x/{{ reReplaceAll "(" "" "" }}`, runbooks.ErrNoLink},
	} {
		t.Run(name, func(t *testing.T) {
			if err := runbooks.Check(one(test.alert, test.link)); !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
		})
	}
}

func TestPage(t *testing.T) {
	page, ok := runbooks.Page(slo.AlertHubDown)
	if !ok || !strings.HasPrefix(page, "# "+slo.AlertHubDown+"\n") {
		t.Errorf("%t, %.40q", ok, page)
	}
	for _, name := range []string{"", "README", "slis", "BellwetherNew", "../guides/slos", "embed.go"} {
		if page, ok := runbooks.Page(name); ok || page != "" {
			t.Errorf("there is a page of %q", name)
		}
	}
}

func TestSection(t *testing.T) {
	for name, test := range map[string]struct{ alert, sli, heading, contains string }{
		"an SLI":               {slo.AlertRelease, "reconcile", "reconcile", "**First look:**"},
		"a probe":              {slo.AlertOperator, "probe:api:hub", "probe", "endpointprobes"},
		"an own SLI":           {slo.AlertExhausted, "requests", "own", "spec.own"},
		"an SLI without data":  {slo.AlertSLIAbsent, "webhook", "webhook", "**No data:**"},
		"the last of the page": {slo.AlertSLIAbsent, "requests", "own", "**No data:**"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := runbooks.Section(test.alert, test.sli)
			if !ok || !strings.HasPrefix(got, "## "+test.heading+"\n") || !strings.Contains(got, test.contains) ||
				strings.Count(got, "\n## ") != 0 || strings.Contains(got, "<!--") {
				t.Errorf("%t, %s", ok, got)
			}
		})
	}
	for _, alert := range []string{slo.AlertHubDown, "BellwetherNew"} {
		if _, ok := runbooks.Section(alert, "csv"); ok {
			t.Errorf("%s has a section about csv", alert)
		}
	}
}
