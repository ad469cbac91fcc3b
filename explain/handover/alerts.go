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
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Silence is a silence of Alertmanager.
type Silence struct {
	ID string
	// By is the author of the silence. Comment is the author's reason.
	By, Comment string
	Matchers    []Matcher
	// Starts is the begin and Ends is the end of the silence.
	Starts, Ends time.Time
}

// Matcher selects alerts by a label, as in Alertmanager.
type Matcher struct {
	Name, Value    string
	Regex, Negated bool
}

func (m Matcher) String() string {
	operator := map[[2]bool]string{{false, false}: "=", {true, false}: "=~", {false, true}: "!=", {true, true}: "!~"}
	return fmt.Sprintf("%s%s%q", m.Name, operator[[2]bool{m.Regex, m.Negated}], m.Value)
}

// canMatch reports whether the matcher can match a value. An expression that cannot be parsed can match any value.
func (m Matcher) canMatch(value string) bool {
	if !m.Regex {
		return (m.Value == value) != m.Negated
	}
	expression, err := regexp.Compile("^(?:" + m.Value + ")$")
	return err != nil || expression.MatchString(value) != m.Negated
}

// Alert is an alert in Alertmanager.
type Alert struct {
	Labels map[string]string
	// SilencedBy are the IDs of silences.
	SilencedBy []string
}

// Incident is an alert that fired in the shift or fires now.
type Incident struct {
	incidents.Incident
	// About describes the subject of the alert by its labels.
	About string `json:"about"`
	// Silences are the silences that hide the alert.
	Silences []SilenceReference `json:"silences,omitempty"`
}

// SilenceReference is a reference to a silence.
type SilenceReference struct {
	ID   string    `json:"id"`
	By   string    `json:"by"`
	Ends time.Time `json:"ends"`
}

// ReportedSilence is a silence that can hide alerts of Bellwether's rules.
type ReportedSilence struct {
	ID       string    `json:"id"`
	By       string    `json:"by"`
	Comment  string    `json:"comment"`
	Matchers []string  `json:"matchers"`
	Starts   time.Time `json:"starts"`
	Ends     time.Time `json:"ends"`
	// Later is true if the silence begins after the time of the report.
	Later bool `json:"later,omitempty"`
	// Hides is the number of alerts that the silence hides now; nil if it is not known. Hidden lists the first
	// of them.
	Hides  *int     `json:"hides"`
	Hidden []string `json:"hidden,omitempty"`
}

// listIncidents returns the incidents that fire, and the incidents that have ended. Notes say for which times it is not
// known which alerts fired.
func (in Input) listIncidents() (open, ended List[Incident]) {
	var firing, endedIncidents []Incident
	for _, i := range in.Incidents.Items {
		reported := Incident{Incident: i, About: describeLabels(i.Labels)}
		if i.Firing == "" {
			endedIncidents = append(endedIncidents, reported)
			continue
		}
		reported.Silences = in.findSilences(i)
		firing = append(firing, reported)
	}
	open = limitList(in.Most, in.Incidents.Unknown, firing)
	open.Detail = countBySeverity(firing, func(i Incident) string { return i.Firing })
	ended = limitList(in.Most, in.Incidents.Unknown, endedIncidents)
	ended.Detail = countBySeverity(endedIncidents, func(i Incident) string { return i.Severity })
	for i, g := range in.Gaps {
		if i == maxNotes {
			ended.Notes = append(ended.Notes, fmt.Sprintf("%d more times are not known.", len(in.Gaps)-i))
			break
		}
		ended.Notes = append(ended.Notes, fmt.Sprintf("Prometheus did not evaluate Bellwether's rules from %s to %s: "+
			"which alerts fired is not known.", in.formatTime(g.From), in.formatTime(g.To)))
	}
	if last := len(in.Gaps) - 1; last >= 0 && in.Now.Sub(in.Gaps[last].To) < incidents.Step {
		open.Notes = append(open.Notes, fmt.Sprintf("Prometheus has not evaluated Bellwether's rules since %s: this "+
			"is what fired then.", in.formatTime(in.Gaps[last].From)))
	}
	return open, ended
}

// maxNotes is the maximum number of notes about gaps.
const maxNotes = 5

// countBySeverity returns the number of pages and tickets as text, or "" if the list is empty.
func countBySeverity(list []Incident, severity func(Incident) string) string {
	counts := map[string]int{}
	for _, i := range list {
		counts[severity(i)]++
	}
	if len(list) == 0 {
		return ""
	}
	return phrase.Count(counts[series.Page], "page") + ", " + phrase.Count(counts[series.Ticket], "ticket")
}

