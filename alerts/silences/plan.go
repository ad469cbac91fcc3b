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

// Input is what was observed.
type Input struct {
	Now time.Time
	// Namespace of the hub: a silence with the scope Fleet has to be there.
	Namespace string
	// Max is how long a silence may last.
	Max      time.Duration
	Silences []v1alpha1.AlertSilence
	Clusters []v1alpha1.FleetCluster
	// Present are all silences that Alertmanager has, and Alerts all that it has and that
	// are not resolved. Router is made of the configuration that it runs.
	Present []alertmanager.Silence
	Alerts  []alertmanager.Alert
	Router  *paging.Router
	// Policies are those in force. Incidents of other receivers than theirs are not resolved.
	Policies []paging.Policy
	// Records are those of the last Decision.
	Records []Record
}

// Record is an incident that was resolved because a silence hides it. Alertmanager takes
// its alerts for notified of, and says nothing of them until its repeat interval is over,
// also if they end in the meantime and begin again. So the incident is opened again by the
// hub if an alert of it fires and is not silenced.
type Record struct {
	Receiver string `json:"receiver"`
	DedupKey string `json:"dedupKey"`
	// Labels are those that its alerts have in common.
	Labels map[string]string `json:"labels"`
	// Silence is the AlertSilence, as namespace/name.
	Silence string `json:"silence"`
	// Resolved is when it was resolved first. A notification that was on its way then may
	// have opened it again, so it is resolved once more later (Confirmed).
	Resolved  time.Time `json:"resolved"`
	Confirmed bool      `json:"confirmed,omitempty"`
	// Until is when Alertmanager notifies by itself again.
	Until time.Time `json:"until"`
	// Reopened is when it was opened again.
	Reopened *time.Time `json:"reopened,omitempty"`
}

// Key identifies the incident.
func (r Record) Key() string { return r.Receiver + "\n" + r.DedupKey }

const (
	// confirmAfter is how long a notification may be on its way.
	confirmAfter = 20 * time.Second
	// settleAfter is how long after an incident was opened again its alerts have to fire
	// for Alertmanager to resolve it, and forgottenAfter how long it may have none:
	// Alertmanager forgets alerts when it restarts, until Prometheus sends them again.
	settleAfter    = 20 * time.Second
	forgottenAfter = 10 * time.Minute
)

// Start is a silence that is to be made in Alertmanager.
type Start struct {
	Object  types.NamespacedName
	Silence alertmanager.Silence
	// Resolve are incidents that have to be resolved before.
	Resolve []Record
}

// Resolve is an incident that is to be resolved. The record is as it has to be once that
// is done.
type Resolve struct {
	Record
	// Forget says that there has to be no record then.
	Forget bool
}

// Reopen is an incident that is to be opened again.
type Reopen struct {
	Record
	// Alerts are those that fire and are not silenced.
	Alerts []paging.Firing
}

// Decision is what to do, in this order.
type Decision struct {
	// Records has those of Start already. It is written before anything is done.
	Records []Record
	// Resolve are incidents that are silenced, and may be open nevertheless.
	Resolve []Resolve
	Start   []Start
	// End are IDs of silences in Alertmanager.
	End    []string
	Reopen []Reopen
}

// Next decides. It does nothing where Alertmanager has what is wanted.
func Next(in Input) Decision {
	p := planner{Input: in, groups: groupsOf(in), ours: map[string]alertmanager.Silence{}}
	var out Decision
	p.plan(&out)
	for i := range out.Start {
		p.resolveBefore(&out.Start[i])
	}
	p.records(&out)
	return out
}

// planner knows which alerts are silenced once the decision is carried out.
type planner struct {
	Input
	groups map[string]*group
	// starting are silences that begin now, ending the IDs of those that end, and ours
	// those of the hub that stay, by ID.
	starting []alertmanager.Silence
	ending   map[string]bool
	ours     map[string]alertmanager.Silence
}

// group is an incident with its alerts, all of which fire.
type group struct {
	paging.Incident
	alerts []alertmanager.Alert
}

