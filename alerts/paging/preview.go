// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/prometheus/alertmanager/alert"
	"github.com/prometheus/alertmanager/notify/pagerduty"
	"github.com/prometheus/alertmanager/template"
	"github.com/prometheus/common/model"
)

// Event is the content that PagerDuty receives about an incident. It has no routing key.
type Event struct {
	Incident
	Summary   string            `json:"summary"`
	Severity  string            `json:"severity"`
	Source    string            `json:"source"`
	Class     string            `json:"class,omitempty"`
	Component string            `json:"component,omitempty"`
	Group     string            `json:"group,omitempty"`
	Details   map[string]string `json:"details,omitempty"`
	Links     map[string]string `json:"links,omitempty"`
}

// Firing is an alert that fires.
type Firing struct {
	Labels, Annotations map[string]string
	Since               time.Time
}

// Preview returns the events that Alertmanager would send to PagerDuty about alerts of one group: one event for each
// PagerDuty receiver. Alertmanager's own templates make the texts. There are no events if there is no such receiver.
func (r *Router) Preview(alerts []Firing) ([]Event, error) {
	if len(alerts) == 0 {
		return nil, nil
	}
	templates, err := template.FromGlobs(nil)
	if err != nil {
		return nil, fmt.Errorf("load templates of Alertmanager: %w", err)
	}
	templates.ExternalURL = &url.URL{} // no text of Bellwether uses it
	var out []Event
	for _, in := range r.Incidents(alerts[0].Labels) {
		data := templates.Data(in.Receiver, toLabelSet(in.Labels), nil, "", toAlertmanager(alerts)...)
		for _, c := range r.receivers[in.Receiver].PagerdutyConfigs {
			e, err := renderEvent(templates, data, c)
			if err != nil {
				return nil, fmt.Errorf("receiver %s: %w", in.Receiver, err)
			}
			e.Incident = in
			out = append(out, e)
		}
	}
	return out, nil
}

// IncidentPreview is an incident that alerts would open, with the events that PagerDuty would receive.
type IncidentPreview struct {
	Incident
	Events []Event `json:"events,omitempty"`
}

// PreviewIncidents returns the incidents that alerts of one group would open: one for each receiver.
func (r *Router) PreviewIncidents(alerts []Firing) ([]IncidentPreview, error) {
	events, err := r.Preview(alerts)
	if err != nil || len(alerts) == 0 {
		return nil, err
	}
	var out []IncidentPreview
	for _, opened := range r.Incidents(alerts[0].Labels) {
		incident := IncidentPreview{Incident: opened}
		for _, e := range events {
			if e.Receiver == opened.Receiver {
				incident.Events = append(incident.Events, e)
			}
		}
		out = append(out, incident)
	}
	return out, nil
}

// SelectNotifying returns the incidents that notify a user, or all incidents if none does. With prometheus-operator an
// alert passes the routes of each policy, and the receiver of a policy that is not about the alert notifies no user.
func SelectNotifying(incidents []IncidentPreview) []IncidentPreview {
	isSilent := func(incident IncidentPreview) bool { return len(incident.Notifies) == 0 }
	notifying := slices.DeleteFunc(slices.Clone(incidents), isSilent)
	if len(notifying) == 0 {
		return incidents
	}
	return notifying
}

func toLabelSet(from map[string]string) model.LabelSet {
	out := model.LabelSet{}
	for name, value := range from {
		out[model.LabelName(name)] = model.LabelValue(value)
	}
	return out
}

func toAlertmanager(alerts []Firing) []*alert.Alert {
	var out []*alert.Alert
	for _, a := range alerts {
		out = append(
			out,
			&alert.Alert{Alert: model.Alert{Labels: toLabelSet(a.Labels), Annotations: toLabelSet(a.Annotations),
				StartsAt: a.Since}},
		)
	}
	return out
}

// renderEvent renders the texts of an event as Alertmanager's notifier
// does, except that the notifier cuts the summary at 1,024 characters.
func renderEvent(templates *template.Template, data *template.Data, c *pagerduty.PagerdutyConfig) (Event, error) {
	var failed error
	renderText := func(source string) string {
		out, err := templates.ExecuteTextString(source, data)
		if err != nil && failed == nil {
			failed = fmt.Errorf("template %q: %w", source, err)
		}
		return out
	}
	e := Event{Summary: renderText(c.Description), Severity: renderText(c.Severity), Source: renderText(c.Source),
		Class:     renderText(c.Class),
		Component: renderText(c.Component), Group: renderText(c.Group),
		Details: map[string]string{}, Links: map[string]string{}}
	for name, value := range c.Details {
		if source, ok := value.(string); ok {
			if text := renderText(source); text != "" {
				e.Details[name] = text
			}
		}
	}
	for _, l := range c.Links {
		if href := renderText(l.Href); href != "" {
			e.Links[renderText(l.Text)] = href
		}
	}
	return e, failed
}