// describeLabels describes the subject of an alert by its labels: first the operator, the version, the SLI and the
// cluster, then the other labels by name.
func describeLabels(labels map[string]string) string {
	remaining := maps.Clone(labels)
	delete(remaining, series.Scope)
	var parts []string
	// add appends a text with the values of the labels, unless a label is missing.
	add := func(format string, names ...string) {
		var values []any
		for _, name := range names {
			if remaining[name] == "" {
				return
			}
			values = append(values, remaining[name])
		}
		parts = append(parts, fmt.Sprintf(format, values...))
		for _, name := range names {
			delete(remaining, name)
		}
	}
	add("%s/%s", series.OperatorNamespace, series.Operator)
	add("version %s", series.Version)
	add("SLI %s", series.SLI)
	add("cluster %s", series.Cluster)
	for _, name := range slices.Sorted(maps.Keys(remaining)) {
		parts = append(parts, name+" "+remaining[name])
	}
	return strings.Join(parts, ", ")
}

// findSilences returns the silences that hide an incident. The alerts in Alertmanager can have more labels than the
// incident, because Prometheus adds labels when it sends alerts.
func (in Input) findSilences(i incidents.Incident) []SilenceReference {
	var out []SilenceReference
	for _, a := range in.Alerts.Items {
		if a.Labels["alertname"] != i.Name || !hasLabels(a.Labels, i.Labels) {
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

// hasLabels reports whether all has the labels in subset with the same values.
func hasLabels(all, subset map[string]string) bool {
	for name, value := range subset {
		if all[name] != value {
			return false
		}
	}
	return true
}

// listSilences returns the silences that are in force or begin later, and the silences that ended in the shift or
// after it.
func (in Input) listSilences() (open, ended List[ReportedSilence]) {
	var inForce, endedSilences []ReportedSilence
	unrelated := 0
	for _, s := range in.Silences.Items {
		switch {
		case !s.Ends.After(in.Now) && !s.Ends.After(in.From): // it ended before the shift
		case !in.isRelevant(s):
			unrelated++
		case s.Ends.After(in.Now):
			inForce = append(inForce, in.reportSilence(s))
		default:
			endedSilences = append(endedSilences, in.reportSilence(s))
		}
	}
	slices.SortFunc(inForce, func(a, b ReportedSilence) int {
		return cmp.Or(cmp.Compare(countHidden(b), countHidden(a)), a.Ends.Compare(b.Ends), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(endedSilences, func(a, b ReportedSilence) int {
		return cmp.Or(b.Ends.Compare(a.Ends), cmp.Compare(a.ID, b.ID))
	})
	open = limitList(in.Most, in.Silences.Unknown, inForce)
	ended = limitList(in.Most, in.Silences.Unknown, endedSilences)
	if hiding := countIf(inForce, func(s ReportedSilence) bool { return countHidden(s) > 0 }); hiding > 0 {
		open.Detail = fmt.Sprintf("hiding firing alerts: %d", hiding)
	}
	if in.Silences.Unknown == "" && in.Alerts.Unknown != "" {
		open.Notes = append(open.Notes, "Which alerts they hide is not known: "+in.Alerts.Unknown+".")
	}
	if unrelated > 0 {
		open.Notes = append(open.Notes, "Not listed, because they match none of Bellwether's alerts: "+
			phrase.Count(unrelated, "silence")+".")
	}
	return open, ended
}

// countIf counts the items for which matches returns true.
func countIf[T any](list []T, matches func(T) bool) int {
	n := 0
	for _, item := range list {
		if matches(item) {
			n++
		}
	}
	return n
}

// countHidden returns how many alerts a silence hides; 0 if it is not known.
func countHidden(s ReportedSilence) int {
	if s.Hides == nil {
		return 0
	}
	return *s.Hides
}

// listOwnAlerts returns the names of the alerts of Bellwether's rules. It builds the rules on the first call only,
// because not every command needs them.
var listOwnAlerts = sync.OnceValue(func() []string {
	return append(slo.SwitchableAlerts(), slo.AlertOperator, slo.AlertRelease, slo.AlertCluster)
})

// isRelevant reports whether a silence can hide an alert of Bellwether's rules. If the report is limited to a
// namespace, alerts of this namespace and alerts without a namespace count.
func (in Input) isRelevant(s Silence) bool {
	for _, m := range s.Matchers {
		switch {
		case m.Name == "alertname" && !slices.ContainsFunc(listOwnAlerts(), m.canMatch):
			return false
		case m.Name == series.OperatorNamespace && in.Namespace != "" && !m.canMatch(in.Namespace) && !m.canMatch(""):
			return false
		}
	}
	return true
}

// maxHidden is the maximum number of hidden alerts that are listed.
const maxHidden = 3

// reportSilence returns a silence in the form of the report, with the alerts that it hides if the alerts could be read.
func (in Input) reportSilence(s Silence) ReportedSilence {
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
			hidden = append(hidden, strings.TrimSuffix(a.Labels["alertname"]+" of "+
				describeLabels(selectLabels(a.Labels)), " of "))
		}
	}
	slices.Sort(hidden)
	count := len(hidden)
	out.Hides, out.Hidden = &count, hidden[:min(count, maxHidden)]
	return out
}

// selectLabels returns the labels of an alert that describe its subject.
func selectLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for _, name := range []string{series.OperatorNamespace, series.Operator, series.Version, series.SLI,
		series.Cluster} {
		if labels[name] != "" {
			out[name] = labels[name]
		}
	}
	return out
}
