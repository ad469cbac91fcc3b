// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package silences

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/alertmanager"
	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Input is the observed state.
type Input struct {
	Now time.Time
	// Namespace is the hub's namespace. A silence with the scope Fleet must be in it.
	Namespace string
	// Max is how long a silence may last.
	Max      time.Duration
	Silences []v1alpha1.AlertSilence
	Clusters []v1alpha1.FleetCluster
	// Present are all silences in Alertmanager, and Alerts all its alerts that
	// are not resolved. Router is made from the configuration that it runs.
	Present []alertmanager.Silence
	Alerts  []alertmanager.Alert
	Router  *paging.Router
	// Policies are the policies in force. The hub resolves only incidents of their receivers.
	Policies []paging.Policy
	// Records are the records of the last Decision.
	Records []Record
}

// Record is an incident that was resolved because a silence hides it. Alertmanager treats its alerts as
// notified, and sends no notification about them until its repeat interval is over, even if they end and begin
// again in that time. So the hub opens the incident again if one of its alerts fires and is not silenced.
type Record struct {
	Receiver string `json:"receiver"`
	DedupKey string `json:"dedupKey"`
	// Labels are the labels that its alerts have in common.
	Labels map[string]string `json:"labels"`
	// Silence is the AlertSilence, as namespace/name.
	Silence string `json:"silence"`
	// Resolved is when the incident was first resolved. A notification that was in transit at
	// that time may have opened it again, so it is resolved a second time later (Confirmed).
	Resolved  time.Time `json:"resolved"`
	Confirmed bool      `json:"confirmed,omitempty"`
	// Until is when Alertmanager notifies again without the hub.
	Until time.Time `json:"until"`
	// Reopened is when the incident was opened again.
	Reopened *time.Time `json:"reopened,omitempty"`
}

// Key identifies the incident.
func (r Record) Key() string { return r.Receiver + "\n" + r.DedupKey }

const (
	// confirmAfter is how long a notification may be in transit.
	confirmAfter = 20 * time.Second
	// settleAfter is how long after an incident was opened again its alerts must fire before the record
	// is removed; Alertmanager then resolves the incident. forgottenAfter is how long the incident may
	// have no alerts: Alertmanager loses alerts when it restarts, until Prometheus sends them again.
	settleAfter    = 20 * time.Second
	forgottenAfter = 10 * time.Minute
)

// Start is a silence that must be created in Alertmanager.
type Start struct {
	Object  types.NamespacedName
	Silence alertmanager.Silence
	// Resolve are incidents that must be resolved before the silence is created.
	Resolve []Record
}

// Resolve is an incident that must be resolved. Its record is the state after that.
type Resolve struct {
	Record
	// Forget means that the record must then be removed.
	Forget bool
}

// Reopen is an incident that must be opened again.
type Reopen struct {
	Record
	// Alerts are the alerts that fire and are not silenced.
	Alerts []paging.Firing
}

// Decision contains the actions, in this order.
type Decision struct {
	// Records already includes the records of Start. It must be written before any other action.
	Records []Record
	// Resolve are incidents that are silenced but may be open.
	Resolve []Resolve
	Start   []Start
	// End are IDs of silences in Alertmanager.
	End    []string
	Reopen []Reopen
}

// Next returns the actions. There are none if Alertmanager already has the wanted silences.
func Next(in Input) Decision {
	p := planner{Input: in, groups: listGroups(in), own: map[string]alertmanager.Silence{}}
	var out Decision
	p.plan(&out)
	for i := range out.Start {
		p.planResolves(&out.Start[i])
	}
	p.planRecords(&out)
	return out
}

// planner computes which alerts are silenced after the decision is carried out.
type planner struct {
	Input
	groups map[string]*group
	// starting are silences that begin now. ending are the IDs of
	// silences that end. own are the hub's silences that stay, by ID.
	starting []alertmanager.Silence
	ending   map[string]bool
	own      map[string]alertmanager.Silence
}

