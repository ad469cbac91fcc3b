// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"fmt"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// The texts below are templates of Alertmanager. A group contains the alerts of one failure, which differ only
// in their SLI. Texts that depend on the SLI describe the worst alert; all other texts describe the first alert.

// maxListed is how many alerts of a group an incident lists. PagerDuty accepts
// at most 512 KB, and Alertmanager drops all details of a larger event.
const maxListed = 20

// setWorst sets $w to the worst of the firing alerts, or of all alerts if none fires. The
// order is: pages before tickets, alerts that are not held before held alerts, alerts about
// all SLIs, then the alert whose budget burns fastest. Burn rates are padded, so that they
// compare as numbers. The template is short, because it is in many texts of each receiver.
const setWorst = `{{$l:=or .Alerts.Firing .Alerts}}{{$w:=index $l 0}}{{$k:=""}}{{range $l}}` +
	`{{$b:=printf "%t%t%9s" (eq .Labels.severity "page") (not .Annotations.held_until) ` +
	`(or .Annotations.burn "~~~~~~~~~")}}` +
	`{{if gt $b $k}}{{$w = .}}{{$k = $b}}{{end}}{{end}}`

// formatWorst returns a template of an annotation of the worst alert.
func formatWorst(name string) string { return setWorst + "{{ $w.Annotations." + name + " }}" }

// formatWorstOrNone is like formatWorst, with "none" for an empty annotation.
func formatWorstOrNone(name string) string {
	return setWorst + "{{ or $w.Annotations." + name + ` "none" }}`
}

// formatFirstOrNone returns a template of a field of the first alert, with "none" for an empty field.
func formatFirstOrNone(field string) string {
	return "{{ or (index (or .Alerts.Firing .Alerts) 0)." + field + ` "none" }}`
}

// formatName returns a template of a name in a field, with "none" for an empty field. If YAML would
// read the name as a number or a truth value, such as 12e4 or no, the kind precedes the name.
func formatName(kind, field string) string {
	return "{{ with " + field + ` }}{{ if match "(?i)^([-+.0-9].*|~|null|true|false|yes|no|on|off|y|n)$" . }}` + kind +
		" {{ end }}{{ . }}{{ else }}none{{ end }}"
}

// summary is the first text that a person reads.
var summary = formatWorst("summary") + `{{ if gt (len .Alerts.Firing) 1 }} (and ` +
	`{{ len (slice .Alerts.Firing 1) }} more){{ end }}`

// firing lists the firing alerts, the worst alert first.
var firing = setWorst + fmt.Sprintf(`{{ if .Alerts.Firing }}{{ $w.Annotations.summary }}`+
	`{{ range $i, $alert := .Alerts.Firing }}`+
	`{{ if and (lt $i %d) (ne $alert.Fingerprint $w.Fingerprint) }}`+"\n"+
	`{{ $alert.Annotations.summary }}{{ end }}{{ end }}{{ else }}none{{ end }}`, maxListed)

// firingSince is the start of the first firing alert.
const firingSince = `{{ with .Alerts.Firing }}{{ $first := (index . 0).StartsAt }}{{ range . }}` +
	`{{ if .StartsAt.Before $first }}` +
	`{{ $first = .StartsAt }}{{ end }}{{ end }}{{ $first.UTC.Format "2006-01-02 15:04:05 MST" }}{{ else }}none{{ end }}`

// detail is a named text of an incident.
type detail struct{ name, text string }

