// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/engines/adoption"
	"github.com/bellwether-dev/bellwether/phrase"
)

// scanPart is a part of the report: findings of one class.
type scanPart struct {
	title  string
	tone   term.Tone
	groups []ScanGroup
}

// parts are what a person reads after the counts.
func (r ScanReport) parts(all bool) []scanPart {
	of := func(class adoption.Class) []ScanGroup {
		var out []ScanGroup
		for _, g := range r.Groups {
			if g.Class == class {
				out = append(out, g)
			}
		}
		return out
	}
	parts := []scanPart{
		{title: "Conflicts", tone: term.Bad, groups: of(adoption.Conflict)},
		{title: "Needs a decision", tone: term.Warn, groups: of(adoption.NeedsDecision)},
		{title: "Unknown", tone: term.Warn, groups: of(adoption.Unknown)},
	}
	if all {
		parts = append(parts, scanPart{title: "Eligible, and worth knowing", tone: term.Good, groups: r.Notes})
	}
	return parts
}

// versionTable counts the operators of each version by class.
func (r ScanReport) versionTable() *term.Table {
	t := &term.Table{Header: []string{"PACKAGE", "VERSION", "CLUSTERS", "MANAGED", "ELIGIBLE", "DECISION", "CONFLICT",
		"UNKNOWN"}}
	count := func(n int, tone term.Tone) term.Cell {
		if n == 0 {
			return term.Dim.Cell("-")
		}
		return tone.Cell(fmt.Sprint(n))
	}
	for _, v := range r.Packages {
		t.Add(term.Cell{Text: v.Package}, term.Cell{Text: term.OrDash(v.Version)},
			term.Cell{Text: fmt.Sprint(len(v.Clusters))}, count(v.Classes[adoption.Managed], term.Plain),
			count(v.Classes[adoption.Eligible], term.Good), count(v.Classes[adoption.NeedsDecision], term.Warn),
			count(v.Classes[adoption.Conflict], term.Bad), count(v.Classes[adoption.Unknown], term.Warn))
	}
	return t
}

// summary counts operators by class, in a sentence.
func (r ScanReport) summary() string {
	counts := map[adoption.Class]int{}
	packages := map[string]bool{}
	total := 0
	for _, v := range r.Packages {
		packages[v.Package] = true
		for class, n := range v.Classes {
			counts[class] += n
			total += n
		}
	}
	if total == 0 {
		return "No operators were found."
	}
	var parts []string
	for _, class := range slices.Backward(adoption.Classes()) {
		if n := counts[class]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, classPhrase(class, n)))
		}
	}
	return fmt.Sprintf("%s of %s: %s.", phrase.Count(total, "operator"), phrase.Count(len(packages), "package"),
		strings.Join(parts, ", "))
}

// classPhrase is a class after a number.
func classPhrase(class adoption.Class, n int) string {
	switch class {
	case adoption.NeedsDecision:
		return phrase.Word(n, "needs a decision", "need a decision")
	case adoption.Conflict:
		return phrase.Word(n, "has a conflict", "have a conflict")
	}
	return string(class)
}

// about says whom a group concerns.
func (g ScanGroup) about(most int) string {
	text := g.Package
	if len(g.Versions) > 0 {
		text += " " + phrase.First(g.Versions, 3)
	}
	return fmt.Sprintf("%s in namespace %s on %s", text, g.Namespace, phrase.First(g.Clusters, most))
}

// coverage says whose reports these are, and how old those are that are not current. Clusters with the same note share
// a line, and so many of them are named.
func (r ScanReport) coverage(now time.Time, most int) (head string, notes []string) {
	current := 0
	clusters := map[string][]string{}
	var order []string
	for _, c := range r.Clusters {
		if c.State == scanCurrent || c.State == scanNoOLM {
			current++
		}
		note := c.note(now)
		if note != "" && clusters[note] == nil {
			order = append(order, note)
		}
		clusters[note] = append(clusters[note], c.Name)
	}
	for i, note := range order {
		if i == maxNotes && most < allScanned {
			notes = append(notes, fmt.Sprintf("%s of further clusters: see -o wide",
				phrase.Count(len(order)-i, "note")))
			break
		}
		notes = append(notes, phrase.First(clusters[note], most)+": "+note)
	}
	return fmt.Sprintf("The reports of %s are current.", phrase.Part(current, len(r.Clusters), "cluster")), notes
}

