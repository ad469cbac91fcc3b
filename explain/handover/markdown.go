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
	"github.com/bellwether-dev/bellwether/phrase"
)

//go:embed handover.md.tmpl
var text string

var page = template.Must(template.New("handover").Option("missingkey=error").Parse(text))

// document is what the template shows.
type document struct {
	From, To, At, Namespace string
	Unknown                 []unknown
	Open, Shift             part
}

// unknown are lists that could not be read for the same reason.
type unknown struct {
	First          bool
	Titles, Reason string
}

// part has the sections that say something; None names the others.
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

// Markdown returns the report as text: CommonMark, which can be read as it is too. Its lines have at most so many
// columns, except for single words that are longer; 0: each paragraph is one line, for a tracker or a chat, which keep
// the line breaks of what is pasted.
func (r Report) Markdown(columns int) string {
	open, shift := r.openSections(), r.shiftSections()
	d := document{From: r.clock(r.From), To: r.clock(r.To), At: r.clock(r.At), Namespace: escape(r.Namespace),
		Unknown: unknowns(append(slices.Clone(open), shift...)),
		Open:    partOf(open, "Nothing is open."), Shift: partOf(shift, "Nothing to report.")}
	var out strings.Builder
	if err := page.Execute(&out, d); err != nil { // the template and its data are ours
		panic(fmt.Sprintf("write handover: %v", err))
	}
	return wrap(strings.TrimRight(out.String(), "\n")+"\n", columns)
}

// wrap breaks the lines of a report; those of an item of a list are indented.
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

