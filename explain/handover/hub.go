// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/explain"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/audit"
	"github.com/bellwether-dev/bellwether/rollouts/policy"
	"github.com/bellwether-dev/bellwether/rollouts/windows"
)

// Rollout is one that goes on, or that is the newest of its operator and failed.
type Rollout struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Operator  string `json:"operator"`
	Version   string `json:"version"`
	// State, Summary, Since, Next and Remedies are those of its explanation.
	State    explain.State   `json:"state"`
	Summary  string          `json:"summary"`
	Since    *time.Time      `json:"since,omitempty"`
	Next     []explain.Next  `json:"next,omitempty"`
	Remedies []remedy.Action `json:"remedies,omitempty"`
}

// Outcome is a rollout that started or ended in the shift.
type Outcome struct {
	Namespace string                `json:"namespace"`
	Name      string                `json:"name"`
	Operator  string                `json:"operator"`
	Version   string                `json:"version"`
	Phase     v1alpha1.RolloutPhase `json:"phase"`
	Summary   string                `json:"summary"`
	// Started and Ended are there if they are in the shift.
	Started *time.Time `json:"started,omitempty"`
	Ended   *time.Time `json:"ended,omitempty"`
}

// Hold keeps an operator from a version.
type Hold struct {
	Namespace string `json:"namespace"`
	Operator  string `json:"operator"`
	Version   string `json:"version"`
	// Held says what is held: the version, or its settings.
	Held string `json:"held"`
	// Changes are what had been changed, where settings are held.
	Changes []string   `json:"changes,omitempty"`
	Reason  string     `json:"reason"`
	Since   *time.Time `json:"since,omitempty"`
}

// Decision is what a person or the hub decided in the shift.
type Decision struct {
	At        time.Time `json:"at"`
	Namespace string    `json:"namespace"`
	Operator  string    `json:"operator"`
	By        string    `json:"by,omitempty"`
	Text      string    `json:"text"`
}

// Cluster is a fact about a cluster.
type Cluster struct {
	Cluster string     `json:"cluster"`
	Text    string     `json:"text"`
	Since   *time.Time `json:"since,omitempty"`
}

// Window is what keeps clusters closed to rollouts now.
type Window struct {
	Text string `json:"text"`
	// Until is when they are open again; nil where that is not known.
	Until *time.Time `json:"until,omitempty"`
	// Operators and Clusters count those for which it is so, and name the first ones.
	Operators     int      `json:"operators"`
	OperatorNames []string `json:"operatorNames"`
	Clusters      int      `json:"clusters"`
	ClusterNames  []string `json:"clusterNames"`
}

// timeOf is nil for a time that is not known.
func timeOf(t *metav1.Time) *time.Time {
	if t == nil || t.IsZero() {
		return nil
	}
	utc := t.UTC()
	return &utc
}

// reported is what a rollout reports of itself, without its clusters.
func (in Input) reported(r *v1alpha1.OperatorRollout) explain.Link {
	return explain.Rollout(explain.RolloutInput{Now: in.Now, Rollout: r, Program: in.Program}).Chain[0]
}

// explained is the explanation of a rollout: with its clusters, if these are known and
// the rollout still changes them.
func (in Input) explained(r *v1alpha1.OperatorRollout) Rollout {
	input := explain.RolloutInput{Now: in.Now, Rollout: r, Program: in.Program}
	if members, known := in.Members[r.UID]; known && in.Clusters.Unknown == "" && !r.Status.Phase.Ended() {
		input.Clusters, input.Installs = in.Clusters.Items, members
	}
	e := explain.Rollout(input)
	return Rollout{Namespace: r.Namespace, Name: r.Name, Operator: r.Spec.Operator.Name,
		Version: r.Spec.Release.VersionText(), State: e.State, Summary: e.Summary, Since: timeOf(e.Since), Next: e.Next,
		Remedies: e.Remedies}
}

// urgency orders states by how soon a person should look.
var urgency = []explain.State{explain.Failed, explain.Degraded, explain.Unknown, explain.Waiting, explain.Progressing,
	explain.Healthy}