// listDetails returns the details of an incident in addition to its summary; PagerDuty
// sorts them by name. Alertmanager itself uses the names firing, resolved, num_firing
// and num_resolved: if they were not set, it would add every alert in full.
//
// Alertmanager parses each text as YAML: an empty text becomes null, and a version such as 1.10 a number.
// So no text is empty, and a version follows the name of its operator. For other names see formatName.
func listDetails() []detail {
	out := []detail{
		{"firing", firing},
		{"num_firing", "{{ .Alerts.Firing | len }}"},
		{"num_resolved", "{{ .Alerts.Resolved | len }}"},
		{"resolved", "{{ if .Alerts.Firing }}not yet{{ else }}all alerts{{ end }}"},
		{"firing_since", firingSince},
		{
			"operator",
			`{{ with .GroupLabels.operator }}{{ $.GroupLabels.operator_namespace }}/{{ . }}{{ else }}none{{ end }}`,
		},
		{"version", `{{ with .GroupLabels.version }}{{ $.GroupLabels.operator }} {{ . }}{{ else }}none{{ end }}`},
		{"cluster", formatName("cluster", ".GroupLabels.cluster")},
		{"clusters", setWorst + formatName("clusters", "$w.Annotations.clusters")},
		{"team", formatName("team", "(index (or .Alerts.Firing .Alerts) 0).Labels.team")},
		{"restarts", setWorst + formatName("restarts", "$w.Annotations.restarts")},
		{"runbook", formatWorstOrNone("runbook_url")},
		{"dashboard", formatWorstOrNone("dashboard_url")},
	}
	for _, name := range []string{"operators", "rollout", "wave", "change", "look", "criticality"} {
		out = append(out, detail{name, formatFirstOrNone("Annotations." + name)})
	}
	for _, name := range []string{"description", "cluster_count", "rollback", "burn", "window", "budget_left",
		"custom_resources"} {
		out = append(out, detail{name, formatWorstOrNone(name)})
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

// text is the text of chat messages and mails.
var text = setWorst + "{{ with .Alerts.Firing }}" + formatAlert("$w") + "{{ range $i, $alert := . }}" +
	fmt.Sprintf("{{ if and (lt $i %d) (ne $alert.Fingerprint $w.Fingerprint) }}", maxListed) + formatAlert("$alert") +
	"{{ end }}{{ end }}" + formatLine("clusters", "Clusters") + formatLine("change", "Change") +
	formatLine("look", "Look") + formatLine("rollback", "Roll back") + formatLine("runbook_url", "Runbook") +
	"{{ end }}"

// formatAlert returns a template of a line about an alert.
func formatAlert(alert string) string {
	return fmt.Sprintf("{{ %[1]s.Annotations.summary }}, since {{ %[1]s.StartsAt.UTC.Format "+
		"\"2006-01-02 15:04:05 MST\" }}\n", alert)
}

// formatLine returns a template of a line with an annotation of
// the worst alert. The line is omitted if the annotation is empty.
func formatLine(name, title string) string {
	return fmt.Sprintf("{{ with $w.Annotations.%s }}%s: {{ . }}\n{{ end }}", name, title)
}

// formatTitle returns the first line of chat messages and mails: page or ticket, and the summary.
func (t target) formatTitle() string { return "[" + t.formatKind() + ", {{ .Status }}] " + summary }

// formatIncidentTitle returns the title of an incident. Incidents that are not urgent begin with "Ticket:".
func (t target) formatIncidentTitle() string {
	const ticket = "Ticket: "
	switch t.severity {
	case severityTicket:
		return ticket + summary
	case severityByAlerts, severityByFleetAlerts:
		return t.chooseByPage("", ticket) + summary
	}
	return summary
}

// formatKind returns a template of the kind of notification: page, ticket or self-test.
func (t target) formatKind() string {
	switch t.severity {
	case severityPage:
		return series.Page
	case severityTicket:
		return series.Ticket
	case severityInfo:
		return SeveritySelfTest
	}
	return t.chooseByPage(series.Page, series.Ticket)
}

// chooseByPage returns a template that chooses a text by whether any alert
// of the group pages. It is for pages and tickets with the same receivers.
func (t target) chooseByPage(page, ticket string) string {
	pages := `eq .Labels.severity "page"`
	if t.severity == severityByFleetAlerts {
		pages = `and (` + pages + `) (ne .Labels.scope "operator")`
	}
	return `{{ $page := false }}{{ range or .Alerts.Firing .Alerts }}` +
		`{{ if ` + pages + ` }}{{ $page = true }}{{ end }}` +
		`{{ end }}{{ if $page }}` + page + `{{ else }}` + ticket + `{{ end }}`
}