// unknowns are the reasons why lists could not be read, each with their titles.
func unknowns(sections []section) []unknown {
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

// partOf leaves out the sections that have nothing, and names them in one line: they
// were read.
func partOf(sections []section, nothing string) part {
	var p part
	var none []string
	for _, s := range sections {
		if s.Unknown == "" && len(s.Lines) == 0 && len(s.Notes) == 0 {
			none = append(none, strings.ToLower(s.Title[:1])+s.Title[1:])
			continue
		}
		p.Sections = append(p.Sections, s)
	}
	switch {
	case len(none) == len(sections):
		p.None = nothing + " Read: " + strings.Join(none, ", ") + "."
	case len(none) > 0:
		p.None = "None: " + strings.Join(none, ", ") + "."
	}
	return p
}

// show makes a section of a list.
func show[T any](r Report, title string, l List[T], line func(T) string) section {
	s := section{Title: title, Unknown: r.prose(l.Unknown)}
	for _, note := range l.Notes {
		s.Notes = append(s.Notes, r.prose(note))
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

func (r Report) openSections() []section {
	o := r.Open
	return []section{
		show(r, "Firing alerts", o.Incidents, r.firing),
		show(r, "Rollouts", o.Rollouts, r.rollout),
		show(r, "Held versions and settings", o.Holds, r.hold),
		show(r, "Low error budgets", o.Budgets, lowBudget),
		show(r, "Silences", o.Silences, r.silence),
		show(r, "Vetoes and freezes", o.Vetoes, r.cluster),
		show(r, "Offline clusters", o.Offline, r.cluster),
		show(r, "Closed change windows", o.Windows, r.window),
	}
}

func (r Report) shiftSections() []section {
	s := r.Shift
	return []section{
		show(r, "Alerts that ended", s.Incidents, r.ended),
		show(r, "Rollouts that started or ended", s.Rollouts, r.outcome),
		show(r, "Decisions", s.Decisions, r.decision),
		show(r, "Error budgets that lost the most", s.Budgets, lostBudget),
		show(r, "Silences that ended", s.Silences, r.silence),
		show(r, "Clusters that came back", s.Clusters, r.clusterBack),
	}
}

// firing is an alert that fires.
func (r Report) firing(i Incident) string {
	out := fmt.Sprintf("**%s** %s: %s, since %s (%s)", i.Firing, i.Name, r.what(i), r.start(i), i.lasted(r.At))
	if i.Pages+i.Tickets > 1 {
		out += "; " + i.often()
	}
	out += "."
	for _, s := range i.Silences {
		out += fmt.Sprintf(" Hidden by a silence of %s until %s.", escape(s.By), r.clock(s.Ends))
	}
	if i.Runbook != "" {
		out += " Runbook: " + escape(i.Runbook)
	}
	return out
}

// ended is an alert that is over.
func (r Report) ended(i Incident) string {
	out := fmt.Sprintf("%s %s: %s, from %s to %s (%s)", i.Severity, i.Name, r.what(i), r.start(i), r.clock(*i.Ended),
		i.lasted(*i.Ended))
	if i.Pages+i.Tickets > 1 {
		out += "; " + i.often()
	}
	return out + "."
}

// what says what an alert is about: in the words of its rule if these are known.
func (r Report) what(i Incident) string {
	switch {
	case i.Summary != "":
		return r.prose(i.Summary)
	case i.About != "":
		return r.prose(i.About)
	}
	return "the fleet"
}

// often says how often it began to fire.
func (i Incident) often() string {
	var parts []string
	if i.Pages > 0 {
		parts = append(parts, phrase.Count(i.Pages, "page"))
	}
	if i.Tickets > 0 {
		parts = append(parts, phrase.Count(i.Tickets, "ticket"))
	}
	return "fired as " + strings.Join(parts, " and ")
}

func (r Report) start(i Incident) string {
	if i.EarlierStart {
		return "before " + r.clock(i.Began)
	}
	return r.clock(i.Began)
}

func (r Report) rollout(o Rollout) string {
	name := named(o.Namespace, o.Operator, o.Name, o.Summary)
	out := fmt.Sprintf("**%s** %s: %s", o.State, name, r.sentence(o.Summary))
	if o.Since != nil {
		out += " Since " + r.clock(*o.Since) + "."
	}
	if i := slices.IndexFunc(o.Next, func(n explain.Next) bool { return n.At != nil }); i >= 0 {
		out += " Next, at " + r.clock(o.Next[i].At.Time) + ": " + r.sentence(o.Next[i].Text)
	}
	if i := slices.IndexFunc(o.Remedies, func(a remedy.Action) bool { return a.Command != "" }); i >= 0 {
		a := o.Remedies[i]
		out += " " + strings.TrimSuffix(r.prose(a.Text), ".") + ": " + code(a.Command)
	}
	return out
}

// named names an operator, and its rollout unless the text begins with that.
func named(namespace, operator, rollout, text string) string {
	out := namespace + "/" + operator
	if strings.HasPrefix(text, "rollout "+rollout+" ") {
		return out
	}
	return out + ", rollout " + rollout
}

func (r Report) hold(h Hold) string {
	reason := h.Reason
	if len(h.Changes) > 0 {
		reason = strings.TrimSuffix(reason, ".") + "; the change: " + strings.Join(h.Changes, "; ")
	}
	return fmt.Sprintf("%s/%s: %s%s: %s", h.Namespace, h.Operator, escape(h.Held), r.since(h.Since), r.sentence(reason))
}

func lowBudget(b budgets.Spending) string {
	return fmt.Sprintf("%s/%s, SLI %s: %s on %s", b.Namespace, b.Operator, escape(b.SLI), leftTwice(b), onClusters(b))
}

// leftTwice says how much is left of a budget, and what would be left without excluded
// time, where there is some.
func leftTwice(b budgets.Spending) string {
	if b.Left == nil || b.LeftExcluding == nil || *b.Left == *b.LeftExcluding {
		return budgets.LeftText(b.Left)
	}
	return fmt.Sprintf("%s (%s without excluded time)", budgets.LeftText(b.Left), budgets.LeftText(b.LeftExcluding))
}

// onClusters names the worst cluster.
func onClusters(b budgets.Spending) string {
	if b.Clusters > 1 {
		return fmt.Sprintf("cluster %s, the worst of %d.", escape(b.Cluster), b.Clusters)
	}
	return fmt.Sprintf("cluster %s.", escape(b.Cluster))
}

func lostBudget(b budgets.Spending) string {
	return fmt.Sprintf("%s/%s, SLI %s: lost %s of its budget, %s, on %s", b.Namespace, b.Operator, escape(b.SLI),
		phrase.Percent(*b.Lost), leftTwice(b), onClusters(b))
}

func (r Report) silence(s ReportedSilence) string {
	out := fmt.Sprintf("by %s, until %s: %s", escape(s.By), r.clock(s.Ends), r.sentence(s.Comment))
	if s.Later {
		out = fmt.Sprintf("by %s, from %s to %s: %s", escape(s.By), r.clock(s.Starts), r.clock(s.Ends),
			r.sentence(s.Comment))
	}
	if out = strings.TrimSuffix(out, ": "); s.Hides != nil && *s.Hides > 0 {
		out = fmt.Sprintf("**hides %s** (%s), ", phrase.Count(*s.Hides, "firing alert"),
			r.prose(listed(s.Hidden, *s.Hides))) + out
	}
	return out + " It matches " + code(strings.Join(s.Matchers, ", ")) + "."
}

// listed are the first ones of some items.
func listed(first []string, total int) string {
	out := strings.Join(first, "; ")
	if more := total - len(first); more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}

func (r Report) cluster(c Cluster) string {
	return strings.TrimSuffix(r.sentence(c.Text), ".") + r.sinceIfNew(c) + "."
}

func (r Report) clusterBack(c Cluster) string { return r.clock(*c.Since) + ": " + r.sentence(c.Text) }

// sinceIfNew leaves out a time that the text has.
func (r Report) sinceIfNew(c Cluster) string {
	if c.Since == nil || strings.Contains(c.Text, " since ") {
		return ""
	}
	return ", " + strings.TrimPrefix(r.since(c.Since), " ")
}

func (r Report) window(w Window) string {
	name := func(names []string, total int, noun string) string {
		return phrase.Count(total, noun) + " (" + strings.ReplaceAll(listed(names, total), "; ", ", ") + ")"
	}
	return fmt.Sprintf("%s on %s: %s", name(w.OperatorNames, w.Operators, "operator"),
		name(w.ClusterNames, w.Clusters, "cluster"), r.sentence(w.Text))
}

func (r Report) outcome(o Outcome) string {
	out := named(o.Namespace, o.Operator, o.Name, o.Summary) + ": " + r.sentence(o.Summary)
	if o.Started != nil {
		out += " Started at " + r.clock(*o.Started) + "."
	}
	if o.Ended != nil {
		out += " Ended at " + r.clock(*o.Ended) + "."
	}
	return out
}

func (r Report) decision(d Decision) string {
	return fmt.Sprintf("%s, %s/%s: %s", r.clock(d.At), d.Namespace, d.Operator, r.sentence(d.Text))
}

func (r Report) since(at *time.Time) string {
	if at == nil {
		return ""
	}
	return " since " + r.clock(*at)
}

// clock writes a time with its time zone, since the hour in which clocks are set back
// is there twice: "2026-11-21 12:00Z" in UTC, as all commands write it, and "2026-11-21 13:00 CET" elsewhere.
func (r Report) clock(at time.Time) string { return clock(at, r.zone) }

func (in Input) clock(at time.Time) string { return clock(at, in.Zone) }

func clock(at time.Time, zone *time.Location) string {
	if zone == nil || zone.String() == time.UTC.String() {
		return at.UTC().Format("2006-01-02 15:04Z")
	}
	return at.In(zone).Format("2006-01-02 15:04 MST")
}

// lasted is how long an alert fired.
func (i Incident) lasted(to time.Time) string {
	if i.EarlierStart {
		return duration.HumanDuration(to.Sub(i.Began)) + " or more"
	}
	return duration.HumanDuration(to.Sub(i.Began))
}

// prose is a text from elsewhere, with its times in the zone of the report.
func (r Report) prose(text string) string { return escape(phrase.Times(text, r.clock)) }

// sentence is prose that ends with a full stop.
func (r Report) sentence(text string) string {
	text = r.prose(phrase.OneLine(text))
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// code is a text as it is.
func code(text string) string { return "`" + strings.ReplaceAll(phrase.OneLine(text), "`", "'") + "`" }

// escape makes a text of others one line that Markdown shows as it is.
func escape(text string) string {
	visible := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, text)
	return phrase.Markdown(visible)
}
