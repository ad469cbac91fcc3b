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

// columns of Grafana's grid.
const columns = 24

// cell of the grid.
type cell struct{ x, y uint32 }

// grid is what has been placed.
type grid struct {
	taken  map[cell]string
	ids    map[uint32]bool
	bottom uint32
}

func (c *checker) layout() {
	g := &grid{taken: map[cell]string{}, ids: map[uint32]bool{}}
	for _, p := range c.d.Panels {
		if p.RowPanel != nil {
			c.place(g, ptr.Deref(p.RowPanel.Title, ""), p.RowPanel.Id, p.RowPanel.GridPos)
		} else if p.Panel != nil {
			c.place(g, titleOf(p.Panel), ptr.Deref(p.Panel.Id, 0), p.Panel.GridPos)
		}
	}
	if holes := int(g.bottom)*columns - len(g.taken); holes > 0 {
		c.find("", "%d cells of the grid are empty: widen panels until every line is full", holes)
	}
}

func (c *checker) place(g *grid, title string, id uint32, at *dashboard.GridPos) {
	if at == nil || at.W == 0 || at.H == 0 || at.X+at.W > columns {
		c.find(title, "it has to have a size, and to end within %d columns", columns)
		return
	}
	if g.ids[id] {
		c.find(title, "another panel has the id %d", id)
	}
	g.ids[id] = true
	g.bottom = max(g.bottom, at.Y+at.H)
	for one := range area(*at) {
		if other, ok := g.taken[one]; ok {
			c.find(title, "it covers %q", other)
			return
		}
		g.taken[one] = title
	}
}

// area are the cells of a panel.
func area(g dashboard.GridPos) func(func(cell) bool) {
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

func (c *checker) links() {
	among := slices.IndexFunc(c.d.Links, func(l dashboard.DashboardLink) bool {
		return l.Type == dashboard.DashboardLinkTypeDashboards && slices.Contains(l.Tags, dashboards.Tag) &&
			l.IncludeVars && l.KeepTime
	})
	if among < 0 {
		c.find("", "the link to the other dashboards is missing, which takes variables and time along")
	}
	for _, p := range panels(c.d) {
		for _, l := range linksOf(p) {
			c.link(titleOf(p), ptr.Deref(l.Url, ""))
			c.takes(p, ptr.Deref(l.Url, ""))
		}
	}
}

// linksOf are the links of a panel's values, also of single columns.
func linksOf(p *dashboard.Panel) []dashboard.DashboardLink {
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

// linked is what a link takes along: var-NAME=, and the variable NAME as a whole.
var (
	toDashboard = regexp.MustCompile(`^/d/([^/?]+)\?(.*)$`)
	passed      = regexp.MustCompile(`(?:var-([a-z]+)=|\$\{([a-z]+):queryparam\})`)
)

func (c *checker) link(where, address string) {
	m := toDashboard.FindStringSubmatch(address)
	if m == nil {
		c.find(where, "links lead to dashboards: %q does not begin with /d/UID?", address)
		return
	}
	uid, _ := url.PathUnescape(m[1])
	i := slices.IndexFunc(c.all, func(d dashboards.Dashboard) bool { return ptr.Deref(d.Uid, "") == uid })
	if i < 0 {
		c.find(where, "there is no dashboard %s", uid)
		return
	}
	if !strings.Contains(m[2], "${__url_time_range}") || !strings.Contains(m[2], "${datasource:queryparam}") {
		c.find(where, "the link has to keep the time and the data source")
	}
	for _, p := range passed.FindAllStringSubmatch(m[2], -1) {
		if name := p[1] + p[2]; variable(&c.all[i], name) == nil {
			c.find(where, "%s has no variable %s", uid, name)
		}
	}
}