// groupsOf are the incidents of PagerDuty that Alertmanager has alerts of.
func groupsOf(in Input) map[string]*group {
	out := map[string]*group{}
	for _, a := range in.Alerts {
		for _, incident := range in.Router.Incidents(a.Labels) {
			if len(paging.PagerDuty(in.Policies, incident.Receiver)) == 0 {
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

// plan compares what Alertmanager has with what it has to have.
func (p *planner) plan(out *Decision) {
	present := map[types.NamespacedName][]alertmanager.Silence{}
	for _, s := range p.Present {
		if key, ours := ObjectOf(s); ours && s.Ends.After(p.Now) {
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
		want := wanted(p.Input, s)
		if kept := p.keep(present[key], want); kept {
			delete(present, key)
			continue
		}
		p.starting = append(p.starting, want)
		out.Start = append(out.Start, Start{Object: key, Silence: want})
	}
	for _, rest := range present { // replaced, or not wanted any more
		for _, s := range rest {
			p.ending[s.ID] = true
		}
	}
	out.End = slices.Sorted(maps.Keys(p.ending))
}

// keep keeps one silence of an AlertSilence that is as wanted, and ends the others.
func (p *planner) keep(present []alertmanager.Silence, want alertmanager.Silence) bool {
	i := slices.IndexFunc(present, func(s alertmanager.Silence) bool { return isSame(s, want) })
	for j, s := range present {
		switch {
		case j == i:
			p.ours[s.ID] = s
		case i >= 0:
			p.ending[s.ID] = true
		}
	}
	return i >= 0
}

// isWanted tells whether an AlertSilence is to be in force now.
func isWanted(in Input, s *v1alpha1.AlertSilence) bool {
	return s.DeletionTimestamp == nil && !start(s).After(in.Now) && s.Spec.End.After(in.Now) &&
		check(in, s) == Problem{}
}

// isHidden tells whether an alert is silenced once the decision is carried out, and
// wasHidden whether it is now.
func (p *planner) isHidden(a alertmanager.Alert) bool {
	return slices.ContainsFunc(a.SilencedBy, func(id string) bool { return !p.ending[id] }) ||
		slices.ContainsFunc(p.starting, func(s alertmanager.Silence) bool { return hides(s, a.Labels) })
}

func wasHidden(a alertmanager.Alert) bool { return len(a.SilencedBy) > 0 }

func isVisible(p *planner) func(alertmanager.Alert) bool {
	return func(a alertmanager.Alert) bool { return !p.isHidden(a) }
}

// resolveBefore finds the incidents that a silence would hide. An incident of which an
// alert is not silenced stays open.
func (p *planner) resolveBefore(s *Start) {
	for _, g := range p.groups {
		concerned := slices.ContainsFunc(g.alerts, func(a alertmanager.Alert) bool {
			return !wasHidden(a) && hides(s.Silence, a.Labels)
		})
		if concerned && !slices.ContainsFunc(g.alerts, isVisible(p)) {
			s.Resolve = append(s.Resolve, p.record(g, s.Object.String()))
		}
	}
	sortRecords(s.Resolve)
}

func (p *planner) record(g *group, silence string) Record {
	return Record{Receiver: g.Receiver, DedupKey: g.DedupKey, Labels: g.Labels, Silence: silence,
		Resolved: p.Now.UTC(), Until: p.Now.Add(g.Repeat).UTC()}
}

func sortRecords(records []Record) {
	slices.SortFunc(records, func(a, b Record) int { return cmp.Compare(a.Key(), b.Key()) })
}

// records decides what becomes of incidents that were resolved, and of those that should
// have been.
func (p *planner) records(out *Decision) {
	kept := map[string]Record{}
	for _, r := range p.Records {
		if r, keep := p.follow(r, out); keep {
			kept[r.Key()] = r
		}
	}
	for _, g := range p.groups {
		if silence, missed := p.wasMissed(g); missed {
			r := p.record(g, silence)
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

// follow decides what becomes of one incident that was resolved.
//
//	alerts              not opened again                    opened again
//	not silenced        open it                             Alertmanager resolves it: forget it
//	all silenced        resolve it once more, keep it       keep it: a silence starts
//	none                keep it while Alertmanager would    resolve it, forget it
//	                    say nothing of new ones
func (p *planner) follow(r Record, out *Decision) (Record, bool) {
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
	case r.Reopened != nil && !firing && p.Now.Sub(*r.Reopened) >= forgottenAfter:
		out.Resolve = append(out.Resolve, Resolve{Record: r, Forget: true})
		return r, true
	case r.Reopened != nil:
		return r, true
	case len(visible) > 0:
		out.Reopen = append(out.Reopen, Reopen{Record: r, Alerts: visible})
		return r, true
	case !r.Confirmed && p.Now.Sub(r.Resolved) >= confirmAfter:
		done := r
		done.Confirmed = true
		out.Resolve = append(out.Resolve, Resolve{Record: done})
	}
	return r, firing || p.Now.Before(r.Until)
}

// wasMissed tells whether silences of the hub hide an incident that began before them:
// Alertmanager did not say so when they began, as after a restart.
func (p *planner) wasMissed(g *group) (silence string, missed bool) {
	for _, a := range g.alerts {
		if len(a.SilencedBy) == 0 {
			return "", false
		}
		for _, id := range a.SilencedBy {
			s, ours := p.ours[id]
			if ours && a.Since.Before(s.Starts) {
				key, _ := ObjectOf(s)
				silence = key.String()
			}
		}
	}
	return silence, silence != ""
}
