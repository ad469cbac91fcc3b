// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"cmp"
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/alertmanager"
	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// OpenIncident is an incident with its firing alerts.
type OpenIncident struct {
	Incident
	// Since is when the first of the alerts began to fire.
	Since time.Time `json:"since"`
	// Silenced is the number of alerts that a silence matches, and Alerts the number of all alerts.
	Silenced int      `json:"silenced,omitempty"`
	Firing   []Firing `json:"-"`
	Alerts   int      `json:"alerts"`
	Summary  string   `json:"summary"`
	// Silences are the silences that suppress notifications of some of the alerts, from AddSilences.
	Silences []IncidentSilence `json:"silences,omitempty"`
	// silenceIDs are the identifiers of the silences that match some of the alerts.
	silenceIDs map[string]bool
}

// IncidentSilence is a silence that suppresses notifications of alerts of an incident. Its texts have one line.
type IncidentSilence struct {
	By      string    `json:"by"`
	Comment string    `json:"comment"`
	Ends    time.Time `json:"ends"`
}

// OpenIncidents groups the firing alerts of an Alertmanager with the router's configuration by incident. The
// newest incident is the first. A receiver without notifications and a heartbeat, which always fires, open none.
func (r *Router) OpenIncidents(alerts []alertmanager.Alert) []OpenIncident {
	byKey := map[string]*OpenIncident{}
	for _, alert := range alerts {
		for _, incident := range r.Incidents(alert.Labels) {
			if len(incident.Notifies) == 0 || alert.Labels[series.Severity] == series.Heartbeat {
				continue
			}
			id := incident.Receiver + incident.DedupKey
			if byKey[id] == nil {
				byKey[id] = &OpenIncident{Incident: incident, Since: alert.Since,
					Summary: alert.Annotations["summary"], silenceIDs: map[string]bool{}}
			}
			byKey[id].addAlert(alert)
		}
	}
	var out []OpenIncident
	for _, incident := range byKey {
		out = append(out, *incident)
	}
	slices.SortFunc(out, func(a, b OpenIncident) int {
		return cmp.Or(b.Since.Compare(a.Since), cmp.Compare(a.Receiver, b.Receiver),
			cmp.Compare(a.DedupKey, b.DedupKey))
	})
	return out
}

// addAlert adds a firing alert to the incident.
func (o *OpenIncident) addAlert(alert alertmanager.Alert) {
	o.Firing = append(o.Firing, Firing{Labels: alert.Labels, Annotations: alert.Annotations, Since: alert.Since})
	o.Alerts++
	if len(alert.SilencedBy) > 0 {
		o.Silenced++
	}
	for _, id := range alert.SilencedBy {
		o.silenceIDs[id] = true
	}
	if alert.Since.Before(o.Since) {
		o.Since = alert.Since
	}
}

// AddSilences sets Silences of each incident of OpenIncidents to those of the given silences that match its alerts.
func AddSilences(incidents []OpenIncident, silences []alertmanager.Silence) {
	for i := range incidents {
		incidents[i].Silences = nil
		for _, s := range silences {
			if incidents[i].silenceIDs[s.ID] {
				incidents[i].Silences = append(incidents[i].Silences, IncidentSilence{By: phrase.OneLine(s.By),
					Comment: phrase.OneLine(s.Comment), Ends: s.Ends.UTC()})
			}
		}
	}
}