// openRollouts are those that did not end, and the newest ones of operators that
// failed: no other one takes their place until a person acts.
func (in Input) openRollouts() List[Rollout] {
	newest := map[v1alpha1.OperatorReference]int64{}
	for i := range in.Rollouts.Items {
		r := &in.Rollouts.Items[i]
		newest[operatorOf(r)] = max(newest[operatorOf(r)], r.Spec.Revision)
	}
	var open []Rollout
	withoutClusters := 0
	for i := range in.Rollouts.Items {
		r := &in.Rollouts.Items[i]
		if r.Status.Phase.Ended() && (r.Spec.Revision < newest[operatorOf(r)] ||
			!slices.Contains([]explain.State{explain.Failed, explain.Degraded}, in.reported(r).State)) {
			continue
		}
		if _, known := in.Members[r.UID]; !known && !r.Status.Phase.Ended() {
			withoutClusters++
		}
		open = append(open, in.explained(r))
	}
	slices.SortFunc(open, func(a, b Rollout) int {
		return cmp.Or(cmp.Compare(slices.Index(urgency, a.State), slices.Index(urgency, b.State)),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	out := listOf(in.Most, in.Rollouts.Unknown, open)
	if n := countIf(open, func(r Rollout) bool {
		return r.State != explain.Progressing && r.State != explain.Healthy
	}); n > 0 {
		out.Detail = fmt.Sprintf("not progressing: %d", n)
	}
	switch {
	case in.Rollouts.Unknown != "" || len(open) == 0:
	case in.Clusters.Unknown != "":
		out.Notes = append(out.Notes, "The clusters of the rollouts are not known: "+in.Clusters.Unknown+".")
	case withoutClusters > 0:
		out.Notes = append(out.Notes, fmt.Sprintf("The clusters of %s could not be read.",
			phrase.Count(withoutClusters, "rollout")))
	}
	return out
}

func operatorOf(r *v1alpha1.OperatorRollout) v1alpha1.OperatorReference {
	return v1alpha1.OperatorReference{Namespace: r.Namespace, Name: r.Spec.Operator.Name}
}

// outcomes are the rollouts that started or ended in the shift, the last one first.
func (in Input) outcomes() List[Outcome] {
	var out []Outcome
	for i := range in.Rollouts.Items {
		r := &in.Rollouts.Items[i]
		o := Outcome{Namespace: r.Namespace, Name: r.Name, Operator: r.Spec.Operator.Name,
			Version: r.Spec.Release.VersionText(), Phase: cmp.Or(r.Status.Phase, v1alpha1.RolloutPending),
			Summary: in.reported(r).Text}
		// Of a rollout that succeeded in all respects the text has no message.
		if r.Status.Message != "" && in.reported(r).State == explain.Healthy {
			o.Summary += "; " + phrase.OneLine(r.Status.Message)
		}
		started := r.CreationTimestamp
		if r.Status.StartedAt != nil {
			started = *r.Status.StartedAt
		}
		if in.isInShift(started.Time) {
			o.Started = timeOf(&started)
		}
		if at := r.Status.EndedAt; at != nil && in.isInShift(at.Time) {
			o.Ended = timeOf(at)
		}
		if o.Started != nil || o.Ended != nil {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b Outcome) int {
		return cmp.Or(b.last().Compare(a.last()), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(b.Name, a.Name))
	})
	return listOf(in.Most, in.Rollouts.Unknown, out)
}

// last is when it started or ended, whichever was later.
func (o Outcome) last() time.Time {
	if o.Ended != nil {
		return *o.Ended
	}
	return *o.Started
}

func (in Input) holds() List[Hold] {
	var out []Hold
	for i := range in.Operators.Items {
		o := &in.Operators.Items[i]
		for _, h := range o.Spec.Holds {
			out = append(out, Hold{Namespace: o.Namespace, Operator: o.Name, Version: h.Version, Held: h.String(),
				Changes: h.Changes, Reason: phrase.OneLine(h.Reason), Since: timeOf(&h.Since)})
		}
	}
	slices.SortFunc(out, func(a, b Hold) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Operator, b.Operator),
			cmp.Compare(a.Version, b.Version), cmp.Compare(a.Held, b.Held))
	})
	return listOf(in.Most, in.Operators.Unknown, out)
}

// decisions are those of the shift, the last one first.
func (in Input) decisions() List[Decision] {
	var out []Decision
	var lost []string
	for i := range in.Operators.Items {
		o := &in.Operators.Items[i]
		if o.Status.Decisions == nil {
			continue
		}
		entries := o.Status.Decisions.Entries
		for _, d := range entries {
			if in.isInShift(d.At.Time) {
				out = append(out, Decision{At: d.At.UTC(), Namespace: o.Namespace, Operator: o.Name, By: d.By,
					Text: audit.Text(d)})
			}
		}
		if n := len(entries); o.Status.Decisions.Dropped > 0 && n > 0 && entries[n-1].At.After(in.From) {
			lost = append(lost, o.Namespace+"/"+o.Name)
		}
	}
	slices.SortStableFunc(out, func(a, b Decision) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Operator, b.Operator))
	})
	list := listOf(in.Most, in.Operators.Unknown, out)
	if len(lost) > 0 {
		list.Notes = append(list.Notes, fmt.Sprintf("Earlier decisions are not kept any more for %s.",
			phrase.First(lost, 5)))
	}
	return list
}

// vetoes are those in force, and freezes.
func (in Input) vetoes() List[Cluster] {
	var out []Cluster
	for i := range in.Clusters.Items {
		c := &in.Clusters.Items[i]
		for _, l := range explain.Refusals(c) {
			out = append(out, Cluster{Cluster: c.Name, Text: l.Text, Since: timeOf(l.Since)})
		}
	}
	return listOf(in.Most, in.Clusters.Unknown, newestFirst(out))
}

