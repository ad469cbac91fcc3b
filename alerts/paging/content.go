// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import "fmt"

// What follows are templates of Alertmanager. A group has alerts of one failure, which
// differ in their SLI only, so that the first one stands for all.

// maxListed is how many alerts of a group an incident lists. PagerDuty takes at most
// 512 KB, and Alertmanager drops all details of an event that is larger.
const maxListed = 20

// of is a template of a field of the first alert: of one that fires, if one does.
func of(field string) string { return "{{ (index (or .Alerts.Firing .Alerts) 0)." + field + " }}" }

// annotation is a template of an annotation of the first alert.
func annotation(name string) string { return of("Annotations." + name) }

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
var summary = annotation("summary") + `{{ if gt (len .Alerts.Firing) 1 }} (and ` +
	`{{ len (slice .Alerts.Firing 1) }} more){{ end }}`

// firing lists the alerts that fire, within a with of them.
var firing = fmt.Sprintf(`{{ range $i, $alert := . }}{{ if lt $i %d }}{{ if $i }}`+"\n"+
	`{{ end }}{{ $alert.Annotations.summary }}{{ end }}{{ end }}`, maxListed)

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
		{"firing", "{{ with .Alerts.Firing }}" + firing + "{{ else }}none{{ end }}"},
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
		{"clusters", named("clusters", "(index (or .Alerts.Firing .Alerts) 0).Annotations.clusters")},
		{"team", named("team", "(index (or .Alerts.Firing .Alerts) 0).Labels.team")},
		{"restarts", named("restarts", "(index (or .Alerts.Firing .Alerts) 0).Annotations.restarts")},
		{"runbook", orNone("Annotations.runbook_url")},
		{"dashboard", orNone("Annotations.dashboard_url")},
	}
	for _, name := range []string{"description", "cluster_count", "operators", "rollout", "wave", "change",
		"look", "rollback", "burn", "window", "budget_left", "criticality", "custom_resources"} {
		out = append(out, detail{name, orNone("Annotations." + name)})
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
var text = "{{ with .Alerts.Firing }}" + `{{ range $i, $alert := . }}` + fmt.Sprintf("{{ if lt $i %d }}", maxListed) +
	"{{ $alert.Annotations.summary }}, since {{ $alert.StartsAt.UTC.Format \"2006-01-02 15:04:05 MST\" }}\n" +
	"{{ end }}{{ end }}" +
	"{{ with index . 0 }}" + line("clusters", "Clusters") + line("change", "Change") + line("look", "Look") +
	line("rollback", "Roll back") + line("runbook_url", "Runbook") + "{{ end }}{{ end }}"

// line is a line with an annotation, if the alert has that one.
func line(name, title string) string {
	return fmt.Sprintf("{{ with .Annotations.%s }}%s: {{ . }}\n{{ end }}", name, title)
}

// title is the first line of chats and mails.
const title = "[{{ .Status }}] "
