// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"slices"

	"k8s.io/utils/ptr"
)

// GrafanaVersion is the oldest version of Grafana that shows the dashboards correctly. Tables have options by kind of
// cell since 9.5. Row heights that a panel sets, and variables of Prometheus as objects, exist since 10.0.
const GrafanaVersion = "10.0.0"

// prometheusSource is the type of the data source, which is the id of its plugin.
const prometheusSource = "prometheus"

// Requirement is a program or plugin that a dashboard needs, as Grafana writes it into dashboards
// that are exported for sharing.
type Requirement struct {
	// Type is grafana, datasource or panel.
	Type string `json:"type"`
	ID   string `json:"id"`
	Name string `json:"name"`
	// Version is the lowest version; empty for plugins that are a part of Grafana.
	Version string `json:"version"`
}

// ListRequirements returns the requirements of a dashboard: Grafana, the data source, and each kind of panel.
func ListRequirements(d Dashboard) []Requirement {
	out := []Requirement{
		{Type: "grafana", ID: "grafana", Name: "Grafana", Version: GrafanaVersion},
		{Type: "datasource", ID: prometheusSource, Name: "Prometheus"},
	}
	var kinds []string
	for _, p := range d.Panels {
		if p.Panel != nil {
			kinds = append(kinds, p.Panel.Type)
		}
	}
	slices.Sort(kinds)
	for _, kind := range slices.Compact(kinds) {
		out = append(out, Requirement{Type: "panel", ID: kind, Name: kind})
	}
	return out
}

// exportedDashboard is a dashboard with its requirements. The model of Grafana's SDK does not have the requirements.
type exportedDashboard struct {
	Requires []Requirement `json:"__requires"`
	Dashboard
}

// readUID returns the UID of a dashboard; empty if it has none.
func readUID(d Dashboard) string { return ptr.Deref(d.Uid, "") }