// offline are the clusters of which the hub does not know the present state.
func (in Input) offline() List[Cluster] {
	var out []Cluster
	for i := range in.Clusters.Items {
		c := &in.Clusters.Items[i]
		if !rollouts.ObserveCluster(c).Online {
			e := in.explainedCluster(c)
			out = append(out, Cluster{Cluster: c.Name, Text: e.Summary, Since: timeOf(e.Since)})
		}
	}
	list := listOf(in.Most, in.Clusters.Unknown, newestFirst(out))
	if len(out) > 0 {
		list.Detail = fmt.Sprintf("of %s", phrase.Count(len(in.Clusters.Items), "cluster"))
	}
	return list
}

// clustersBack are those that came online in the shift, and those whose veto ended.
func (in Input) clustersBack() List[Cluster] {
	var out []Cluster
	for i := range in.Clusters.Items {
		c := &in.Clusters.Items[i]
		seen := rollouts.ObserveCluster(c)
		if seen.Online && in.isInShift(seen.OnlineSince) {
			since := seen.OnlineSince.UTC()
			out = append(out, Cluster{Cluster: c.Name, Text: "cluster " + c.Name + " came online", Since: &since})
		}
		if at := c.Status.VetoEndedAt; at != nil && c.Status.Veto == nil && in.isInShift(at.Time) {
			out = append(out, Cluster{Cluster: c.Name, Text: "the veto on cluster " + c.Name + " ended",
				Since: timeOf(at)})
		}
	}
	return listOf(in.Most, in.Clusters.Unknown, newestFirst(out))
}

func (in Input) explainedCluster(c *v1alpha1.FleetCluster) explain.Explanation {
	return explain.Cluster(explain.ClusterInput{Now: in.Now, Cluster: c, Program: in.Program})
}

func newestFirst(list []Cluster) []Cluster {
	at := func(c Cluster) time.Time {
		if c.Since == nil {
			return time.Time{}
		}
		return *c.Since
	}
	slices.SortFunc(list, func(a, b Cluster) int {
		return cmp.Or(at(b).Compare(at(a)), cmp.Compare(a.Cluster, b.Cluster))
	})
	return list
}

// maxNames is how many operators and clusters of a window are named.
const maxNames = 5

// windows are the reasons for which clusters are closed to the operators that select
// them.
func (in Input) windows() List[Window] {
	set := windows.Read(in.Windows.Items, in.Now)
	found := map[string]*closed{}
	for i := range in.Operators.Items {
		in.addClosed(found, set, &in.Operators.Items[i])
	}
	var out []Window
	for text, c := range found {
		operators, clusters := sorted(c.operators), sorted(c.clusters)
		w := Window{Text: text, Operators: len(operators), Clusters: len(clusters),
			OperatorNames: operators[:min(len(operators), maxNames)],
			ClusterNames:  clusters[:min(len(clusters), maxNames)]}
		if !c.until.IsZero() {
			until := c.until.UTC()
			w.Until = &until
		}
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b Window) int {
		return cmp.Or(cmp.Compare(b.Clusters, a.Clusters), cmp.Compare(a.Text, b.Text))
	})
	return listOf(in.Most, cmp.Or(in.Windows.Unknown, in.Operators.Unknown, in.Clusters.Unknown, in.Policies.Unknown),
		out)
}

// closed collects the operators and clusters that the same windows close.
type closed struct {
	until               time.Time
	operators, clusters map[string]bool
}

func sorted(names map[string]bool) []string {
	out := make([]string, 0, len(names))
	for name := range names {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func (in Input) addClosed(found map[string]*closed, set *windows.Set, o *v1alpha1.ManagedOperator) {
	selector, err := metav1.LabelSelectorAsSelector(&o.Spec.ClusterSelector)
	if err != nil { // it selects no clusters until it is corrected
		return
	}
	policies := policy.Read(in.Policies.Items, policy.Operator{
		OperatorReference: v1alpha1.OperatorReference{Namespace: o.Namespace, Name: o.Name}, Labels: o.Labels})
	for i := range in.Clusters.Items {
		c := rollouts.ObserveCluster(&in.Clusters.Items[i])
		if !selector.Matches(labels.Set(c.Labels)) {
			continue
		}
		state := set.State(windows.Target{Namespace: o.Namespace, OperatorLabels: o.Labels, ClusterLabels: c.Labels,
			TimeZone: c.TimeZone, Required: policies.Windows(c.Labels)})
		if state.Open {
			continue
		}
		if found[state.Message] == nil {
			found[state.Message] = &closed{until: state.Until, operators: map[string]bool{},
				clusters: map[string]bool{}}
		}
		found[state.Message].operators[o.Namespace+"/"+o.Name] = true
		found[state.Message].clusters[c.Name] = true
	}
}
