// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

// member is one cluster of a rollout as people see it.
type member struct {
	cluster string
	wave    string
	state   string
	tone    term.Tone
	since   metav1.Time
	reason  string
	message string
}

// attention says whether a person should look at the member.
func (m member) attention() bool { return m.tone == term.Bad || m.tone == term.Warn }

// memberOf judges an install that carries the rollout's label by the same rule
// as the rollout: success is the release's hash, failure a stalled agent or a
// passed deadline.
func memberOf(r *v1alpha1.OperatorRollout, in *v1alpha1.OperatorInstall, c *v1alpha1.FleetCluster,
	now time.Time) member {
	m := member{cluster: in.Spec.Cluster, wave: in.Labels[v1alpha1.LabelWave]}
	admitted := in.Spec.Admission != nil && in.Spec.Admission.RolloutUID == string(r.UID)
	stalled := term.Condition(in.Status.Conditions, v1alpha1.ConditionStalled)
	stalledNow := stalled.Status == metav1.ConditionTrue && in.Status.ObservedGeneration == in.Generation
	switch {
	case in.Status.SucceededHash != "" && in.Status.SucceededHash == r.Spec.Release.Hash():
		m.state, m.tone = "Updated", term.Good
		m.since = valueOf(in.Status.SucceededAt)
	case admitted && stalledNow:
		m.state, m.tone, m.since = "Failed", term.Bad, stalled.LastTransitionTime
		m.reason, m.message = stalled.Reason, stalled.Message
	case admitted && PastDeadline(r, m.wave, in, now):
		m.state, m.tone, m.since = "Failed", term.Bad, in.Spec.Admission.AdmittedAt
		m.reason, m.message = ReasonDeadline, "not updated within "+DeadlineOf(r,
			m.wave).String()+": "+term.Headline(in.Status.Conditions)
	case c != nil && c.Spec.Paused:
		m.state, m.tone, m.reason, m.message = "Deferred", term.Warn, v1alpha1.ReasonPaused, "the cluster is paused"
	case c != nil && !term.Online(c):
		on := term.Condition(c.Status.Conditions, v1alpha1.ConditionOnline)
		m.state, m.tone, m.since = "Deferred", term.Warn, on.LastTransitionTime
		m.reason, m.message = v1alpha1.ReasonAgentOffline, on.Message
	case admitted:
		m.state, m.since, m.message = "Updating", in.Spec.Admission.AdmittedAt, term.Headline(in.Status.Conditions)
	default:
		m.state, m.tone = "Pending", term.Dim
	}
	return m
}

func valueOf(t *metav1.Time) metav1.Time {
	if t == nil {
		return metav1.Time{}
	}
	return *t
}

func PastDeadline(r *v1alpha1.OperatorRollout, wave string, in *v1alpha1.OperatorInstall, now time.Time) bool {
	d := DeadlineOf(r, wave)
	return d > 0 && now.After(in.Spec.Admission.AdmittedAt.Add(d))
}

func DeadlineOf(r *v1alpha1.OperatorRollout, wave string) time.Duration {
	if w := waveSpec(r, wave); w.Deadline != nil {
		return w.Deadline.Duration
	}
	return 0
}

func waveSpec(r *v1alpha1.OperatorRollout, name string) v1alpha1.Wave {
	for _, w := range r.Spec.Strategy.Waves {
		if w.Name == name {
			return w
		}
	}
	return v1alpha1.Wave{Name: name}
}

// attention lists the members that need a look: first those that failed, then
// by wave and name.
func attention(in RolloutInput) []member {
	clusters := map[string]*v1alpha1.FleetCluster{}
	for i := range in.Clusters {
		clusters[in.Clusters[i].Name] = &in.Clusters[i]
	}
	order := map[string]int{}
	for i, w := range in.Rollout.Status.Waves {
		order[w.Name] = i
	}
	var out []member
	for i := range in.Installs {
		install := &in.Installs[i]
		m := memberOf(in.Rollout, install, clusters[install.Spec.Cluster], in.Now)
		if m.attention() && install.DeletionTimestamp == nil {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b member) int {
		return cmp.Or(cmp.Compare(b.tone, a.tone), cmp.Compare(order[a.wave], order[b.wave]),
			cmp.Compare(a.cluster, b.cluster))
	})
	return out
}

func attentionTable(members []member, now time.Time) *term.Table {
	t := &term.Table{Header: []string{"CLUSTER", "WAVE", "STATE", "SINCE", "REASON", "MESSAGE"}, Wrap: true}
	for _, m := range members {
		t.Add(term.Cell{Text: m.cluster}, term.Cell{Text: m.wave}, m.tone.Cell(m.state),
			term.Cell{Text: term.Age(now, m.since)},
			term.Cell{Text: term.OrDash(m.reason)}, term.Cell{Text: term.OneLine(m.message)})
	}
	return t
}

// Reasons that are on no condition, and what to do about them.
const (
	ReasonNotSelected = "NotSelected"
	ReasonDeadline    = "Deadline"
)
