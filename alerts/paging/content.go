// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"fmt"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// What follows are templates of Alertmanager. A group has alerts of one failure, which
// differ in their SLI only. What depends on the SLI is said of the worst one; for all else the first one
// stands for all.

// maxListed is how many alerts of a group an incident lists. PagerDuty takes at most
// 512 KB, and Alertmanager drops all details of an event that is larger.
const maxListed = 20

// worst sets $w to the worst alert of those that fire, or of all if none does: a page before tickets, what is not held
// before what is held, then one about all SLIs, then the one whose budget burns fastest. Burn rates are padded, so that
// they are compared as numbers. It is short, since it is in many texts of each receiver.
const worst = `{{$l:=or .Alerts.Firing .Alerts}}{{$w:=index $l 0}}{{$k:=""}}{{range $l}}` +
	`{{$b:=printf "%t%t%9s" (eq .Labels.severity "page") (not .Annotations.held_until) ` +
	`(or .Annotations.burn "~~~~~~~~~")}}` +
	`{{if gt $b $k}}{{$w = .}}{{$k = $b}}{{end}}{{end}}`

// ofWorst is a template of an annotation of the worst alert.
func ofWorst(name string) string { return worst + "{{ $w.Annotations." + name + " }}" }

// ofWorstOrNone is one with a word for none.
func ofWorstOrNone(name string) string { return worst + "{{ or $w.Annotations." + name + ` "none" }}` }

// orNone is a template of a field of the first alert, with a word for none.
func orNone(field string) string {
	return "{{ or (index (or .Alerts.Firing .Alerts) 0)." + field + ` "none" }}`
}

// named is a template of a name in a field, with a word for none. A name that YAML reads
// as a number or as a truth value, such as 12e4 or no, follows what it is the name of.
func named(kind, field string) string {
	return "{{ with " + field + ` }}{{ if match "(?i)^([-+.0-9].*|~|null|true|false|yes|no|on|off|y|n)$" . }}` + kind +
		" {{ end }}{{ . }}{{ else }}none{{ end }}"
}

// summary is what a person reads first.
var summary = ofWorst("summary") + `{{ if gt (len .Alerts.Firing) 1 }} (and ` +
	`{{ len (slice .Alerts.Firing 1) }} more){{ end }}`

// firing lists the alerts that fire, the worst one first.
var firing = worst + fmt.Sprintf(`{{ if .Alerts.Firing }}{{ $w.Annotations.summary }}`+
	`{{ range $i, $alert := .Alerts.Firing }}`+
	`{{ if and (lt $i %d) (ne $alert.Fingerprint $w.Fingerprint) }}`+"\n"+
	`{{ $alert.Annotations.summary }}{{ end }}{{ end }}{{ else }}none{{ end }}`, maxListed)

// since is when the first alert that fires began.
const since = `{{ with .Alerts.Firing }}{{ $first := (index . 0).StartsAt }}{{ range . }}` +
	`{{ if .StartsAt.Before $first }}` +
	`{{ $first = .StartsAt }}{{ end }}{{ end }}{{ $first.UTC.Format "2006-01-02 15:04:05 MST" }}{{ else }}none{{ end }}`

// detail is a line of what an incident says.
type detail struct{ name, text string }

