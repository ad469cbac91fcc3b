// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	_ "embed" // the template
	"fmt"
	"slices"
	"strings"
	"text/template"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/bellwether-dev/bellwether/alerts/budgets"
	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/explain"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

//go:embed handover.md.tmpl
var templateText string

var pageTemplate = template.Must(template.New("handover").Option("missingkey=error").Parse(templateText))

// document is the data for the template.
type document struct {
	From, To, At, Namespace string
	Unknown                 []unknown
	Open, Shift             part
}

// unknown has the titles of the lists that could not be read for the same reason.
type unknown struct {
	First          bool
	Titles, Reason string
}

// part has the sections with content. None lists the titles of the other sections.
type part struct {
	Sections []section
	None     string
}

// section is a list as text.
type section struct {
	Title, Unknown string
	Lines, Notes   []string
	More           int
}

// Markdown returns the report as CommonMark, which is also readable as plain text. columns is the maximum length of a
// line, except for longer single words. 0 writes each paragraph on one line, for trackers and chats, which keep the
// line breaks of pasted text.
func (r Report) Markdown(columns int) string {
	open, shift := r.listOpenSections(), r.listShiftSections()
	d := document{From: r.formatTime(r.From), To: r.formatTime(r.To), At: r.formatTime(r.At),
		Namespace: escape(r.Namespace),
		Unknown:   listUnknown(append(slices.Clone(open), shift...)),
		Open:      buildPart(open, "Nothing is open."), Shift: buildPart(shift, "Nothing to report.")}
	var out strings.Builder
	if err := pageTemplate.Execute(&out, d); err != nil { // the template and its data are built in
		panic(fmt.Sprintf("write handover: %v", err))
	}
	return wrap(strings.TrimRight(out.String(), "\n")+"\n", columns)
}

// wrap breaks the lines of a report at the maximum number of columns; 0 does not break them. The lines of a list item
// are indented.
func wrap(text string, columns int) string {
	if columns <= 0 {
		return text
	}
	const indent = "  "
	var out strings.Builder
	for line := range strings.Lines(text) {
		margin := "\n"
		if strings.HasPrefix(line, "- ") {
			margin += indent
		}
		out.WriteString(strings.Join(phrase.WrapMarkdown(line, columns-len(indent)), margin) + "\n")
	}
	return out.String()
}

// listUnknown returns the reasons why lists could not be read, each with the titles of the lists.
func listUnknown(sections []section) []unknown {
	var out []unknown
	for _, s := range sections {
		if s.Unknown == "" {
			continue
		}
		title := strings.ToLower(s.Title[:1]) + s.Title[1:]
		if i := slices.IndexFunc(out, func(u unknown) bool { return u.Reason == s.Unknown }); i >= 0 {
			out[i].Titles += ", " + title
			continue
		}
		if len(out) == 0 {
			title = s.Title
		}
		out = append(out, unknown{First: len(out) == 0, Titles: strings.ToUpper(title[:1]) + title[1:],
			Reason: s.Unknown})
	}
	return out
}

// buildPart returns the sections with content, and lists the titles of the empty sections, which were read, in one
// line. nothing is the text if all sections are empty.
func buildPart(sections []section, nothing string) part {
	var p part
	var emptyTitles []string
	for _, s := range sections {
		if s.Unknown == "" && len(s.Lines) == 0 && len(s.Notes) == 0 {
			emptyTitles = append(emptyTitles, strings.ToLower(s.Title[:1])+s.Title[1:])
			continue
		}
		p.Sections = append(p.Sections, s)
	}
	switch {
	case len(emptyTitles) == len(sections):
		p.None = nothing + " Read: " + strings.Join(emptyTitles, ", ") + "."
	case len(emptyTitles) > 0:
		p.None = "None: " + strings.Join(emptyTitles, ", ") + "."
	}
	return p
}

