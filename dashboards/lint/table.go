// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"k8s.io/utils/ptr"
)

// readColumnTitles returns the titles of a table's columns by their fields; nil if there are none.
func readColumnTitles(p *dashboard.Panel) map[string]string {
	for _, t := range p.Transformations {
		if options, ok := t.Options.(map[string]any); ok && t.Id == "organize" {
			titles, _ := options["renameByName"].(map[string]string)
			return titles
		}
	}
	return nil
}

var grouping = regexp.MustCompile(`\b(?:by|group_left|group_right) \(([^)]*)\)`)

// listGroupLabels returns all labels by which the queries of a panel group.
func listGroupLabels(p *dashboard.Panel) []string {
	var out []string
	for _, t := range p.Targets {
		q, _ := toQuery(t)
		for _, m := range grouping.FindAllStringSubmatch(q.Expr, -1) {
			out = append(out, strings.Split(strings.ReplaceAll(m[1], " ", ""), ",")...)
		}
	}
	return out
}

// checkTableColumns checks that each column of a table has a title, and that a query returns its values: as the value
// of the query, or as a label by which the query groups.
func (c *checker) checkTableColumns() {
	for _, p := range listPanels(c.d) {
		if p.Type != "table" {
			continue
		}
		titles, labels := readColumnTitles(p), listGroupLabels(p)
		if len(titles) == 0 {
			c.addFinding(readTitle(p), "its columns have no titles")
		}
		for _, column := range slices.Sorted(maps.Keys(titles)) {
			if !slices.Contains(listValueFields(p), column) && !slices.Contains(labels, column) {
				c.addFinding(readTitle(p), "no query returns what the column %q (%s) shows", titles[column], column)
			}
			if titles[column] == "" {
				c.addFinding(readTitle(p), "the column %s has no title", column)
			}
		}
	}
}

// listValueFields returns Grafana's names for the values of a table's queries.
func listValueFields(p *dashboard.Panel) []string {
	if len(p.Targets) == 1 {
		return []string{"Value"}
	}
	var out []string
	for _, t := range p.Targets {
		q, _ := toQuery(t)
		out = append(out, "Value #"+ptr.Deref(q.RefId, ""))
	}
	return out
}

// linkSource matches a value that a link takes from the place of the click: another column of the
// row, or a label of the series.
var linkSource = regexp.MustCompile(`\$\{__(data\.fields|field\.labels)\.([^}]*)\}`)

// checkLinkSources checks that the columns and labels that a link uses exist.
func (c *checker) checkLinkSources(p *dashboard.Panel, address string) {
	titles := slices.Collect(maps.Values(readColumnTitles(p)))
	labels := listGroupLabels(p)
	for _, m := range linkSource.FindAllStringSubmatch(address, -1) {
		if m[1] == "data.fields" && !slices.Contains(titles, m[2]) {
			c.addFinding(readTitle(p), "a link takes the column %q, which the table does not have", m[2])
		}
		if m[1] == "field.labels" && !slices.Contains(labels, m[2]) {
			c.addFinding(readTitle(p), "a link takes the label %s, by which no query groups", m[2])
		}
	}
}
