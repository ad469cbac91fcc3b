// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"fmt"
	"net/url"
	"time"

	"github.com/prometheus/alertmanager/alert"
	"github.com/prometheus/alertmanager/notify/pagerduty"
	"github.com/prometheus/alertmanager/template"
	"github.com/prometheus/common/model"
)

// Event is what PagerDuty is sent of an incident. It has no routing key.
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

// Preview is what Alertmanager would send to PagerDuty of these alerts, which are of
// one group: one event for each receiver with PagerDuty. The texts are made by
// Alertmanager's own templates. A group without such a receiver has none.
func (r *Router) Preview(alerts []Firing) ([]Event, error) {
	if len(alerts) == 0 {
		return nil, nil
	}
	templates, err := template.FromGlobs(nil)
	if err != nil {
		return nil, fmt.Errorf("load templates of Alertmanager: %w", err)
	}
	templates.ExternalURL = &url.URL{} // no text of ours has it
	var out []Event
	for _, in := range r.Incidents(alerts[0].Labels) {
		data := templates.Data(in.Receiver, labelSet(in.Labels), nil, "", toAlertmanager(alerts)...)
		for _, c := range r.receivers[in.Receiver].PagerdutyConfigs {
			e, err := render(templates, data, c)
			if err != nil {
				return nil, fmt.Errorf("receiver %s: %w", in.Receiver, err)
			}
			e.Incident = in
			out = append(out, e)
		}
	}
	return out, nil
}

func labelSet(from map[string]string) model.LabelSet {
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
			&alert.Alert{Alert: model.Alert{Labels: labelSet(a.Labels), Annotations: labelSet(a.Annotations),
				StartsAt: a.Since}},
		)
	}
	return out
}

// render makes the texts of an event as Alertmanager's notifier does, which cuts the
// summary at 1,024 characters.
func render(templates *template.Template, data *template.Data, c *pagerduty.PagerdutyConfig) (Event, error) {
	var failed error
	text := func(of string) string {
		out, err := templates.ExecuteTextString(of, data)
		if err != nil && failed == nil {
			failed = fmt.Errorf("template %q: %w", of, err)
		}
		return out
	}
	e := Event{Summary: text(c.Description), Severity: text(c.Severity), Source: text(c.Source), Class: text(c.Class),
		Component: text(c.Component), Group: text(c.Group), Details: map[string]string{}, Links: map[string]string{}}
	for name, of := range c.Details {
		if of, ok := of.(string); ok {
			if value := text(of); value != "" {
				e.Details[name] = value
			}
		}
	}
	for _, l := range c.Links {
		if href := text(l.Href); href != "" {
			e.Links[text(l.Text)] = href
		}
	}
	return e, failed
}
