// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/incidents"
	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/phrase"
)

// Silence is one of Alertmanager.
type Silence struct {
	ID string
	// By is who made it, and Comment why.
	By, Comment string
	Matchers    []Matcher
	// Starts is when it began or begins, and Ends when it ended or ends.
	Starts, Ends time.Time
}

// Matcher selects alerts by a label, as Alertmanager does.
type Matcher struct {
	Name, Value    string
	Regex, Negated bool
}

func (m Matcher) String() string {
	operator := map[[2]bool]string{{false, false}: "=", {true, false}: "=~", {false, true}: "!=", {true, true}: "!~"}
	return fmt.Sprintf("%s%s%q", m.Name, operator[[2]bool{m.Regex, m.Negated}], m.Value)
}

// matches tells whether the matcher may match a value. An expression that cannot be
// read may match anything.
func (m Matcher) matches(value string) bool {
	if !m.Regex {
		return (m.Value == value) != m.Negated
	}
	expression, err := regexp.Compile("^(?:" + m.Value + ")$")
	return err != nil || expression.MatchString(value) != m.Negated
}

// Alert is one that Alertmanager has.
type Alert struct {
	Labels map[string]string
	// SilencedBy are IDs of silences.
	SilencedBy []string
}

// Incident is an alert that fired in the shift, or fires.
type Incident struct {
	incidents.Incident
	// About names what the alert is about, by its labels.
	About string `json:"about"`
	// Silences hide the alert.
	Silences []SilenceReference `json:"silences,omitempty"`
}

// SilenceReference names a silence.
type SilenceReference struct {
	ID   string    `json:"id"`
	By   string    `json:"by"`
	Ends time.Time `json:"ends"`
}

// ReportedSilence is a silence that may hide alerts of Bellwether's rules.
type ReportedSilence struct {
	ID       string    `json:"id"`
	By       string    `json:"by"`
	Comment  string    `json:"comment"`
	Matchers []string  `json:"matchers"`
	Starts   time.Time `json:"starts"`
	Ends     time.Time `json:"ends"`
	// Later says that it begins after the time of the report.
	Later bool `json:"later,omitempty"`
	// Hides counts the alerts that it hides now, and Hidden names the first ones. Nil:
	// not known.
	Hides  *int     `json:"hides"`
	Hidden []string `json:"hidden,omitempty"`
}

// incidents returns those that fire, and those that are over.
func (in Input) incidents() (open, ended List[Incident]) {
	var fire, over []Incident
	for _, i := range in.Incidents.Items {
		reported := Incident{Incident: i, About: about(i.Labels)}
		if i.Firing == "" {
			over = append(over, reported)
			continue
		}
		reported.Silences = in.silencesOf(i)
		fire = append(fire, reported)
	}
	open = listOf(in.Most, in.Incidents.Unknown, fire)
	open.Detail = bySeverity(fire, func(i Incident) string { return i.Firing })
	ended = listOf(in.Most, in.Incidents.Unknown, over)
	ended.Detail = bySeverity(over, func(i Incident) string { return i.Severity })
	for i, g := range in.Gaps {
		if i == maxNotes {
			ended.Notes = append(ended.Notes, fmt.Sprintf("%d more times are not known.", len(in.Gaps)-i))
			break
		}
		ended.Notes = append(ended.Notes, fmt.Sprintf("Prometheus did not evaluate Bellwether's rules from %s to %s: "+
			"which alerts fired is not known.", in.clock(g.From), in.clock(g.To)))
	}
	if last := len(in.Gaps) - 1; last >= 0 && in.Now.Sub(in.Gaps[last].To) < incidents.Step {
		open.Notes = append(open.Notes, fmt.Sprintf("Prometheus has not evaluated Bellwether's rules since %s: this "+
			"is what fired then.", in.clock(in.Gaps[last].From)))
	}
	return open, ended
}

// maxNotes bounds what is said of gaps.
const maxNotes = 5

func bySeverity(list []Incident, severity func(Incident) string) string {
	counts := map[string]int{}
	for _, i := range list {
		counts[severity(i)]++
	}
	if len(list) == 0 {
		return ""
	}
	return phrase.Count(counts[series.Page], "page") + ", " + phrase.Count(counts[series.Ticket], "ticket")
}

// about names what an alert is about.
func about(labels map[string]string) string {
	rest := maps.Clone(labels)
	delete(rest, series.Scope)
	var parts []string
	add := func(format string, names ...string) {
		var values []any
		for _, name := range names {
			if rest[name] == "" {
				return
			}
			values = append(values, rest[name])
		}
		parts = append(parts, fmt.Sprintf(format, values...))
		for _, name := range names {
			delete(rest, name)
		}
	}
	add("%s/%s", series.OperatorNamespace, series.Operator)
	add("version %s", series.Version)
	add("SLI %s", series.SLI)
	add("cluster %s", series.Cluster)
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		parts = append(parts, name+" "+rest[name])
	}
	return strings.Join(parts, ", ")
}