// group is an incident with its firing alerts.
type group struct {
	paging.Incident
	alerts []alertmanager.Alert
}

// listGroups returns the PagerDuty incidents of Alertmanager's alerts, by key. It omits incidents
// of receivers that the policies in force do not have, because the hub cannot resolve these incidents.
func listGroups(in Input) map[string]*group {
	out := map[string]*group{}
	for _, a := range in.Alerts {
		for _, incident := range in.Router.Incidents(a.Labels) {
			if len(paging.ListPagerDutyUses(in.Policies, incident.Receiver)) == 0 {
				continue
			}
			key := incident.Receiver + "\n" + incident.DedupKey
			if out[key] == nil {
				out[key] = &group{Incident: incident}
			}
			out[key].alerts = append(out[key].alerts, a)
		}
	}
	return out
}

// plan compares the silences in Alertmanager with the wanted silences. It sets the silences
// to create and to end in the decision, and the silences that start, end and stay in the planner.
func (p *planner) plan(out *Decision) {
	present := map[types.NamespacedName][]alertmanager.Silence{}
	for _, s := range p.Present {
		if key, isOwn := FindObject(s); isOwn && s.Ends.After(p.Now) {
			present[key] = append(present[key], s)
		}
	}
	p.ending = map[string]bool{}
	for i := range p.Silences {
		s := &p.Silences[i]
		key := types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
		if !isWanted(p.Input, s) {
			continue
		}
		want := toAlertmanagerSilence(p.Input, s)
		if kept := p.keepMatching(present[key], want); kept {
			delete(present, key)
			continue
		}
		p.starting = append(p.starting, want)
		out.Start = append(out.Start, Start{Object: key, Silence: want})
	}
	for _, remaining := range present { // the silences were replaced, or are not wanted
		for _, s := range remaining {
			p.ending[s.ID] = true
		}
	}
	out.End = slices.Sorted(maps.Keys(p.ending))
}

// keepMatching keeps one silence that equals the wanted silence, and
// ends its duplicates. It reports whether there is such a silence.
func (p *planner) keepMatching(present []alertmanager.Silence, want alertmanager.Silence) bool {
	i := slices.IndexFunc(present, func(s alertmanager.Silence) bool { return isSame(s, want) })
	for j, s := range present {
		switch {
		case j == i:
			p.own[s.ID] = s
		case i >= 0:
			p.ending[s.ID] = true
		}
	}
	return i >= 0
}

// isWanted reports whether an AlertSilence must be in force now.
func isWanted(in Input, s *v1alpha1.AlertSilence) bool {
	return s.DeletionTimestamp == nil && !readStart(s).After(in.Now) && s.Spec.End.After(in.Now) &&
		checkSilence(in, s) == Problem{}
}

// isHidden reports whether an alert is silenced after the decision
// is carried out, and isHiddenNow whether it is silenced now.
func (p *planner) isHidden(a alertmanager.Alert) bool {
	return slices.ContainsFunc(a.SilencedBy, func(id string) bool { return !p.ending[id] }) ||
		slices.ContainsFunc(p.starting, func(s alertmanager.Silence) bool { return canHide(s, a.Labels) })
}

func isHiddenNow(a alertmanager.Alert) bool { return len(a.SilencedBy) > 0 }

// newVisibleFilter returns a function that reports whether an
// alert is not silenced after the decision is carried out.
func newVisibleFilter(p *planner) func(alertmanager.Alert) bool {
	return func(a alertmanager.Alert) bool { return !p.isHidden(a) }
}

// planResolves adds the incidents that are open and that a silence would hide completely.
// An incident with an alert that is not silenced after the decision stays open.
func (p *planner) planResolves(s *Start) {
	for _, g := range p.groups {
		hidesVisible := slices.ContainsFunc(g.alerts, func(a alertmanager.Alert) bool {
			return !isHiddenNow(a) && canHide(s.Silence, a.Labels)
		})
		if hidesVisible && !slices.ContainsFunc(g.alerts, newVisibleFilter(p)) {
			s.Resolve = append(s.Resolve, p.newRecord(g, s.Object.String()))
		}
	}
	sortRecords(s.Resolve)
}

