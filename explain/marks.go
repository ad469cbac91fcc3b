// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// Mark is one of the marks that a list shows beside the state of a cluster, an operator or a rollout. The object can be
// Ready at the same time: a mark says that the data is old, that the installed objects were changed, or that nothing
// may be changed.
type Mark string

const (
	// MarkStale clusters have reported before and do not report now: the list shows their last report.
	MarkStale Mark = "stale"
	// MarkDrifted operators differ from what was installed.
	MarkDrifted Mark = "drifted"
	// MarkVetoed clusters have an owner who refuses changes.
	MarkVetoed Mark = "vetoed"
	// MarkPaused clusters, operators and rollouts are not changed, because a person or the owner of a cluster's source
	// paused them.
	MarkPaused Mark = "paused"
	// MarkFrozen clusters are under a FleetFreeze.
	MarkFrozen Mark = "frozen"
	// MarkUpdate marks operators with a newer version that waits for an approval.
	MarkUpdate Mark = "update"
)

// AllMarks returns the marks in the order in which they are shown.
func AllMarks() []Mark {
	return []Mark{MarkStale, MarkDrifted, MarkVetoed, MarkPaused, MarkFrozen, MarkUpdate}
}

// ClusterMarks returns the marks that a cluster or a rollout can have: all except Update.
func ClusterMarks() []Mark {
	return slices.DeleteFunc(AllMarks(), func(m Mark) bool { return m == MarkUpdate })
}

// ErrUnknownMark is the error for a word that is not a possible mark.
var ErrUnknownMark = errors.New("unknown state")

// ParseMarks returns the marks for words. possible are the marks that are allowed.
func ParseMarks(words []string, possible []Mark) ([]Mark, error) {
	var out []Mark
	for _, word := range words {
		m := Mark(strings.ToLower(strings.TrimSpace(word)))
		if !slices.Contains(possible, m) {
			return nil, fmt.Errorf("%w %q", ErrUnknownMark, word)
		}
		out = append(out, m)
	}
	return out, nil
}

// MarkWords returns the marks as strings.
func MarkWords(list []Mark) []string {
	var out []string
	for _, m := range list {
		out = append(out, string(m))
	}
	return out
}

// MarkSet has the subjects of each mark: clusters, or the operators of a cluster. A mark of the object itself has
// no subjects.
type MarkSet map[Mark][]string

// add adds a subject to a mark. An empty subject marks the object itself, and removes other subjects of the mark.
func (s MarkSet) add(m Mark, subject string) {
	if subject == "" {
		s[m] = []string{}
		return
	}
	s[m] = append(s[m], subject)
}

// HasAny reports whether the set has one of the wanted marks, or no mark is wanted.
func (s MarkSet) HasAny(wanted []Mark) bool {
	return len(wanted) == 0 || slices.ContainsFunc(wanted, func(m Mark) bool {
		_, has := s[m]
		return has
	})
}

// String returns the set as a list: "stale (2), paused". It returns "" for an empty set.
func (s MarkSet) String() string {
	var out []string
	for _, m := range AllMarks() {
		subjects, has := s[m]
		switch {
		case !has: // the mark is not in the set
		case len(subjects) == 0:
			out = append(out, string(m))
		default:
			out = append(out, fmt.Sprintf("%s (%d)", m, len(subjects)))
		}
	}
	return strings.Join(out, ", ")
}

// maxMarkSubjects is the maximum number of names in a line.
const maxMarkSubjects = 5

// markMeanings are short descriptions of the marks.
var markMeanings = map[Mark]string{
	MarkStale:   "shown as last reported",
	MarkDrifted: "changed on the cluster",
	MarkVetoed:  "the cluster's owner refuses changes",
	MarkPaused:  "a person or the cluster's source wants no changes",
	MarkFrozen:  "a FleetFreeze stops changes",
	MarkUpdate:  "a newer version waits for an approval",
}