// silencesOf are the silences that hide an incident. Alertmanager's alerts may have
// more labels, which Prometheus adds when it sends them.
func (in Input) silencesOf(i incidents.Incident) []SilenceReference {
	var out []SilenceReference
	for _, a := range in.Alerts.Items {
		if a.Labels["alertname"] != i.Name || !contains(a.Labels, i.Labels) {
			continue
		}
		for _, s := range in.Silences.Items {
			if slices.Contains(a.SilencedBy, s.ID) {
				out = append(out, SilenceReference{ID: s.ID, By: phrase.OneLine(s.By), Ends: s.Ends.UTC()})
			}
		}
	}
	return slices.Compact(out)
}

func contains(all, some map[string]string) bool {
	for name, value := range some {
		if all[name] != value {
			return false
		}
	}
	return true
}

// silences returns those that are in force or begin later, and those that ended in
// the shift or after it.
func (in Input) silences() (open, ended List[ReportedSilence]) {
	var inForce, over []ReportedSilence
	others := 0
	for _, s := range in.Silences.Items {
		switch {
		case !s.Ends.After(in.Now) && !s.Ends.After(in.From):
		case !in.isOurs(s):
			others++
		case s.Ends.After(in.Now):
			inForce = append(inForce, in.report(s))
		default:
			over = append(over, in.report(s))
		}
	}
	slices.SortFunc(inForce, func(a, b ReportedSilence) int {
		return cmp.Or(cmp.Compare(hides(b), hides(a)), a.Ends.Compare(b.Ends), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(over, func(a, b ReportedSilence) int {
		return cmp.Or(b.Ends.Compare(a.Ends), cmp.Compare(a.ID, b.ID))
	})
	open, ended = listOf(in.Most, in.Silences.Unknown, inForce), listOf(in.Most, in.Silences.Unknown, over)
	if hiding := countIf(inForce, func(s ReportedSilence) bool { return hides(s) > 0 }); hiding > 0 {
		open.Detail = fmt.Sprintf("hiding firing alerts: %d", hiding)
	}
	if in.Silences.Unknown == "" && in.Alerts.Unknown != "" {
		open.Notes = append(open.Notes, "Which alerts they hide is not known: "+in.Alerts.Unknown+".")
	}
	if others > 0 {
		open.Notes = append(open.Notes, "Not listed, because they match none of Bellwether's alerts: "+
			phrase.Count(others, "silence")+".")
	}
	return open, ended
}

func countIf[T any](list []T, is func(T) bool) int {
	n := 0
	for _, item := range list {
		if is(item) {
			n++
		}
	}
	return n
}

func hides(s ReportedSilence) int {
	if s.Hides == nil {
		return 0
	}
	return *s.Hides
}

// ourAlerts are the names of the alerts of Bellwether's rules. To list them, the rules
// are built, which not every command should wait for.
var ourAlerts = sync.OnceValue(func() []string {
	return append(slo.SwitchableAlerts(), slo.AlertOperator, slo.AlertRelease, slo.AlertCluster)
})

// isOurs tells whether a silence may hide an alert of Bellwether's rules.
func (in Input) isOurs(s Silence) bool {
	for _, m := range s.Matchers {
		switch {
		case m.Name == "alertname" && !slices.ContainsFunc(ourAlerts(), m.matches):
			return false
		case m.Name == series.OperatorNamespace && in.Namespace != "" && !m.matches(in.Namespace) && !m.matches(""):
			return false
		}
	}
	return true
}

// maxHidden is how many hidden alerts are named.
const maxHidden = 3

func (in Input) report(s Silence) ReportedSilence {
	out := ReportedSilence{ID: s.ID, By: phrase.OneLine(s.By), Comment: phrase.Truncate(phrase.OneLine(s.Comment), 300),
		Starts: s.Starts.UTC(), Ends: s.Ends.UTC(), Later: s.Starts.After(in.Now), Matchers: []string{}}
	for _, m := range s.Matchers {
		out.Matchers = append(out.Matchers, m.String())
	}
	if in.Alerts.Unknown != "" {
		return out
	}
	var hidden []string
	for _, a := range in.Alerts.Items {
		if slices.Contains(a.SilencedBy, s.ID) {
			hidden = append(hidden, strings.TrimSuffix(a.Labels["alertname"]+" of "+about(ofAlert(a.Labels)), " of "))
		}
	}
	slices.Sort(hidden)
	count := len(hidden)
	out.Hides, out.Hidden = &count, hidden[:min(count, maxHidden)]
	return out
}

// ofAlert are the labels of an alert that say what it is about.
func ofAlert(labels map[string]string) map[string]string {
	out := map[string]string{}
	for _, name := range []string{series.OperatorNamespace, series.Operator, series.Version, series.SLI,
		series.Cluster} {
		if labels[name] != "" {
			out[name] = labels[name]
		}
	}
	return out
}
