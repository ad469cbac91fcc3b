// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"encoding/json"
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"k8s.io/utils/ptr"
)

// Dashboard is Grafana's classic dashboard model, which ConfigMaps, GrafanaDashboard objects
// and provisioning files contain.
//
//nolint:staticcheck // the newer model needs Grafana 12, and nothing that ships dashboards takes it yet
type Dashboard = dashboard.Dashboard

// UIDs of the dashboards. Links and the annotations of alerts have them after /d/.
const (
	UIDFleet     = "bellwether-fleet"
	UIDRollout   = "bellwether-rollout"
	UIDOperator  = "bellwether-operator"
	UIDCluster   = "bellwether-cluster"
	UIDInternals = "bellwether-internals"
	UIDCatalog   = "bellwether-catalog"
	UIDPaging    = "bellwether-paging"
)

// Tag is on every dashboard of Bellwether, and on no other dashboard. The links between the
// dashboards select by this tag.
const Tag = "bellwether"

// All returns all dashboards, from the fleet to the details. Their UIDs and titles never change.
func All() []Dashboard {
	var out []Dashboard
	for _, p := range []page{newFleetPage(), newRolloutPage(), newOperatorPage(), newClusterPage(), newInternalsPage(),
		newCatalogPage(), newPagingPage()} {
		d, err := p.build()
		if err != nil {
			panic(fmt.Sprintf("build dashboard %s: %v", p.uid, err)) // a bug in this package, which its tests find
		}
		out = append(out, d)
	}
	return out
}

// JSON returns the dashboard as JSON for Grafana's import, indented and with a newline at the end.
func JSON(d Dashboard) ([]byte, error) {
	text, err := json.MarshalIndent(exportedDashboard{ListRequirements(d), d}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write dashboard %s: %w", readUID(d), err)
	}
	return append(text, '\n'), nil
}

// FileName returns the file name of a dashboard: its UID and .json.
func FileName(d Dashboard) string { return readUID(d) + ".json" }

// page is a dashboard before its layout.
type page struct {
	uid, title, description string
	// from is the start of the time range, as in now-6h.
	from        string
	variables   []dashboard.VariableModel
	annotations []annotation
	rows        []row
}

// row is a heading and its panels, which are placed from left to right.
type row struct {
	title  string
	panels []panel
}

// build returns the dashboard in Grafana's model. It adds the variable of the data source, the links to the other
// dashboards, and an id for each row and panel.
func (p page) build() (Dashboard, error) {
	b := dashboard.NewDashboardBuilder(p.title) //nolint:staticcheck // see Dashboard
	b.Uid(p.uid).Description(p.description).Tags([]string{Tag}).
		Time(p.from, "now").
		Refresh("1m").Timezone("browser").Readonly().Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Link(dashboard.NewDashboardLinkBuilder("Bellwether").Type(dashboard.DashboardLinkTypeDashboards).
			Tags([]string{Tag}).AsDropdown(true).IncludeVars(true).KeepTime(true).Icon("external link").
			Tooltip("The other dashboards, of the same cluster and operator"))
	for _, v := range append([]dashboard.VariableModel{newDatasourceVariable()}, p.variables...) {
		b.WithVariable(prebuilt[dashboard.VariableModel]{v})
	}
	for _, a := range p.annotations {
		b.Annotation(prebuilt[dashboard.AnnotationQuery]{a.buildQuery()})
	}
	id := uint32(0)
	newID := func() uint32 { id++; return id }
	for _, r := range p.rows {
		b.WithRow(dashboard.NewRowBuilder(r.title).Id(newID()))
		for _, pn := range r.panels {
			grafanaPanel, err := pn.build()
			if err != nil {
				return Dashboard{}, fmt.Errorf("build panel %q: %w", pn.title, err)
			}
			grafanaPanel.Id = ptr.To(newID())
			b.WithPanel(prebuilt[dashboard.Panel]{grafanaPanel})
		}
	}
	return b.Build()
}

// prebuilt is a builder that returns an existing value.
type prebuilt[T any] struct{ value T }

// Build implements cog.Builder.
func (b prebuilt[T]) Build() (T, error) { return b.value, nil }

var _ cog.Builder[dashboard.Panel] = prebuilt[dashboard.Panel]{}

// newDataSource returns a reference to the data source that the user selects.
func newDataSource() common.DataSourceRef {
	return common.DataSourceRef{Type: ptr.To(prometheusSource), Uid: ptr.To("${datasource}")}
}

// annotation marks the times at which a query has samples above 0. If valueIsTime is set, the value of the query
// is the time to mark, in seconds.
type annotation struct {
	name, colour string
	// text and tags refer to the labels of the query's series.
	expr, text, tags string
	valueIsTime      bool
}

// buildQuery returns the annotation in Grafana's model.
func (a annotation) buildQuery() dashboard.AnnotationQuery {
	q := dashboard.AnnotationQuery{
		Name: a.name, Datasource: ptr.To(newDataSource()), Enable: true, IconColor: a.colour,
		Expr: &a.expr, TitleFormat: &a.name, TextFormat: &a.text, TagKeys: &a.tags, Step: ptr.To("60s"),
	}
	if a.valueIsTime { // Grafana needs milliseconds
		q.Expr, q.UseValueForTime = ptr.To(a.expr+" * 1000"), ptr.To(true)
	}
	return q
}
