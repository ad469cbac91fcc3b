// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package marks says what a list has to show of a cluster, an operator or a rollout beside its state, because it can
// be Ready at the same time: that what is shown is old, that somebody changed what runs, or that nothing may be
// changed. It is pure.
package marks

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/veto"
)

// Mark is one of the words in a list.
type Mark string

const (
	// Stale clusters have reported before, and do not now: what is shown is from the last report.
	Stale Mark = "stale"
	// Drifted operators run something else than was installed.
	Drifted Mark = "drifted"
	// Vetoed clusters have an owner who refuses changes.
	Vetoed Mark = "vetoed"
	// Paused clusters, operators and rollouts are left alone: a person wants it, or the owner of a cluster's source.
	Paused Mark = "paused"
	// Frozen clusters are under a FleetFreeze.
	Frozen Mark = "frozen"
	// Update operators have a newer version that waits for an approval.
	Update Mark = "update"
)

// All are the marks in the order in which they are shown.
func All() []Mark { return []Mark{Stale, Drifted, Vetoed, Paused, Frozen, Update} }

// OfClusters are the marks that a cluster or a rollout can have: all but Update.
func OfClusters() []Mark { return slices.DeleteFunc(All(), func(m Mark) bool { return m == Update }) }

// ErrUnknown is the error for a word that is no mark, or none of those that are possible.
var ErrUnknown = errors.New("unknown state")

// Parse returns the marks that words stand for. Possible are the marks that can be meant.
func Parse(words []string, possible []Mark) ([]Mark, error) {
	var out []Mark
	for _, word := range words {
		m := Mark(strings.ToLower(strings.TrimSpace(word)))
		if !slices.Contains(possible, m) {
			return nil, fmt.Errorf("%w %q", ErrUnknown, word)
		}
		out = append(out, m)
	}
	return out, nil
}

// Words are marks as text.
func Words(list []Mark) []string {
	var out []string
	for _, m := range list {
		out = append(out, string(m))
	}
	return out
}

// Set has for each mark what it is about: clusters, or the operators of a cluster. A mark of the object itself is about
// nothing else.
type Set map[Mark][]string

func (s Set) add(m Mark, about string) {
	if about == "" {
		s[m] = []string{}
		return
	}
	s[m] = append(s[m], about)
}

// HasAny tells whether the set has one of the marks. Without marks every set has.
func (s Set) HasAny(wanted []Mark) bool {
	return len(wanted) == 0 || slices.ContainsFunc(wanted, func(m Mark) bool {
		_, has := s[m]
		return has
	})
}

// String is the set for a list: "stale (2), paused". It is empty for an empty set.
func (s Set) String() string {
	var out []string
	for _, m := range All() {
		about, has := s[m]
		switch {
		case !has:
		case len(about) == 0:
			out = append(out, string(m))
		default:
			out = append(out, fmt.Sprintf("%s (%d)", m, len(about)))
		}
	}
	return strings.Join(out, ", ")
}

// maxNamed keeps lines short enough to read.
const maxNamed = 5

// meanings say in a few words what the marks are.
var meanings = map[Mark]string{
	Stale:   "shown as last reported",
	Drifted: "changed on the cluster",
	Vetoed:  "the cluster's owner refuses changes",
	Paused:  "a person or the cluster's source wants no changes",
	Frozen:  "a FleetFreeze stops changes",
	Update:  "a newer version waits for an approval",
}

