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

// Dashboard is Grafana's classic model: what ConfigMaps, GrafanaDashboard objects
// and provisioning from files carry.
//
//nolint:staticcheck // the newer model needs Grafana 12, and nothing that ships dashboards takes it yet
type Dashboard = dashboard.Dashboard

// UIDs of the dashboards: what links and alerts' annotations end in, after /d/.
const (
	UIDFleet     = "bellwether-fleet"
	UIDRollout   = "bellwether-rollout"
	UIDOperator  = "bellwether-operator"
	UIDCluster   = "bellwether-cluster"
	UIDInternals = "bellwether-internals"
	UIDCatalog   = "bellwether-catalog"
	UIDPaging    = "bellwether-paging"
)

// Tag is on every dashboard, and on no other: links between them go by it.
const Tag = "bellwether"

// All returns every dashboard, from the fleet to the details. UIDs and titles
// never change.
func All() []Dashboard {
	var out []Dashboard
	for _, p := range []page{fleetPage(), rolloutPage(), operatorPage(), clusterPage(), internalsPage(), catalogPage(),
		pagingPage()} {
		d, err := p.build()
		if err != nil {
			panic(fmt.Sprintf("build dashboard %s: %v", p.uid, err)) // a bug in this package, which its tests find
		}
		out = append(out, d)
	}
	return out
}

// JSON is what Grafana imports, indented and with a newline at its end.
func JSON(d Dashboard) ([]byte, error) {
	text, err := json.MarshalIndent(shared{Requirements(d), d}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write dashboard %s: %w", uidOf(d), err)
	}
	return append(text, '\n'), nil
}

// FileName is what the file of a dashboard is called: its UID.json.
func FileName(d Dashboard) string { return uidOf(d) + ".json" }

// page is a dashboard before it is laid out.
type page struct {
	uid, title, description string
	// from is the beginning of the time range, as in now-6h.
	from        string
	variables   []dashboard.VariableModel
	annotations []annotation
	rows        []row
}

// row is a heading and its panels, which flow from left to right.
type row struct {
	title  string
	panels []panel
}

func (p page) build() (Dashboard, error) {
	b := dashboard.NewDashboardBuilder(p.title) //nolint:staticcheck // see Dashboard
	b.Uid(p.uid).Description(p.description).Tags([]string{Tag}).
		Time(p.from, "now").
		Refresh("1m").Timezone("browser").Readonly().Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Link(dashboard.NewDashboardLinkBuilder("Bellwether").Type(dashboard.DashboardLinkTypeDashboards).
			Tags([]string{Tag}).AsDropdown(true).IncludeVars(true).KeepTime(true).Icon("external link").
			Tooltip("The other dashboards, of the same cluster and operator"))
	for _, v := range append([]dashboard.VariableModel{datasourceVariable()}, p.variables...) {
		b.WithVariable(built[dashboard.VariableModel]{v})
	}
	for _, a := range p.annotations {
		b.Annotation(built[dashboard.AnnotationQuery]{a.query()})
	}
	id := uint32(0)
	next := func() uint32 { id++; return id }
	for _, r := range p.rows {
		b.WithRow(dashboard.NewRowBuilder(r.title).Id(next()))
		for _, pn := range r.panels {
			one, err := pn.build()
			if err != nil {
				return Dashboard{}, fmt.Errorf("build panel %q: %w", pn.title, err)
			}
			one.Id = ptr.To(next())
			b.WithPanel(built[dashboard.Panel]{one})
		}
	}
	return b.Build()
}

// built is a builder of what is there already.
type built[T any] struct{ value T }

// Build implements cog.Builder.
func (b built[T]) Build() (T, error) { return b.value, nil }

var _ cog.Builder[dashboard.Panel] = built[dashboard.Panel]{}

// source is the data source that the user chooses.
func source() common.DataSourceRef {
	return common.DataSourceRef{Type: ptr.To(prometheusSource), Uid: ptr.To("${datasource}")}
}

// annotation marks moments: wherever the query has samples above 0. The query's
// value is the moment itself, in seconds, if it is a timestamp.
type annotation struct {
	name, colour string
	// text and tags are of the labels of the query's series.
	expr, text, tags string
	valueIsTheTime   bool
}

func (a annotation) query() dashboard.AnnotationQuery {
	q := dashboard.AnnotationQuery{
		Name: a.name, Datasource: ptr.To(source()), Enable: true, IconColor: a.colour,
		Expr: &a.expr, TitleFormat: &a.name, TextFormat: &a.text, TagKeys: &a.tags, Step: ptr.To("60s"),
	}
	if a.valueIsTheTime {
		q.Expr, q.UseValueForTime = ptr.To(a.expr+" * 1000"), ptr.To(true)
	}
	return q
}