// details are what an incident says beside its summary; PagerDuty sorts them by name.
// The names firing, resolved, num_firing and num_resolved are Alertmanager's own: if
// they were not set, it would add each alert in full.
//
// Alertmanager reads each text as YAML: an empty one becomes null, and a version such as
// 1.10 a number. So none is empty, and a version follows the name of its operator. Other
// names see named.
func details() []detail {
	out := []detail{
		{"firing", firing},
		{"num_firing", "{{ .Alerts.Firing | len }}"},
		{"num_resolved", "{{ .Alerts.Resolved | len }}"},
		{"resolved", "{{ if .Alerts.Firing }}not yet{{ else }}all alerts{{ end }}"},
		{"firing_since", since},
		{
			"operator",
			`{{ with .GroupLabels.operator }}{{ $.GroupLabels.operator_namespace }}/{{ . }}{{ else }}none{{ end }}`,
		},
		{"version", `{{ with .GroupLabels.version }}{{ $.GroupLabels.operator }} {{ . }}{{ else }}none{{ end }}`},
		{"cluster", named("cluster", ".GroupLabels.cluster")},
		{"clusters", worst + named("clusters", "$w.Annotations.clusters")},
		{"team", named("team", "(index (or .Alerts.Firing .Alerts) 0).Labels.team")},
		{"restarts", worst + named("restarts", "$w.Annotations.restarts")},
		{"runbook", ofWorstOrNone("runbook_url")},
		{"dashboard", ofWorstOrNone("dashboard_url")},
	}
	for _, name := range []string{"operators", "rollout", "wave", "change", "look", "criticality"} {
		out = append(out, detail{name, orNone("Annotations." + name)})
	}
	for _, name := range []string{"description", "cluster_count", "rollback", "burn", "window", "budget_left",
		"custom_resources"} {
		out = append(out, detail{name, ofWorstOrNone(name)})
	}
	return out
}

// Fields of an incident that are not details.
const (
	class     = "{{ .GroupLabels.alertname }}"
	component = "{{ with .GroupLabels.operator }}{{ . }}{{ else }}{{ with $.GroupLabels.cluster }}{{ . }}{{ else }}" +
		"fleet{{ end }}{{ end }}"
	groupName = "{{ with .GroupLabels.operator_namespace }}{{ . }}{{ else }}fleet{{ end }}"
	source    = "{{ with .GroupLabels.cluster }}cluster {{ . }}{{ else }}fleet{{ end }}"
	client    = "Bellwether"
)

// text is what chats and mails say.
var text = worst + "{{ with .Alerts.Firing }}" + listed("$w") + "{{ range $i, $alert := . }}" +
	fmt.Sprintf("{{ if and (lt $i %d) (ne $alert.Fingerprint $w.Fingerprint) }}", maxListed) + listed("$alert") +
	"{{ end }}{{ end }}" + line("clusters", "Clusters") + line("change", "Change") + line("look", "Look") +
	line("rollback", "Roll back") + line("runbook_url", "Runbook") + "{{ end }}"

// listed is a line about an alert.
func listed(alert string) string {
	return fmt.Sprintf("{{ %[1]s.Annotations.summary }}, since {{ %[1]s.StartsAt.UTC.Format "+
		"\"2006-01-02 15:04:05 MST\" }}\n", alert)
}

// line is a line with an annotation of the worst alert, if it has that one.
func line(name, title string) string {
	return fmt.Sprintf("{{ with $w.Annotations.%s }}%s: {{ . }}\n{{ end }}", name, title)
}

// title is the first line of chats and mails: whether it is a page or a ticket, and what it is about.
func (t target) title() string { return "[" + t.kind() + ", {{ .Status }}] " + summary }

// incidentTitle is that of an incident. What is not urgent says so.
func (t target) incidentTitle() string {
	const ticket = "Ticket: "
	switch t.severity {
	case severityTicket:
		return ticket + summary
	case severityGrows, severityAlone:
		return t.either("", ticket) + summary
	}
	return summary
}

// kind is a template of what is sent: page, ticket or self-test.
func (t target) kind() string {
	switch t.severity {
	case severityPage:
		return series.Page
	case severityTicket:
		return series.Ticket
	case severityInfo:
		return SeveritySelfTest
	}
	return t.either(series.Page, series.Ticket)
}

// either is a template that chooses by whether any alert of the group pages, where pages and tickets have the same
// receivers.
func (t target) either(page, ticket string) string {
	pages := `eq .Labels.severity "page"`
	if t.severity == severityAlone {
		pages = `and (` + pages + `) (ne .Labels.scope "operator")`
	}
	return `{{ $page := false }}{{ range or .Alerts.Firing .Alerts }}` +
		`{{ if ` + pages + ` }}{{ $page = true }}{{ end }}` +
		`{{ end }}{{ if $page }}` + page + `{{ else }}` + ticket + `{{ end }}`
}
