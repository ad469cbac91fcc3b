// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package pagerduty

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// Ledger is what a server took in until a moment. It holds no routing key: services have names.
type Ledger struct {
	// Incidents are in the order in which they were opened first.
	Incidents []Incident
	// Changes are in the order in which they came.
	Changes []Change
	// Anomalies are in the order in which they came.
	Anomalies []Anomaly
	// Repeated is how many accepted requests had exactly the bytes of an earlier one.
	Repeated int
	Attempts Attempts
}

// State is what a person sees of an incident.
type State string

// States of an incident.
const (
	Open         State = "open"
	Acknowledged State = "acknowledged"
	Resolved     State = "resolved"
)

// Incident is what happened under one dedup_key of one service. In PagerDuty each opening makes an incident of its own.
type Incident struct {
	Service  string
	DedupKey string
	State    State
	// Opened is how often a trigger came while it was not open. Each one notifies a person.
	Opened int
	// Updates is how many triggers came while it was open.
	Updates int
	// Acknowledged and Resolved are how often that came while it was open.
	Acknowledged, Resolved int
	// Repeated is how many events had exactly the bytes of an earlier one.
	Repeated int
	// Last is what the last trigger said. It must not be changed.
	Last     Alert
	Timeline []Entry
}

// Severities are those of the incident over time, without repetitions in a row.
func (i Incident) Severities() []string {
	var out []string
	for _, e := range i.Timeline {
		if e.Severity != "" {
			out = append(out, e.Severity)
		}
	}
	return slices.Compact(out)
}

// Kind is what an event did to an incident.
type Kind string

// Kinds of entries.
const (
	WasOpened       Kind = "opened"
	WasUpdated      Kind = "updated"
	WasAcknowledged Kind = "acknowledged"
	WasResolved     Kind = "resolved"
)

// Entry is one event in the life of an incident.
type Entry struct {
	At   time.Time
	Kind Kind
	// Severity and Summary are those of a trigger; empty for other actions.
	Severity, Summary string
	// Changed are the fields in which an update differs from the trigger before: severity, summary, details and so on.
	Changed []string
	// Repeated says that the event had exactly the bytes of an earlier one.
	Repeated bool
}

// Alert is what a trigger says.
type Alert struct {
	Client    string  `json:"client"`
	ClientURL string  `json:"client_url"`
	Links     []Link  `json:"links"`
	Images    []Image `json:"images"`
	Payload   Payload `json:"payload"`
}

// Payload describes the problem of an alert, or a change.
type Payload struct {
	Summary       string         `json:"summary"`
	Source        string         `json:"source"`
	Severity      string         `json:"severity"` // of alerts only, as are component, group and class
	Timestamp     string         `json:"timestamp"`
	Component     string         `json:"component"`
	Group         string         `json:"group"`
	Class         string         `json:"class"`
	CustomDetails map[string]any `json:"custom_details"`
}

// Link is a link of an event.
type Link struct {
	Href string `json:"href"`
	Text string `json:"text"`
}

// Image is an image of an alert.
type Image struct {
	Src  string `json:"src"`
	Href string `json:"href"`
	Alt  string `json:"alt"`
}

// Change is a change event.
type Change struct {
	At      time.Time
	Service string
	Payload Payload
	Links   []Link
	// Duplicate says that an earlier one of the service has the same summary, timestamp and details.
	Duplicate bool
}

// Anomaly is a request that nothing should have sent.
type Anomaly struct {
	At time.Time
	// Status is that of the answer. It is 202 for what PagerDuty accepts and drops: the acknowledgement or the end of
	// what is not open.
	Status int
	// Service is empty if the request's routing key is unknown.
	Service  string
	DedupKey string
	Reasons  []string
}

// alertRequest and changeRequest are valid events.
type alertRequest struct {
	Action   string `json:"event_action"`
	DedupKey string `json:"dedup_key"`
	Alert
}

type changeRequest struct {
	Payload Payload `json:"payload"`
	Links   []Link  `json:"links"`
}

// book is a ledger that is written. Its user holds the server's lock.
type book struct {
	Ledger
	index   map[[2]string]int // of Incidents, by service and dedup_key
	seen    map[[sha256.Size]byte]bool
	changes map[string]bool // by what makes a duplicate
}

func newBook() *book {
	return &book{index: map[[2]string]int{}, seen: map[[sha256.Size]byte]bool{}, changes: map[string]bool{}}
}

// snapshot returns a copy that does not change any more.
func (b *book) snapshot() Ledger {
	out := b.Ledger
	out.Incidents, out.Changes, out.Anomalies = slices.Clone(out.Incidents), slices.Clone(out.Changes),
		slices.Clone(out.Anomalies)
	for i := range out.Incidents {
		out.Incidents[i].Timeline = slices.Clone(out.Incidents[i].Timeline)
	}
	return out
}