// maxNotes is how many notes about clusters are shown, and maxNotRead how many characters of what an agent could not
// read.
const maxNotes, maxNotRead = 12, 160

// note is what there is to say of a cluster; empty where its report is current and complete.
func (c ScannedCluster) note(now time.Time) string {
	var notes []string
	switch c.State {
	case scanNoReport:
		text := "its agent has not reported operators"
		switch {
		case c.Agent == "":
			text = "no agent has reported yet"
		case c.StaleSince != nil:
			text += ", and is silent since " + span(now, c.StaleSince)
		default:
			text += "; if it is of an earlier version (" + c.Agent + "), upgrade it"
		}
		notes = append(notes, text)
	case scanStale:
		notes = append(notes, "as it was "+span(now, c.StaleSince)+" ago, when its reports ended")
	case scanNoOLM:
		notes = append(notes, "it has no OLM")
	}
	if c.NotRead != "" {
		notes = append(notes, "a part could not be read lately ("+phrase.Truncate(c.NotRead, maxNotRead)+")")
	}
	if c.Omitted > 0 {
		notes = append(notes, fmt.Sprintf("%s %s not in its report, which has no room for more",
			phrase.Count(c.Omitted, "operator"), phrase.Word(c.Omitted, "is", "are")))
	}
	if c.ReadOnly {
		notes = append(notes, "its agent may only read, and manages nothing")
	}
	return strings.Join(notes, "; ")
}

func span(now time.Time, since *time.Time) string {
	if since == nil {
		return "some time"
	}
	return term.Span(now.Sub(*since))
}

const ownerlessText = "Their operator was removed, and its objects may be there still. A ManagedOperator that " +
	"installs the operator takes the definitions over with their objects. If nobody needs the objects, delete the " +
	"definitions on the cluster: their objects go with them."

// scanText is the report for a terminal.
func scanText(r ScanReport, now time.Time, s term.Style) string {
	var out strings.Builder
	head, notes := r.coverage(now, maxScanned(s))
	out.WriteString(head + "\n")
	for _, note := range notes {
		term.WriteText(&out, s, "", "- "+note)
	}
	out.WriteString("\n" + r.summary() + "\n")
	if len(r.Packages) > 0 {
		out.WriteString("\n" + r.versionTable().Render(s))
	}
	for _, p := range r.parts(s.Wide) {
		p.write(&out, s)
	}
	writeItems(&out, s, "Definitions without an operator", ownerlessText, r.ownerlessItems(maxScanned(s)))
	writeItems(&out, s, "Catalogs that could not be read", "", r.CatalogsNotRead)
	return out.String()
}

const margin = "  "

// write writes a part, unless it is empty.
func (p scanPart) write(out *strings.Builder, s term.Style) {
	if len(p.groups) == 0 {
		return
	}
	out.WriteString("\n" + s.Paint(term.Strong, p.title) + "\n")
	absent, others := splitAbsent(p.groups)
	for _, g := range others {
		term.WriteText(out, s, margin, fmt.Sprintf("%s %s (%s)", term.Mark(p.tone), g.about(maxScanned(s)), g.Reason))
		term.WriteText(out, s, margin+margin, g.Message)
		for _, choice := range g.Choices {
			term.WriteText(out, s, margin+margin, "- "+choice)
		}
	}
	if len(absent) == 0 {
		return
	}
	term.WriteText(out, s, margin, fmt.Sprintf("%s %d packages are in no OperatorCatalog (%s)", term.Mark(p.tone),
		len(absent), adoption.ReasonPackageNotInCatalog))
	for _, g := range absent {
		term.WriteText(out, s, margin+margin, "- "+g.about(maxScanned(s)))
	}
	term.WriteText(out, s, margin+margin, manyAbsentText)
}

// manyAbsent is how many packages that no catalog has are shown with what to do for each.
const manyAbsent = 3

