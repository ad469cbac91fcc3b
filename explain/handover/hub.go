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
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
	"github.com/bellwether-dev/bellwether/rollouts/policy"
)

// Rollout is a rollout that has not ended, or that is the newest rollout of its operator and failed.
type Rollout struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Operator  string `json:"operator"`
	Version   string `json:"version"`
	// State, Summary, Since, Next and Remedies are from the explanation of the rollout.
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
	// Started and Ended are set if the times are in the shift.
	Started *time.Time `json:"started,omitempty"`
	Ended   *time.Time `json:"ended,omitempty"`
}

// Hold is a hold of an operator's version or settings.
type Hold struct {
	Namespace string `json:"namespace"`
	Operator  string `json:"operator"`
	Version   string `json:"version"`
	// Held says what is held: the version, or its settings.
	Held string `json:"held"`
	// Changes are the changed settings, if settings are held.
	Changes []string   `json:"changes,omitempty"`
	Reason  string     `json:"reason"`
	Since   *time.Time `json:"since,omitempty"`
}

// Decision is a decision of a person or the hub in the shift.
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

// Window is a reason why clusters are closed to rollouts now.
type Window struct {
	Text string `json:"text"`
	// Until is when the clusters are open again; nil if that is not known.
	Until *time.Time `json:"until,omitempty"`
	// Operators and Clusters are the numbers of affected operators and clusters. The names are the first of them.
	Operators     int      `json:"operators"`
	OperatorNames []string `json:"operatorNames"`
	Clusters      int      `json:"clusters"`
	ClusterNames  []string `json:"clusterNames"`
}

// toTime returns the time in UTC. It returns nil if the time is not known.
func toTime(t *metav1.Time) *time.Time {
	if t == nil || t.IsZero() {
		return nil
	}
	utc := t.UTC()
	return &utc
}

// readRolloutLink returns the first link of a rollout's explanation, without its clusters.
func (in Input) readRolloutLink(r *v1alpha1.OperatorRollout) explain.Link {
	return explain.Rollout(explain.RolloutInput{Now: in.Now, Rollout: r, Program: in.Program}).Chain[0]
}

// explainRollout returns the explanation of a rollout. It includes the rollout's clusters if they are known and the
// rollout has not ended.
func (in Input) explainRollout(r *v1alpha1.OperatorRollout) Rollout {
	input := explain.RolloutInput{Now: in.Now, Rollout: r, Program: in.Program}
	if members, known := in.Members[r.UID]; known && in.Clusters.Unknown == "" && !r.Status.Phase.Ended() {
		input.Clusters, input.Installs = in.Clusters.Items, members
	}
	e := explain.Rollout(input)
	return Rollout{Namespace: r.Namespace, Name: r.Name, Operator: r.Spec.Operator.Name,
		Version: r.Spec.Release.VersionText(), State: e.State, Summary: e.Summary, Since: toTime(e.Since), Next: e.Next,
		Remedies: e.Remedies}
}

// urgency orders states by how soon a person should look at them.
var urgency = []explain.State{explain.Failed, explain.Degraded, explain.Unknown, explain.Waiting, explain.Progressing,
	explain.Healthy}

