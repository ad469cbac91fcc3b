// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"slices"

	"k8s.io/utils/ptr"
)

// GrafanaVersion is the oldest one that shows the dashboards as they are: tables
// have options by kind of cell since 9.5, and rows of a chosen height and
// variables of Prometheus as objects since 10.0.
const GrafanaVersion = "10.0.0"

// prometheusSource is the type of the data source, which is its plugin's id.
const prometheusSource = "prometheus"

// Requirement is a program or plugin that a dashboard needs, as Grafana writes it
// into dashboards that it exports to be shared.
type Requirement struct {
	// Type is grafana, datasource or panel.
	Type string `json:"type"`
	ID   string `json:"id"`
	Name string `json:"name"`
	// Version is the lowest one; empty for plugins that come with Grafana.
	Version string `json:"version"`
}

// Requirements returns what a dashboard needs: Grafana, the data source, and each
// kind of panel that it has.
func Requirements(d Dashboard) []Requirement {
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

// shared is a dashboard with what it needs. Grafana's SDK does not have that part
// of the model.
type shared struct {
	Requires []Requirement `json:"__requires"`
	Dashboard
}

func uidOf(d Dashboard) string { return ptr.Deref(d.Uid, "") }
