// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/dashboards"
)

// columns is the number of columns of Grafana's grid.
const columns = 24

// cell is a cell of the grid.
type cell struct{ x, y uint32 }

// grid has the cells and the ids of the panels that are already placed.
type grid struct {
	occupied map[cell]string
	ids      map[uint32]bool
	bottom   uint32
}

// checkLayout checks that panels do not overlap and that the grid has no empty cells.
func (c *checker) checkLayout() {
	g := &grid{occupied: map[cell]string{}, ids: map[uint32]bool{}}
	for _, p := range c.d.Panels {
		if p.RowPanel != nil {
			c.placePanel(g, ptr.Deref(p.RowPanel.Title, ""), p.RowPanel.Id, p.RowPanel.GridPos)
		} else if p.Panel != nil {
			c.placePanel(g, readTitle(p.Panel), ptr.Deref(p.Panel.Id, 0), p.Panel.GridPos)
		}
	}
	if holes := int(g.bottom)*columns - len(g.occupied); holes > 0 {
		c.addFinding("", "%d cells of the grid are empty: widen panels until every line is full", holes)
	}
}

// placePanel adds the cells of a panel to the grid. It adds findings for a missing size, a panel that is too far to the
// right, a duplicate id, and the first cell that another panel covers.
func (c *checker) placePanel(g *grid, title string, id uint32, pos *dashboard.GridPos) {
	if pos == nil || pos.W == 0 || pos.H == 0 || pos.X+pos.W > columns {
		c.addFinding(title, "it must have a size, and must end within %d columns", columns)
		return
	}
	if g.ids[id] {
		c.addFinding(title, "another panel has the id %d", id)
	}
	g.ids[id] = true
	g.bottom = max(g.bottom, pos.Y+pos.H)
	for position := range listCells(*pos) {
		if coveredTitle, ok := g.occupied[position]; ok {
			c.addFinding(title, "it covers %q", coveredTitle)
			return
		}
		g.occupied[position] = title
	}
}

// listCells returns the cells of a panel.
func listCells(g dashboard.GridPos) func(func(cell) bool) {
	return func(yield func(cell) bool) {
		for y := g.Y; y < g.Y+g.H; y++ {
			for x := g.X; x < g.X+g.W; x++ {
				if !yield(cell{x, y}) {
					return
				}
			}
		}
	}
}

// checkLinks checks that the dashboard links to the other dashboards and keeps variables and time, and checks the
// links of its panels.
func (c *checker) checkLinks() {
	index := slices.IndexFunc(c.d.Links, func(l dashboard.DashboardLink) bool {
		return l.Type == dashboard.DashboardLinkTypeDashboards && slices.Contains(l.Tags, dashboards.Tag) &&
			l.IncludeVars && l.KeepTime
	})
	if index < 0 {
		c.addFinding("", "the link to the other dashboards is missing, which takes variables and time along")
	}
	for _, p := range listPanels(c.d) {
		for _, l := range listLinks(p) {
			c.checkLink(readTitle(p), ptr.Deref(l.Url, ""))
			c.checkLinkSources(p, ptr.Deref(l.Url, ""))
		}
	}
}

// listLinks returns the links of a panel's values, also the links of single columns.
func listLinks(p *dashboard.Panel) []dashboard.DashboardLink {
	if p.FieldConfig == nil {
		return nil
	}
	out := slices.Clone(p.FieldConfig.Defaults.Links)
	for _, o := range p.FieldConfig.Overrides {
		for _, property := range o.Properties {
			if links, ok := property.Value.([]dashboard.DashboardLink); ok {
				out = append(out, links...)
			}
		}
	}
	return out
}

// dashboardLink matches a link to a dashboard, with its UID and its parameters. passedVariable matches a variable that
// a link passes: var-NAME=VALUE, or all values of the variable NAME.
var (
	dashboardLink  = regexp.MustCompile(`^/d/([^/?]+)\?(.*)$`)
	passedVariable = regexp.MustCompile(`(?:var-([a-z]+)=|\$\{([a-z]+):queryparam\})`)
)

// checkLink checks that a link leads to an existing dashboard with the variables that the link passes, and that it
// passes the time range and the data source.
func (c *checker) checkLink(where, address string) {
	m := dashboardLink.FindStringSubmatch(address)
	if m == nil {
		c.addFinding(where, "links lead to dashboards: %q does not begin with /d/UID?", address)
		return
	}
	uid, _ := url.PathUnescape(m[1])
	i := slices.IndexFunc(c.all, func(d dashboards.Dashboard) bool { return ptr.Deref(d.Uid, "") == uid })
	if i < 0 {
		c.addFinding(where, "there is no dashboard %s", uid)
		return
	}
	if !strings.Contains(m[2], "${__url_time_range}") || !strings.Contains(m[2], "${datasource:queryparam}") {
		c.addFinding(where, "the link must keep the time and the data source")
	}
	for _, p := range passedVariable.FindAllStringSubmatch(m[2], -1) {
		// The pattern has a group for each form, and one of the groups is empty.
		if name := p[1] + p[2]; findVariable(&c.all[i], name) == nil {
			c.addFinding(where, "%s has no variable %s", uid, name)
		}
	}
}