// newRecord returns the record of an incident that is resolved now.
func (p *planner) newRecord(g *group, silence string) Record {
	return Record{Receiver: g.Receiver, DedupKey: g.DedupKey, Labels: g.Labels, Silence: silence,
		Resolved: p.Now.UTC(), Until: p.Now.Add(g.Repeat).UTC()}
}

func sortRecords(records []Record) {
	slices.SortFunc(records, func(a, b Record) int { return cmp.Compare(a.Key(), b.Key()) })
}

// planRecords decides the next action for incidents that were
// resolved, and for incidents that should have been resolved.
func (p *planner) planRecords(out *Decision) {
	kept := map[string]Record{}
	for _, r := range p.Records {
		if r, keep := p.followRecord(r, out); keep {
			kept[r.Key()] = r
		}
	}
	for _, g := range p.groups {
		if silence, missed := p.findMissed(g); missed {
			r := p.newRecord(g, silence)
			if _, known := kept[r.Key()]; !known {
				kept[r.Key()] = r
				out.Resolve = append(out.Resolve, Resolve{Record: r})
			}
		}
	}
	for _, s := range out.Start {
		for _, r := range s.Resolve {
			kept[r.Key()] = r
		}
	}
	out.Records = slices.Collect(maps.Values(kept))
	sortRecords(out.Records)
	slices.SortFunc(out.Resolve, func(a, b Resolve) int { return cmp.Compare(a.Key(), b.Key()) })
	slices.SortFunc(out.Reopen, func(a, b Reopen) int { return cmp.Compare(a.Key(), b.Key()) })
}

// followRecord decides the next action for one incident that was resolved. It
// returns the new record, and whether the record is kept.
//
//	alerts              not opened again                    opened again
//	not silenced        open it                             remove it: Alertmanager resolves it
//	all silenced        resolve it once more, keep it       keep it: a silence starts
//	none                keep it while Alertmanager would    resolve it, remove it
//	                    not notify of new alerts
func (p *planner) followRecord(r Record, out *Decision) (Record, bool) {
	g, firing := p.groups[r.Key()]
	var visible []paging.Firing
	if firing {
		for _, a := range g.alerts {
			if !p.isHidden(a) {
				visible = append(visible, paging.Firing{Labels: a.Labels, Annotations: a.Annotations, Since: a.Since})
			}
		}
	}
	switch {
	case r.Reopened != nil && len(visible) > 0:
		return r, p.Now.Sub(*r.Reopened) < settleAfter
	case r.Reopened != nil && !firing && p.Now.Sub(*r.Reopened) >= forgottenAfter: // it has really ended
		out.Resolve = append(out.Resolve, Resolve{Record: r, Forget: true})
		return r, true
	case r.Reopened != nil:
		return r, true
	case len(visible) > 0:
		out.Reopen = append(out.Reopen, Reopen{Record: r, Alerts: visible})
		return r, true
	case !r.Confirmed && p.Now.Sub(r.Resolved) >= confirmAfter:
		confirmed := r
		confirmed.Confirmed = true
		out.Resolve = append(out.Resolve, Resolve{Record: confirmed})
	}
	return r, firing || p.Now.Before(r.Until)
}

// findMissed returns the silence of the hub that hides an incident which began before the silence.
// Alertmanager did not report such an incident when the silence began, as after a restart. It returns
// false for an incident with an alert that is not silenced: such an incident must stay open.
func (p *planner) findMissed(g *group) (silence string, missed bool) {
	for _, a := range g.alerts {
		if len(a.SilencedBy) == 0 {
			return "", false
		}
		for _, id := range a.SilencedBy {
			s, isOwn := p.own[id]
			if isOwn && a.Since.Before(s.Starts) {
				key, _ := FindObject(s)
				silence = key.String()
			}
		}
	}
	return silence, silence != ""
}