// Details says what the marks mean and names what they are about: "stale (shown as last reported): prod-1, prod-2". It
// is empty for an empty set.
func (s Set) Details() string {
	var out []string
	for _, m := range All() {
		about, has := s[m]
		if !has {
			continue
		}
		text := fmt.Sprintf("%s (%s)", m, meanings[m])
		if len(about) > 0 {
			text += ": " + phrase.First(slices.Sorted(slices.Values(about)), maxNamed)
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// Fleet is what the hub knows of clusters and installs, grouped once for all questions about them.
type Fleet struct {
	clusters   map[string]*v1alpha1.FleetCluster
	byCluster  map[string][]*v1alpha1.OperatorInstall
	byOperator map[v1alpha1.OperatorReference][]*v1alpha1.OperatorInstall
}

// Group groups clusters and installs.
func Group(clusters []v1alpha1.FleetCluster, installs []v1alpha1.OperatorInstall) *Fleet {
	f := &Fleet{clusters: map[string]*v1alpha1.FleetCluster{},
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

// Cluster returns the marks of a cluster; Drifted is about its operators.
func (f *Fleet) Cluster(c *v1alpha1.FleetCluster) Set {
	s := ofCluster(c)
	for _, in := range f.byCluster[c.Name] {
		if isDrifted(in) {
			s.add(Drifted, in.Spec.Operator.Namespace+"/"+in.Spec.Operator.Name)
		}
	}
	if c.Status.Veto != nil {
		s.add(Vetoed, "")
	}
	return s
}

// ofCluster returns the marks that a cluster has for itself and for everything on it.
func ofCluster(c *v1alpha1.FleetCluster) Set {
	s := Set{}
	if isStale(c) {
		s.add(Stale, "")
	}
	if rollouts.ObserveCluster(c).IsLeftAlone() {
		s.add(Paused, "")
	}
	if c.Status.Freeze != nil {
		s.add(Frozen, "")
	}
	return s
}

// Install returns the marks of an operator on a cluster. Both may be nil.
func Install(c *v1alpha1.FleetCluster, in *v1alpha1.OperatorInstall) Set {
	s := Set{}
	if c != nil {
		s = ofCluster(c)
	}
	if in != nil && isDrifted(in) {
		s.add(Drifted, "")
	}
	if c != nil && c.Status.Veto != nil && (in == nil || veto.Covers(c.Status.Veto, in.Spec.Operator)) {
		s.add(Vetoed, "")
	}
	return s
}

// Operator returns the marks of an operator, which are about clusters. Where the operator itself is paused, Paused
// names no cluster, and Update never does.
func (f *Fleet) Operator(o *v1alpha1.ManagedOperator) Set {
	s := f.ofInstalls(f.byOperator[v1alpha1.OperatorReference{Namespace: o.Namespace, Name: o.Name}])
	if o.Spec.Paused {
		s[Paused] = []string{}
	}
	if o.Status.Available != nil {
		s.add(Update, "")
	}
	return s
}

// Rollout returns the marks of a rollout that has not ended, which are about its clusters. Where the rollout itself is
// paused, Paused names no cluster. What has ended changes nothing any more, and has no marks.
func (f *Fleet) Rollout(r *v1alpha1.OperatorRollout) Set {
	if r.Status.Phase.Ended() {
		return Set{}
	}
	var members []*v1alpha1.OperatorInstall
	for _, in := range f.byOperator[v1alpha1.OperatorReference{Namespace: r.Namespace, Name: r.Spec.Operator.Name}] {
		if in.Labels[v1alpha1.LabelRollout] == r.Name {
			members = append(members, in)
		}
	}
	s := f.ofInstalls(members)
	if r.Spec.Paused {
		s[Paused] = []string{}
	}
	return s
}

// ofInstalls names the clusters of each mark.
func (f *Fleet) ofInstalls(installs []*v1alpha1.OperatorInstall) Set {
	s := Set{}
	for _, in := range installs {
		for m := range Install(f.clusters[in.Spec.Cluster], in) {
			s.add(m, in.Spec.Cluster)
		}
	}
	return s
}

// isStale tells whether a cluster has reported before and does not now.
func isStale(c *v1alpha1.FleetCluster) bool {
	online := conditions.Get(c.Status.Conditions, v1alpha1.ConditionOnline)
	return online.Reason != "" && online.Reason != v1alpha1.ReasonNeverJoined && !rollouts.ObserveCluster(c).Online
}

func isDrifted(in *v1alpha1.OperatorInstall) bool {
	return conditions.IsTrue(in.Status.Conditions, v1alpha1.ConditionDrifted)
}