// Details describes the marks and lists their subjects: "stale (shown as last reported): prod-1, prod-2". It returns
// "" for an empty set.
func (s MarkSet) Details() string {
	var out []string
	for _, m := range AllMarks() {
		subjects, has := s[m]
		if !has {
			continue
		}
		text := fmt.Sprintf("%s (%s)", m, markMeanings[m])
		if len(subjects) > 0 {
			text += ": " + phrase.First(slices.Sorted(slices.Values(subjects)), maxMarkSubjects)
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// FleetMarks has the clusters and installs of the hub, grouped for fast access.
type FleetMarks struct {
	clusters   map[string]*v1alpha1.FleetCluster
	byCluster  map[string][]*v1alpha1.OperatorInstall
	byOperator map[v1alpha1.OperatorReference][]*v1alpha1.OperatorInstall
}

// NewFleetMarks groups clusters and installs.
func NewFleetMarks(clusters []v1alpha1.FleetCluster, installs []v1alpha1.OperatorInstall) *FleetMarks {
	f := &FleetMarks{clusters: map[string]*v1alpha1.FleetCluster{},
		byCluster:  map[string][]*v1alpha1.OperatorInstall{},
		byOperator: map[v1alpha1.OperatorReference][]*v1alpha1.OperatorInstall{}}
	for i := range clusters {
		f.clusters[clusters[i].Name] = &clusters[i]
	}
	for i := range installs {
		in := &installs[i]
		f.byCluster[in.Spec.Cluster] = append(f.byCluster[in.Spec.Cluster], in)
		f.byOperator[in.Spec.Operator] = append(f.byOperator[in.Spec.Operator], in)
	}
	return f
}

// Cluster returns the marks of a cluster. The subjects of Drifted are its operators.
func (f *FleetMarks) Cluster(c *v1alpha1.FleetCluster) MarkSet {
	s := markCluster(c)
	for _, in := range f.byCluster[c.Name] {
		if isDrifted(in) {
			s.add(MarkDrifted, in.Spec.Operator.Namespace+"/"+in.Spec.Operator.Name)
		}
	}
	if c.Status.Veto != nil {
		s.add(MarkVetoed, "")
	}
	return s
}

// markCluster returns the marks of a cluster that also apply to every operator on it.
func markCluster(c *v1alpha1.FleetCluster) MarkSet {
	s := MarkSet{}
	if isStale(c) {
		s.add(MarkStale, "")
	}
	if rollouts.ObserveCluster(c).IsChangeForbidden() {
		s.add(MarkPaused, "")
	}
	if c.Status.Freeze != nil {
		s.add(MarkFrozen, "")
	}
	return s
}

// MarkInstall returns the marks of an operator on a cluster. c and in can be nil.
func MarkInstall(c *v1alpha1.FleetCluster, in *v1alpha1.OperatorInstall) MarkSet {
	s := MarkSet{}
	if c != nil {
		s = markCluster(c)
	}
	if in != nil && isDrifted(in) {
		s.add(MarkDrifted, "")
	}
	if c != nil && c.Status.Veto != nil && (in == nil || holds.VetoCovers(c.Status.Veto, in.Spec.Operator)) {
		s.add(MarkVetoed, "")
	}
	return s
}

// Operator returns the marks of an operator. Their subjects are clusters. Update has no subjects, and Paused has none
// if the operator itself is paused.
func (f *FleetMarks) Operator(o *v1alpha1.ManagedOperator) MarkSet {
	s := f.collectMarks(f.byOperator[v1alpha1.OperatorReference{Namespace: o.Namespace, Name: o.Name}])
	if o.Spec.Paused {
		s[MarkPaused] = []string{}
	}
	if o.Status.Available != nil {
		s.add(MarkUpdate, "")
	}
	return s
}

// Rollout returns the marks of a rollout. Their subjects are clusters. Paused has none if the rollout itself is
// paused. A rollout that has ended has no marks, because it changes nothing.
func (f *FleetMarks) Rollout(r *v1alpha1.OperatorRollout) MarkSet {
	if r.Status.Phase.Ended() {
		return MarkSet{}
	}
	var members []*v1alpha1.OperatorInstall
	for _, in := range f.byOperator[v1alpha1.OperatorReference{Namespace: r.Namespace, Name: r.Spec.Operator.Name}] {
		if in.Labels[v1alpha1.LabelRollout] == r.Name {
			members = append(members, in)
		}
	}
	s := f.collectMarks(members)
	if r.Spec.Paused {
		s[MarkPaused] = []string{}
	}
	return s
}

// collectMarks returns the marks of installs with their clusters.
func (f *FleetMarks) collectMarks(installs []*v1alpha1.OperatorInstall) MarkSet {
	s := MarkSet{}
	for _, in := range installs {
		for m := range MarkInstall(f.clusters[in.Spec.Cluster], in) {
			s.add(m, in.Spec.Cluster)
		}
	}
	return s
}

// isStale reports whether a cluster has reported before and does not report now.
func isStale(c *v1alpha1.FleetCluster) bool {
	online := conditions.Get(c.Status.Conditions, v1alpha1.ConditionOnline)
	return online.Reason != "" && online.Reason != v1alpha1.ReasonNeverJoined && !rollouts.ObserveCluster(c).Online
}

// isDrifted reports whether the agent reports drift.
func isDrifted(in *v1alpha1.OperatorInstall) bool {
	return conditions.IsTrue(in.Status.Conditions, v1alpha1.ConditionDrifted)
}