// buildSection returns a section for a list. line formats an item. A list that is empty or could not be read has a
// section without lines.
func buildSection[T any](r Report, title string, l List[T], line func(T) string) section {
	s := section{Title: title, Unknown: r.formatProse(l.Unknown)}
	for _, note := range l.Notes {
		s.Notes = append(s.Notes, r.formatProse(note))
	}
	if l.Unknown != "" || *l.Total == 0 {
		return s
	}
	s.Title = fmt.Sprintf("%s: %d", title, *l.Total)
	if l.Detail != "" {
		s.Title += " (" + l.Detail + ")"
	}
	for _, item := range l.Items {
		s.Lines = append(s.Lines, line(item))
	}
	s.More = *l.Total - len(l.Items)
	return s
}

// listOpenSections returns the sections for what is open.
func (r Report) listOpenSections() []section {
	o := r.Open
	return []section{
		buildSection(r, "Firing alerts", o.Incidents, r.formatFiring),
		buildSection(r, "Rollouts", o.Rollouts, r.formatRollout),
		buildSection(r, "Held versions and settings", o.Holds, r.formatHold),
		buildSection(r, "Low error budgets", o.Budgets, formatLowBudget),
		buildSection(r, "Silences", o.Silences, r.formatSilence),
		buildSection(r, "Vetoes and freezes", o.Vetoes, r.formatCluster),
		buildSection(r, "Offline clusters", o.Offline, r.formatCluster),
		buildSection(r, "Closed change windows", o.Windows, r.formatWindow),
	}
}

// listShiftSections returns the sections for what happened in the shift.
func (r Report) listShiftSections() []section {
	s := r.Shift
	return []section{
		buildSection(r, "Alerts that ended", s.Incidents, r.formatEnded),
		buildSection(r, "Rollouts that started or ended", s.Rollouts, r.formatOutcome),
		buildSection(r, "Decisions", s.Decisions, r.formatDecision),
		buildSection(r, "Error budgets that lost the most", s.Budgets, formatLostBudget),
		buildSection(r, "Silences that ended", s.Silences, r.formatSilence),
		buildSection(r, "Clusters that came back", s.Clusters, r.formatClusterBack),
	}
}

// formatFiring describes an alert that fires.
func (r Report) formatFiring(i Incident) string {
	out := fmt.Sprintf("**%s** %s: %s, since %s (%s)", i.Firing, i.Name, r.describeSubject(i), r.formatStart(i),
		i.formatDuration(r.At))
	if i.Pages+i.Tickets > 1 {
		out += "; " + i.countFirings()
	}
	out += "."
	for _, s := range i.Silences {
		out += fmt.Sprintf(" Hidden by a silence of %s until %s.", escape(s.By), r.formatTime(s.Ends))
	}
	if i.Runbook != "" {
		out += " Runbook: " + escape(i.Runbook)
	}
	return out
}

// formatEnded describes an alert that has ended.
func (r Report) formatEnded(i Incident) string {
	out := fmt.Sprintf("%s %s: %s, from %s to %s (%s)", i.Severity, i.Name, r.describeSubject(i), r.formatStart(i),
		r.formatTime(*i.Ended), i.formatDuration(*i.Ended))
	if i.Pages+i.Tickets > 1 {
		out += "; " + i.countFirings()
	}
	return out + "."
}

// describeSubject returns the summary of the alert's rule, or else the subject by the alert's labels.
func (r Report) describeSubject(i Incident) string {
	switch {
	case i.Summary != "":
		return r.formatProse(i.Summary)
	case i.About != "":
		return r.formatProse(i.About)
	}
	return "the fleet"
}

// countFirings says how often the alert began to fire.
func (i Incident) countFirings() string {
	var parts []string
	if i.Pages > 0 {
		parts = append(parts, phrase.Count(i.Pages, "page"))
	}
	if i.Tickets > 0 {
		parts = append(parts, phrase.Count(i.Tickets, "ticket"))
	}
	return "fired as " + strings.Join(parts, " and ")
}

// formatStart says when the alert began to fire.
func (r Report) formatStart(i Incident) string {
	if i.EarlierStart {
		return "before " + r.formatTime(i.Began)
	}
	return r.formatTime(i.Began)
}