// listOpenRollouts returns the rollouts that have not ended, and the newest rollouts of operators if they failed: no
// other rollout replaces these until a person acts.
func (in Input) listOpenRollouts() List[Rollout] {
	newest := map[v1alpha1.OperatorReference]int64{}
	for i := range in.Rollouts.Items {
		r := &in.Rollouts.Items[i]
		newest[readOperator(r)] = max(newest[readOperator(r)], r.Spec.Revision)
	}
	var open []Rollout
	withoutClusters := 0
	for i := range in.Rollouts.Items {
		r := &in.Rollouts.Items[i]
		isReplaced := r.Spec.Revision < newest[readOperator(r)]
		if r.Status.Phase.Ended() && (isReplaced ||
			!slices.Contains([]explain.State{explain.Failed, explain.Degraded}, in.readRolloutLink(r).State)) {
			continue
		}
		if _, known := in.Members[r.UID]; !known && !r.Status.Phase.Ended() {
			withoutClusters++
		}
		open = append(open, in.explainRollout(r))
	}
	slices.SortFunc(open, func(a, b Rollout) int {
		return cmp.Or(cmp.Compare(slices.Index(urgency, a.State), slices.Index(urgency, b.State)),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	out := limitList(in.Most, in.Rollouts.Unknown, open)
	if n := countIf(open, func(r Rollout) bool {
		return r.State != explain.Progressing && r.State != explain.Healthy
	}); n > 0 {
		out.Detail = fmt.Sprintf("not progressing: %d", n)
	}
	switch {
	case in.Rollouts.Unknown != "" || len(open) == 0: // the list shows no rollout whose clusters could be missing
	case in.Clusters.Unknown != "":
		out.Notes = append(out.Notes, "The clusters of the rollouts are not known: "+in.Clusters.Unknown+".")
	case withoutClusters > 0:
		out.Notes = append(out.Notes, fmt.Sprintf("The clusters of %s could not be read.",
			phrase.Count(withoutClusters, "rollout")))
	}
	return out
}

// readOperator returns the operator of a rollout.
func readOperator(r *v1alpha1.OperatorRollout) v1alpha1.OperatorReference {
	return v1alpha1.OperatorReference{Namespace: r.Namespace, Name: r.Spec.Operator.Name}
}

// listOutcomes returns the rollouts that started or ended in the shift, the last one first.
func (in Input) listOutcomes() List[Outcome] {
	var out []Outcome
	for i := range in.Rollouts.Items {
		r := &in.Rollouts.Items[i]
		o := Outcome{Namespace: r.Namespace, Name: r.Name, Operator: r.Spec.Operator.Name,
			Version: r.Spec.Release.VersionText(), Phase: cmp.Or(r.Status.Phase, v1alpha1.RolloutPending),
			Summary: in.readRolloutLink(r).Text}
		// The text of a Healthy rollout has no message.
		if r.Status.Message != "" && in.readRolloutLink(r).State == explain.Healthy {
			o.Summary += "; " + phrase.OneLine(r.Status.Message)
		}
		started := r.CreationTimestamp
		if r.Status.StartedAt != nil {
			started = *r.Status.StartedAt
		}
		if in.isInShift(started.Time) {
			o.Started = toTime(&started)
		}
		if at := r.Status.EndedAt; at != nil && in.isInShift(at.Time) {
			o.Ended = toTime(at)
		}
		if o.Started != nil || o.Ended != nil {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b Outcome) int {
		return cmp.Or(b.findLastTime().Compare(a.findLastTime()), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(b.Name, a.Name))
	})
	return limitList(in.Most, in.Rollouts.Unknown, out)
}

// findLastTime returns the end of the rollout, or its start if the end is not in the shift.
func (o Outcome) findLastTime() time.Time {
	if o.Ended != nil {
		return *o.Ended
	}
	return *o.Started
}

// listHolds returns the holds of all operators.
func (in Input) listHolds() List[Hold] {
	var out []Hold
	for i := range in.Operators.Items {
		o := &in.Operators.Items[i]
		for _, h := range o.Spec.Holds {
			out = append(out, Hold{Namespace: o.Namespace, Operator: o.Name, Version: h.Version, Held: h.String(),
				Changes: h.Changes, Reason: phrase.OneLine(h.Reason), Since: toTime(&h.Since)})
		}
	}
	slices.SortFunc(out, func(a, b Hold) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Operator, b.Operator),
			cmp.Compare(a.Version, b.Version), cmp.Compare(a.Held, b.Held))
	})
	return limitList(in.Most, in.Operators.Unknown, out)
}

// listDecisions returns the decisions in the shift, the last one first.
func (in Input) listDecisions() List[Decision] {
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
					Text: operators.FormatLoggedDecision(d)})
			}
		}
		// The log has dropped entries, and its oldest entry is in the shift or later.
		if n := len(entries); o.Status.Decisions.Dropped > 0 && n > 0 && entries[n-1].At.After(in.From) {
			lost = append(lost, o.Namespace+"/"+o.Name)
		}
	}
	slices.SortStableFunc(out, func(a, b Decision) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Operator, b.Operator))
	})
	list := limitList(in.Most, in.Operators.Unknown, out)
	if len(lost) > 0 {
		list.Notes = append(list.Notes, fmt.Sprintf("The log has dropped earlier decisions for %s.",
			phrase.First(lost, 5)))
	}
	return list
}

// listVetoes returns the vetoes and freezes in force.
func (in Input) listVetoes() List[Cluster] {
	var out []Cluster
	for i := range in.Clusters.Items {
		c := &in.Clusters.Items[i]
		for _, l := range explain.ListRefusals(c) {
			out = append(out, Cluster{Cluster: c.Name, Text: l.Text, Since: toTime(l.Since)})
		}
	}
	return limitList(in.Most, in.Clusters.Unknown, sortNewestFirst(out))
}

