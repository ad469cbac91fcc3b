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

// renames are the titles of a table's columns, by their fields.
func renames(p *dashboard.Panel) map[string]string {
	for _, t := range p.Transformations {
		if options, ok := t.Options.(map[string]any); ok && t.Id == "organize" {
			titles, _ := options["renameByName"].(map[string]string)
			return titles
		}
	}
	return nil
}

var grouping = regexp.MustCompile(`\b(?:by|group_left|group_right) \(([^)]*)\)`)

// grouped are all labels that a panel's queries group by.
func grouped(p *dashboard.Panel) []string {
	var out []string
	for _, t := range p.Targets {
		q, _ := query(t)
		for _, m := range grouping.FindAllStringSubmatch(q.Expr, -1) {
			out = append(out, strings.Split(strings.ReplaceAll(m[1], " ", ""), ",")...)
		}
	}
	return out
}

func (c *checker) tableColumns() {
	for _, p := range panels(c.d) {
		if p.Type != "table" {
			continue
		}
		titles, labels := renames(p), grouped(p)
		if len(titles) == 0 {
			c.find(titleOf(p), "its columns have no titles")
		}
		for _, column := range slices.Sorted(maps.Keys(titles)) {
			if !slices.Contains(valueFields(p), column) && !slices.Contains(labels, column) {
				c.find(titleOf(p), "no query returns what the column %q (%s) shows", titles[column], column)
			}
			if titles[column] == "" {
				c.find(titleOf(p), "the column %s has no title", column)
			}
		}
	}
}

// valueFields are what Grafana calls the values of a table's queries.
func valueFields(p *dashboard.Panel) []string {
	if len(p.Targets) == 1 {
		return []string{"Value"}
	}
	var out []string
	for _, t := range p.Targets {
		q, _ := query(t)
		out = append(out, "Value #"+ptr.Deref(q.RefId, ""))
	}
	return out
}

// taken is what a link takes from where it was clicked: another column of the
// row, or a label of the series.
var taken = regexp.MustCompile(`\$\{__(data\.fields|field\.labels)\.([^}]*)\}`)

// takes looks whether there is what a link takes.
func (c *checker) takes(p *dashboard.Panel, address string) {
	titles := slices.Collect(maps.Values(renames(p)))
	labels := grouped(p)
	for _, m := range taken.FindAllStringSubmatch(address, -1) {
		if m[1] == "data.fields" && !slices.Contains(titles, m[2]) {
			c.find(titleOf(p), "a link takes the column %q, which the table does not have", m[2])
		}
		if m[1] == "field.labels" && !slices.Contains(labels, m[2]) {
			c.find(titleOf(p), "a link takes the label %s, by which no query groups", m[2])
		}
	}
}