// formatRollout describes an open rollout with its next event and its first command.
func (r Report) formatRollout(o Rollout) string {
	name := formatRolloutName(o.Namespace, o.Operator, o.Name, o.Summary)
	out := fmt.Sprintf("**%s** %s: %s", o.State, name, r.formatSentence(o.Summary))
	if o.Since != nil {
		out += " Since " + r.formatTime(*o.Since) + "."
	}
	if i := slices.IndexFunc(o.Next, func(n explain.Next) bool { return n.At != nil }); i >= 0 {
		out += " Next, at " + r.formatTime(o.Next[i].At.Time) + ": " + r.formatSentence(o.Next[i].Text)
	}
	if i := slices.IndexFunc(o.Remedies, func(a remedy.Action) bool { return a.Command != "" }); i >= 0 {
		a := o.Remedies[i]
		out += " " + strings.TrimSuffix(r.formatProse(a.Text), ".") + ": " + formatCode(a.Command)
	}
	return out
}

// formatRolloutName returns the name of the operator, with the rollout's name unless the text begins with that name.
func formatRolloutName(namespace, operator, rollout, text string) string {
	out := namespace + "/" + operator
	if strings.HasPrefix(text, "rollout "+rollout+" ") {
		return out
	}
	return out + ", rollout " + rollout
}

// formatHold describes a hold.
func (r Report) formatHold(h Hold) string {
	reason := h.Reason
	if len(h.Changes) > 0 {
		reason = strings.TrimSuffix(reason, ".") + "; the change: " + strings.Join(h.Changes, "; ")
	}
	return fmt.Sprintf("%s/%s: %s%s: %s", h.Namespace, h.Operator, escape(h.Held), r.formatSince(h.Since),
		r.formatSentence(reason))
}

// formatLowBudget describes a budget with little left.
func formatLowBudget(b budgets.Spending) string {
	return fmt.Sprintf("%s/%s, SLI %s: %s on %s", b.Namespace, b.Operator, escape(b.SLI), formatLeft(b),
		formatWorstCluster(b))
}

// formatLeft returns the remaining part of a budget, and the part without excluded time if that differs.
func formatLeft(b budgets.Spending) string {
	if b.Left == nil || b.LeftExcluding == nil || *b.Left == *b.LeftExcluding {
		return budgets.LeftText(b.Left)
	}
	return fmt.Sprintf("%s (%s without excluded time)", budgets.LeftText(b.Left), budgets.LeftText(b.LeftExcluding))
}

// formatWorstCluster returns the worst cluster of a budget.
func formatWorstCluster(b budgets.Spending) string {
	if b.Clusters > 1 {
		return fmt.Sprintf("cluster %s, the worst of %d.", escape(b.Cluster), b.Clusters)
	}
	return fmt.Sprintf("cluster %s.", escape(b.Cluster))
}

// formatLostBudget describes a budget that lost the most in the shift.
func formatLostBudget(b budgets.Spending) string {
	return fmt.Sprintf("%s/%s, SLI %s: lost %s of its budget, %s, on %s", b.Namespace, b.Operator, escape(b.SLI),
		phrase.Percent(*b.Lost), formatLeft(b), formatWorstCluster(b))
}

// formatSilence describes a silence.
func (r Report) formatSilence(s ReportedSilence) string {
	out := fmt.Sprintf("by %s, until %s: %s", escape(s.By), r.formatTime(s.Ends), r.formatSentence(s.Comment))
	if s.Later {
		out = fmt.Sprintf("by %s, from %s to %s: %s", escape(s.By), r.formatTime(s.Starts), r.formatTime(s.Ends),
			r.formatSentence(s.Comment))
	}
	if out = strings.TrimSuffix(out, ": "); s.Hides != nil && *s.Hides > 0 {
		out = fmt.Sprintf("**hides %s** (%s), ", phrase.Count(*s.Hides, "firing alert"),
			r.formatProse(formatList(s.Hidden, *s.Hides))) + out
	}
	return out + " It matches " + formatCode(strings.Join(s.Matchers, ", ")) + "."
}

