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
	"github.com/bellwether-dev/bellwether/fleet"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// scanPart is a section of the report: the findings of one class.
type scanPart struct {
	title  string
	tone   term.Tone
	groups []fleet.ScanGroup
}

// listParts returns the sections below the counts. withNotes adds the notes about eligible operators.
func listParts(r fleet.ScanReport, withNotes bool) []scanPart {
	selectGroups := func(class adoption.Class) []fleet.ScanGroup {
		var out []fleet.ScanGroup
		for _, g := range r.Groups {
			if g.Class == class {
				out = append(out, g)
			}
		}
		return out
	}
	parts := []scanPart{
		{title: "Conflicts", tone: term.Bad, groups: selectGroups(adoption.Conflict)},
		{title: "Needs a decision", tone: term.Warn, groups: selectGroups(adoption.NeedsDecision)},
		{title: "Unknown", tone: term.Warn, groups: selectGroups(adoption.Unknown)},
	}
	if withNotes {
		parts = append(parts, scanPart{title: "Eligible, and worth knowing", tone: term.Good, groups: r.Notes})
	}
	return parts
}

// buildVersionTable returns a table that counts the operators of each version by class.
func buildVersionTable(r fleet.ScanReport) *term.Table {
	t := &term.Table{Header: []string{"PACKAGE", "VERSION", "CLUSTERS", "MANAGED", "ELIGIBLE", "DECISION", "CONFLICT",
		"UNKNOWN"}}
	count := func(n int, tone term.Tone) term.Cell {
		if n == 0 {
			return term.Dim.Cell("-")
		}
		return tone.Cell(fmt.Sprint(n))
	}
	for _, v := range r.Packages {
		t.Add(term.Cell{Text: v.Package}, term.Cell{Text: term.DashIfEmpty(v.Version)},
			term.Cell{Text: fmt.Sprint(len(v.Clusters))}, count(v.Classes[adoption.Managed], term.Plain),
			count(v.Classes[adoption.Eligible], term.Good), count(v.Classes[adoption.NeedsDecision], term.Warn),
			count(v.Classes[adoption.Conflict], term.Bad), count(v.Classes[adoption.Unknown], term.Warn))
	}
	return t
}

// summarizeScan returns a sentence that counts the operators by class.
func summarizeScan(r fleet.ScanReport) string {
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
			parts = append(parts, fmt.Sprintf("%d %s", n, describeClass(class, n)))
		}
	}
	return fmt.Sprintf("%s of %s: %s.", phrase.Count(total, "operator"), phrase.Count(len(packages), "package"),
		strings.Join(parts, ", "))
}

// describeClass returns the text for a class after the number n.
func describeClass(class adoption.Class, n int) string {
	switch class {
	case adoption.NeedsDecision:
		return phrase.Word(n, "needs a decision", "need a decision")
	case adoption.Conflict:
		return phrase.Word(n, "has a conflict", "have a conflict")
	}
	return string(class)
}

// describeGroup returns the package, versions, namespace and clusters of a group. It names at most maxClusters
// clusters.
func describeGroup(g fleet.ScanGroup, maxClusters int) string {
	text := g.Package
	if len(g.Versions) > 0 {
		text += " " + phrase.First(g.Versions, 3)
	}
	return fmt.Sprintf("%s in namespace %s on %s", text, g.Namespace, phrase.First(g.Clusters, maxClusters))
}

// describeCoverage returns how many reports are current, and notes about the other clusters. Clusters with the same
// note share a line, which names at most maxClusters clusters.
func describeCoverage(r fleet.ScanReport, now time.Time, maxClusters int) (head string, notes []string) {
	current := 0
	clusters := map[string][]string{}
	var order []string
	for _, c := range r.Clusters {
		if c.State == fleet.ScanCurrent || c.State == fleet.ScanNoOLM {
			current++
		}
		note := describeReport(c, now)
		if note != "" && clusters[note] == nil {
			order = append(order, note)
		}
		clusters[note] = append(clusters[note], c.Name)
	}
	for i, note := range order {
		if i == maxNotes && maxClusters < noClusterLimit { // a wide output has all notes
			notes = append(notes, fmt.Sprintf("%s of further clusters: see -o wide",
				phrase.Count(len(order)-i, "note")))
			break
		}
		notes = append(notes, phrase.First(clusters[note], maxClusters)+": "+note)
	}
	return fmt.Sprintf("The reports of %s are current.", phrase.Part(current, len(r.Clusters), "cluster")), notes
}