const manyAbsentText = "Import those that you want to manage into a catalog of yours, and publish that: `bellwether " +
	"catalog init ./ladders --package PACKAGE --from CATALOG`, or with --all instead of --package for all packages " +
	"of a catalog. The outputs json, yaml and markdown have the CATALOG of each. Leave the others as they are: " +
	"Bellwether changes nothing of them."

// splitAbsent takes out packages that no catalog has, where these are many: a fleet that is new has little else.
func splitAbsent(groups []ScanGroup) (absent, others []ScanGroup) {
	for _, g := range groups {
		if g.Reason == adoption.ReasonPackageNotInCatalog {
			absent = append(absent, g)
		} else {
			others = append(others, g)
		}
	}
	if len(absent) <= manyAbsent {
		return nil, groups
	}
	return absent, others
}

// writeItems writes a list below its title and what it is about, unless it is empty.
func writeItems(out *strings.Builder, s term.Style, title, about string, items []string) {
	if len(items) == 0 {
		return
	}
	out.WriteString("\n" + s.Paint(term.Strong, title) + "\n")
	if about != "" {
		term.WriteText(out, s, margin, about)
	}
	for _, item := range items {
		term.WriteText(out, s, margin, "- "+item)
	}
}

func (r ScanReport) ownerlessItems(most int) []string {
	var items []string
	for _, d := range r.Ownerless {
		items = append(items, fmt.Sprintf("%s on %s", d.Name, phrase.First(d.Clusters, most)))
	}
	return items
}

// maxScanned is how many clusters are named.
func maxScanned(s term.Style) int {
	if s.Wide {
		return allScanned
	}
	return 5
}

// allScanned is more than anybody reads.
const allScanned = 1000

// scanMarkdown is the report for a ticket or a page. Each paragraph is one line.
func scanMarkdown(r ScanReport, now time.Time) string {
	m := &markdown{}
	head, notes := r.coverage(now, allScanned)
	m.line("# Operators on the fleet\n\n%s", head)
	m.items("\n", notes)
	m.line("\n%s", r.summary())
	m.line("\n## Versions\n\n| Package | Version | Clusters | Managed | Eligible | Needs a decision | Conflict | " +
		"Unknown |\n|---|---|---|---|---|---|---|---|")
	for _, v := range r.Packages {
		m.line("| %s | %s | %d | %d | %d | %d | %d | %d |", cell(v.Package), cell(term.OrDash(v.Version)),
			len(v.Clusters), v.Classes[adoption.Managed], v.Classes[adoption.Eligible],
			v.Classes[adoption.NeedsDecision], v.Classes[adoption.Conflict], v.Classes[adoption.Unknown])
	}
	for _, p := range r.parts(true) {
		m.part(p)
	}
	m.section("Definitions without an operator", ownerlessText, r.ownerlessItems(allScanned))
	m.section("Catalogs that could not be read", "", r.CatalogsNotRead)
	return m.out.String()
}

// markdown is a text in the making. What it is given as arguments it escapes: clusters and people wrote that.
type markdown struct{ out strings.Builder }

func (m *markdown) line(format string, args ...any) {
	for i := range args {
		if text, ok := args[i].(string); ok {
			args[i] = phrase.Markdown(term.Escape(text))
		}
	}
	fmt.Fprintf(&m.out, format+"\n", args...)
}

// items writes a list after what has to be before it.
func (m *markdown) items(before string, items []string) {
	for i, item := range items {
		if i == 0 {
			m.out.WriteString(before)
		}
		m.line("- %s", item)
	}
}

func (m *markdown) part(p scanPart) {
	for i, g := range p.groups {
		if i == 0 {
			m.line("\n## %s", p.title)
		}
		m.line("\n**%s** (%s)\n\n%s", g.about(allScanned), g.Reason, g.Message)
		m.items("\n", g.Choices)
	}
}

func (m *markdown) section(title, about string, items []string) {
	if len(items) == 0 {
		return
	}
	m.line("\n## %s", title)
	if about != "" {
		m.line("\n%s", about)
	}
	m.items("\n", items)
}

// cell is a text without what ends a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", "/") }