// formatList joins the first items of a list, and says how many more there are.
func formatList(firstItems []string, total int) string {
	out := strings.Join(firstItems, "; ")
	if more := total - len(firstItems); more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}

// formatCluster describes a fact about a cluster.
func (r Report) formatCluster(c Cluster) string {
	return strings.TrimSuffix(r.formatSentence(c.Text), ".") + r.formatSinceIfNew(c) + "."
}

// formatClusterBack says when a cluster came back.
func (r Report) formatClusterBack(c Cluster) string {
	return r.formatTime(*c.Since) + ": " + r.formatSentence(c.Text)
}

// formatSinceIfNew returns the time of a fact, or "" if the text already has it.
func (r Report) formatSinceIfNew(c Cluster) string {
	if c.Since == nil || strings.Contains(c.Text, " since ") {
		return ""
	}
	return ", " + strings.TrimPrefix(r.formatSince(c.Since), " ")
}

// formatWindow describes a closed window.
func (r Report) formatWindow(w Window) string {
	formatNames := func(names []string, total int, noun string) string {
		return phrase.Count(total, noun) + " (" + strings.ReplaceAll(formatList(names, total), "; ", ", ") + ")"
	}
	return fmt.Sprintf("%s on %s: %s", formatNames(w.OperatorNames, w.Operators, "operator"),
		formatNames(w.ClusterNames, w.Clusters, "cluster"), r.formatSentence(w.Text))
}

// formatOutcome describes a rollout that started or ended in the shift.
func (r Report) formatOutcome(o Outcome) string {
	out := formatRolloutName(o.Namespace, o.Operator, o.Name, o.Summary) + ": " + r.formatSentence(o.Summary)
	if o.Started != nil {
		out += " Started at " + r.formatTime(*o.Started) + "."
	}
	if o.Ended != nil {
		out += " Ended at " + r.formatTime(*o.Ended) + "."
	}
	return out
}

// formatDecision describes a decision.
func (r Report) formatDecision(d Decision) string {
	return fmt.Sprintf("%s, %s/%s: %s", r.formatTime(d.At), d.Namespace, d.Operator, r.formatSentence(d.Text))
}

// formatSince returns " since TIME", or "" if the time is not known.
func (r Report) formatSince(at *time.Time) string {
	if at == nil {
		return ""
	}
	return " since " + r.formatTime(*at)
}

// formatTime formats a time with its time zone, because an hour occurs twice when clocks are set back: "2026-11-21
// 12:00Z" in UTC, as in all commands, and "2026-11-21 13:00 CET" in other zones.
func (r Report) formatTime(at time.Time) string { return formatTime(at, r.zone) }

// formatTime formats a time in the zone of the report.
func (in Input) formatTime(at time.Time) string { return formatTime(at, in.Zone) }

// formatTime formats a time in a zone; nil means UTC.
func formatTime(at time.Time, zone *time.Location) string {
	if zone == nil || zone.String() == time.UTC.String() {
		return at.UTC().Format("2006-01-02 15:04Z")
	}
	return at.In(zone).Format("2006-01-02 15:04 MST")
}

// formatDuration says how long an alert fired.
func (i Incident) formatDuration(end time.Time) string {
	if i.EarlierStart {
		return duration.HumanDuration(end.Sub(i.Began)) + " or more"
	}
	return duration.HumanDuration(end.Sub(i.Began))
}

// formatProse escapes a text from another system, with its times in the zone of the report.
func (r Report) formatProse(text string) string { return escape(phrase.Times(text, r.formatTime)) }

// formatSentence returns prose that ends with a period.
func (r Report) formatSentence(text string) string {
	text = r.formatProse(phrase.OneLine(text))
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// formatCode returns a text as inline code.
func formatCode(text string) string {
	return "`" + strings.ReplaceAll(phrase.OneLine(text), "`", "'") + "`"
}

// escape returns a text from another system as one line that Markdown shows unchanged.
func escape(text string) string {
	visible := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, text)
	return phrase.Markdown(visible)
}