// maxNotes is the number of notes about clusters that are shown. maxNotRead is the length at which the text about
// objects that an agent could not read is cut.
const maxNotes, maxNotRead = 12, 160

// describeReport returns the restrictions of a cluster's report; empty if the report is current and complete.
func describeReport(c fleet.ScannedCluster, now time.Time) string {
	var notes []string
	switch c.State {
	case fleet.ScanNoReport:
		text := "its agent has not reported operators"
		switch {
		case c.Agent == "":
			text = "no agent has reported yet"
		case c.StaleSince != nil:
			text += ", and is silent since " + formatSpan(now, c.StaleSince)
		default:
			text += "; if it is of an earlier version (" + c.Agent + "), upgrade it"
		}
		notes = append(notes, text)
	case fleet.ScanStale:
		notes = append(notes, "as it was "+formatSpan(now, c.StaleSince)+" ago, when its reports ended")
	case fleet.ScanNoOLM:
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

func formatSpan(now time.Time, since *time.Time) string {
	if since == nil {
		return "some time"
	}
	return term.Span(now.Sub(*since))
}

const ownerlessText = "Their operator was removed, and its objects may be there still. A ManagedOperator that " +
	"installs the operator takes the definitions over with their objects. If nobody needs the objects, delete the " +
	"definitions on the cluster: their objects go with them."

// formatScanText returns the report for a terminal.
func formatScanText(r fleet.ScanReport, now time.Time, s term.Style) string {
	var out strings.Builder
	head, notes := describeCoverage(r, now, chooseClusterLimit(s))
	out.WriteString(head + "\n")
	for _, note := range notes {
		term.WriteText(&out, s, "", "- "+note)
	}
	out.WriteString("\n" + summarizeScan(r) + "\n")
	if len(r.Packages) > 0 {
		out.WriteString("\n" + buildVersionTable(r).Render(s))
	}
	for _, p := range listParts(r, s.Wide) {
		p.write(&out, s)
	}
	writeItems(&out, s, "Definitions without an operator", ownerlessText, listOwnerlessItems(r, chooseClusterLimit(s)))
	writeItems(&out, s, "Catalogs that could not be read", "", r.CatalogsNotRead)
	return out.String()
}

const indent = "  "

// write writes a section, unless it has no groups. If there are many packages that no catalog has, it lists them
// together at the end, with one text about what to do.
func (p scanPart) write(out *strings.Builder, s term.Style) {
	if len(p.groups) == 0 {
		return
	}
	out.WriteString("\n" + s.Paint(term.Strong, p.title) + "\n")
	absent, otherGroups := splitAbsent(p.groups)
	for _, g := range otherGroups {
		term.WriteText(out, s, indent, fmt.Sprintf("%s %s (%s)", term.Mark(p.tone),
			describeGroup(g, chooseClusterLimit(s)), g.Reason))
		term.WriteText(out, s, indent+indent, g.Message)
		for _, choice := range g.Choices {
			term.WriteText(out, s, indent+indent, "- "+choice)
		}
	}
	if len(absent) == 0 {
		return
	}
	term.WriteText(out, s, indent, fmt.Sprintf("%s %d packages are in no OperatorCatalog (%s)", term.Mark(p.tone),
		len(absent), adoption.ReasonPackageNotInCatalog))
	for _, g := range absent {
		term.WriteText(out, s, indent+indent, "- "+describeGroup(g, chooseClusterLimit(s)))
	}
	term.WriteText(out, s, indent+indent, absentText)
}

// maxDetailedAbsent is the number of packages missing in all catalogs up to which each is shown with its choices.
const maxDetailedAbsent = 3

const absentText = "Import those that you want to manage into a catalog of yours, and publish that: `bellwether " +
	"catalog init ./ladders --package PACKAGE --from CATALOG`, or with --all instead of --package for all packages " +
	"of a catalog. The outputs json, yaml and markdown have the CATALOG of each. Leave the others as they are: " +
	"Bellwether changes nothing of them."

// splitAbsent separates the packages that no catalog has if there are more than maxDetailedAbsent, because a new
// fleet has little else. Otherwise it returns all groups as otherGroups.
func splitAbsent(groups []fleet.ScanGroup) (absent, otherGroups []fleet.ScanGroup) {
	for _, g := range groups {
		if g.Reason == adoption.ReasonPackageNotInCatalog {
			absent = append(absent, g)
		} else {
			otherGroups = append(otherGroups, g)
		}
	}
	if len(absent) <= maxDetailedAbsent {
		return nil, groups
	}
	return absent, otherGroups
}

// writeItems writes a list with a title and an introduction, unless the list is empty.
func writeItems(out *strings.Builder, s term.Style, title, intro string, items []string) {
	if len(items) == 0 {
		return
	}
	out.WriteString("\n" + s.Paint(term.Strong, title) + "\n")
	if intro != "" {
		term.WriteText(out, s, indent, intro)
	}
	for _, item := range items {
		term.WriteText(out, s, indent, "- "+item)
	}
}

// listOwnerlessItems returns a line for each CustomResourceDefinition without an operator.
func listOwnerlessItems(r fleet.ScanReport, maxClusters int) []string {
	var items []string
	for _, d := range r.Ownerless {
		items = append(items, fmt.Sprintf("%s on %s", d.Name, phrase.First(d.Clusters, maxClusters)))
	}
	return items
}

// chooseClusterLimit returns the number of clusters that are named.
func chooseClusterLimit(s term.Style) int {
	if s.Wide {
		return noClusterLimit
	}
	return 5
}

// noClusterLimit is large enough to name all clusters of a fleet.
const noClusterLimit = 1000

// formatScanMarkdown returns the report as Markdown, for a ticket or a web page. Each paragraph is one line.
func formatScanMarkdown(r fleet.ScanReport, now time.Time) string {
	m := &markdown{}
	head, notes := describeCoverage(r, now, noClusterLimit)
	m.writeLine("# Operators on the fleet\n\n%s", head)
	m.writeItems("\n", notes)
	m.writeLine("\n%s", summarizeScan(r))
	m.writeLine("\n## Versions\n\n| Package | Version | Clusters | Managed | Eligible | Needs a decision | " +
		"Conflict | Unknown |\n|---|---|---|---|---|---|---|---|")
	for _, v := range r.Packages {
		m.writeLine("| %s | %s | %d | %d | %d | %d | %d | %d |", replacePipes(v.Package),
			replacePipes(term.DashIfEmpty(v.Version)), len(v.Clusters), v.Classes[adoption.Managed],
			v.Classes[adoption.Eligible], v.Classes[adoption.NeedsDecision], v.Classes[adoption.Conflict],
			v.Classes[adoption.Unknown])
	}
	for _, p := range listParts(r, true) {
		m.writePart(p)
	}
	m.writeSection("Definitions without an operator", ownerlessText, listOwnerlessItems(r, noClusterLimit))
	m.writeSection("Catalogs that could not be read", "", r.CatalogsNotRead)
	return m.out.String()
}

// markdown builds a Markdown text. It escapes string arguments, because they contain texts of clusters and users.
type markdown struct{ out strings.Builder }

// writeLine formats a line. It escapes the arguments that are strings, but not the format.
func (m *markdown) writeLine(format string, args ...any) {
	for i := range args {
		if text, ok := args[i].(string); ok {
			args[i] = phrase.Markdown(term.Escape(text))
		}
	}
	fmt.Fprintf(&m.out, format+"\n", args...)
}

// writeItems writes the prefix and then a list. It writes nothing if the list is empty.
func (m *markdown) writeItems(prefix string, items []string) {
	for i, item := range items {
		if i == 0 {
			m.out.WriteString(prefix)
		}
		m.writeLine("- %s", item)
	}
}

// writePart writes a section with its groups, unless it has none.
func (m *markdown) writePart(p scanPart) {
	for i, g := range p.groups {
		if i == 0 {
			m.writeLine("\n## %s", p.title)
		}
		m.writeLine("\n**%s** (%s)\n\n%s", describeGroup(g, noClusterLimit), g.Reason, g.Message)
		m.writeItems("\n", g.Choices)
	}
}

// writeSection writes a list with a title and an introduction, unless the list is empty.
func (m *markdown) writeSection(title, intro string, items []string) {
	if len(items) == 0 {
		return
	}
	m.writeLine("\n## %s", title)
	if intro != "" {
		m.writeLine("\n%s", intro)
	}
	m.writeItems("\n", items)
}

// replacePipes replaces the characters that would end a cell of a Markdown table.
func replacePipes(text string) string { return strings.ReplaceAll(text, "|", "/") }