// repeated reports whether the same bytes were there before.
func (b *book) repeated(body []byte) bool {
	sum := sha256.Sum256(body)
	before := b.seen[sum]
	b.seen[sum] = true
	if before {
		b.Repeated++
	}
	return before
}

// alert takes in a valid alert event that has a dedup_key.
func (b *book) alert(at time.Time, service string, body []byte, event alertRequest) {
	repeated := b.repeated(body)
	i, known := b.index[[2]string{service, event.DedupKey}]
	if event.Action != actionTrigger && (!known || b.Incidents[i].State == Resolved) {
		b.Anomalies = append(b.Anomalies, Anomaly{
			At: at, Status: 202, Service: service, DedupKey: event.DedupKey,
			Reasons: []string{event.Action + " of what is not open"},
		})
		return
	}
	if !known {
		i = len(b.Incidents)
		b.index[[2]string{service, event.DedupKey}] = i
		b.Incidents = append(b.Incidents, Incident{Service: service, DedupKey: event.DedupKey, State: Resolved})
	}
	entry := b.Incidents[i].apply(event)
	entry.At, entry.Repeated = at, repeated
	if repeated {
		b.Incidents[i].Repeated++
	}
	b.Incidents[i].Timeline = append(b.Incidents[i].Timeline, entry)
}

// apply changes an incident, which is resolved before it is opened first, and says how. Acknowledge and resolve are of
// an open one.
func (i *Incident) apply(event alertRequest) Entry {
	switch event.Action {
	case actionAcknowledge:
		i.State = Acknowledged
		i.Acknowledged++
		return Entry{Kind: WasAcknowledged}
	case actionResolve:
		i.State = Resolved
		i.Resolved++
		return Entry{Kind: WasResolved}
	}
	entry := Entry{Kind: WasUpdated, Severity: event.Payload.Severity, Summary: event.Payload.Summary}
	if i.State == Resolved {
		entry.Kind, i.State = WasOpened, Open
		i.Opened++
	} else {
		entry.Changed = changed(i.Last, event.Alert)
		i.Updates++
	}
	i.Last = event.Alert
	return entry
}

// changed names the fields in which two triggers differ, the most important first.
func changed(a, b Alert) []string {
	var out []string
	for _, f := range []struct {
		name string
		a, b any
	}{
		{"severity", a.Payload.Severity, b.Payload.Severity},
		{"summary", a.Payload.Summary, b.Payload.Summary},
		{"details", a.Payload.CustomDetails, b.Payload.CustomDetails},
		{"source", a.Payload.Source, b.Payload.Source},
		{"component", a.Payload.Component, b.Payload.Component},
		{"group", a.Payload.Group, b.Payload.Group},
		{"class", a.Payload.Class, b.Payload.Class},
		{"timestamp", a.Payload.Timestamp, b.Payload.Timestamp},
		{"links", a.Links, b.Links},
		{"images", a.Images, b.Images},
		{"client", [2]string{a.Client, a.ClientURL}, [2]string{b.Client, b.ClientURL}},
	} {
		if !reflect.DeepEqual(f.a, f.b) {
			out = append(out, f.name)
		}
	}
	return out
}

// change takes in a valid change event.
func (b *book) change(at time.Time, service string, body []byte, event changeRequest) error {
	b.repeated(body)
	identity, err := json.Marshal([]any{service, event.Payload.Summary, event.Payload.Timestamp,
		event.Payload.CustomDetails})
	if err != nil {
		return fmt.Errorf("encode change event: %w", err)
	}
	b.Changes = append(b.Changes, Change{
		At: at, Service: service, Payload: event.Payload, Links: event.Links, Duplicate: b.changes[string(identity)],
	})
	b.changes[string(identity)] = true
	return nil
}

// Incident returns the incident of a service and dedup_key.
func (l Ledger) Incident(service, dedupKey string) (Incident, bool) {
	for _, i := range l.Incidents {
		if i.Service == service && i.DedupKey == dedupKey {
			return i, true
		}
	}
	return Incident{}, false
}

// Pages is how often a person was notified.
func (l Ledger) Pages() int {
	n := 0
	for _, i := range l.Incidents {
		n += i.Opened
	}
	return n
}

// Duplicates are the change events that came before.
func (l Ledger) Duplicates() []Change {
	var out []Change
	for _, c := range l.Changes {
		if c.Duplicate {
			out = append(out, c)
		}
	}
	return out
}