// listOffline returns the clusters that are not online, so the hub has no current reports from them.
func (in Input) listOffline() List[Cluster] {
	var out []Cluster
	for i := range in.Clusters.Items {
		c := &in.Clusters.Items[i]
		if !rollouts.ObserveCluster(c).Online {
			e := in.explainCluster(c)
			out = append(out, Cluster{Cluster: c.Name, Text: e.Summary, Since: toTime(e.Since)})
		}
	}
	list := limitList(in.Most, in.Clusters.Unknown, sortNewestFirst(out))
	if len(out) > 0 {
		list.Detail = fmt.Sprintf("of %s", phrase.Count(len(in.Clusters.Items), "cluster"))
	}
	return list
}

// listClustersBack returns the clusters that came online in the shift, and the clusters whose veto ended in the shift.
func (in Input) listClustersBack() List[Cluster] {
	var out []Cluster
	for i := range in.Clusters.Items {
		c := &in.Clusters.Items[i]
		observed := rollouts.ObserveCluster(c)
		if observed.Online && in.isInShift(observed.OnlineSince) {
			since := observed.OnlineSince.UTC()
			out = append(out, Cluster{Cluster: c.Name, Text: "cluster " + c.Name + " came online", Since: &since})
		}
		if at := c.Status.VetoEndedAt; at != nil && c.Status.Veto == nil && in.isInShift(at.Time) {
			out = append(out, Cluster{Cluster: c.Name, Text: "the veto on cluster " + c.Name + " ended",
				Since: toTime(at)})
		}
	}
	return limitList(in.Most, in.Clusters.Unknown, sortNewestFirst(out))
}

// explainCluster returns the explanation of a cluster.
func (in Input) explainCluster(c *v1alpha1.FleetCluster) explain.Explanation {
	return explain.Cluster(explain.ClusterInput{Now: in.Now, Cluster: c, Program: in.Program})
}

// sortNewestFirst sorts the clusters by time, the newest first. It changes its argument.
func sortNewestFirst(list []Cluster) []Cluster {
	readSince := func(c Cluster) time.Time {
		if c.Since == nil {
			return time.Time{}
		}
		return *c.Since
	}
	slices.SortFunc(list, func(a, b Cluster) int {
		return cmp.Or(readSince(b).Compare(readSince(a)), cmp.Compare(a.Cluster, b.Cluster))
	})
	return list
}

// maxNames is the maximum number of operators and of clusters of a window that are listed.
const maxNames = 5

// listWindows returns the reasons why clusters are closed to the operators that select them, with the affected
// operators and clusters. The reason with the most clusters comes first.
func (in Input) listWindows() List[Window] {
	set := holds.ReadWindows(in.Windows.Items, in.Now)
	closedByReason := map[string]*closedTargets{}
	for i := range in.Operators.Items {
		in.addClosed(closedByReason, set, &in.Operators.Items[i])
	}
	var out []Window
	for text, c := range closedByReason {
		operators, clusters := sortNames(c.operators), sortNames(c.clusters)
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
	return limitList(in.Most, cmp.Or(in.Windows.Unknown, in.Operators.Unknown, in.Clusters.Unknown,
		in.Policies.Unknown), out)
}

// closedTargets are the operators and clusters that are closed for the same reason.
type closedTargets struct {
	until               time.Time
	operators, clusters map[string]bool
}

// sortNames returns the sorted names of a set.
func sortNames(names map[string]bool) []string {
	out := make([]string, 0, len(names))
	for name := range names {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// addClosed adds the clusters that are closed to an operator to closedByReason. The reason is the message of the state.
func (in Input) addClosed(closedByReason map[string]*closedTargets, set *holds.WindowSet, o *v1alpha1.ManagedOperator) {
	selector, err := metav1.LabelSelectorAsSelector(&o.Spec.ClusterSelector)
	if err != nil { // an invalid selector selects no clusters
		return
	}
	policies := policy.Read(in.Policies.Items, policy.Operator{
		OperatorReference: v1alpha1.OperatorReference{Namespace: o.Namespace, Name: o.Name}, Labels: o.Labels})
	for i := range in.Clusters.Items {
		c := rollouts.ObserveCluster(&in.Clusters.Items[i])
		if !selector.Matches(labels.Set(c.Labels)) {
			continue
		}
		state := set.State(holds.WindowTarget{Namespace: o.Namespace, OperatorLabels: o.Labels, ClusterLabels: c.Labels,
			TimeZone: c.TimeZone, Required: policies.Windows(c.Labels)})
		if state.Open {
			continue
		}
		if closedByReason[state.Message] == nil {
			closedByReason[state.Message] = &closedTargets{until: state.Until, operators: map[string]bool{},
				clusters: map[string]bool{}}
		}
		closedByReason[state.Message].operators[o.Namespace+"/"+o.Name] = true
		closedByReason[state.Message].clusters[c.Name] = true
	}
}
