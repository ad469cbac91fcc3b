// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// member is one cluster of a rollout with what is shown of it.
type member struct {
	rollouts.Member
	state   string
	tone    term.Tone
	since   metav1.Time
	reason  string
	message string
}

// needsAttention tells whether a person should look at the member.
func (m member) needsAttention() bool { return m.tone == term.Bad || m.tone == term.Warn }

// membersOf classifies the clusters as the hub does. Selectors that cannot be
// used are the subject of the rollout's own message.
func membersOf(in RolloutInput) []member {
	if in.Rollout == nil {
		return nil
	}
	observation := rollouts.Input{Now: in.Now, Rollout: in.Rollout}
	clusters := map[string]*v1alpha1.FleetCluster{}
	for i := range in.Clusters {
		clusters[in.Clusters[i].Name] = &in.Clusters[i]
		observation.Clusters = append(observation.Clusters, rollouts.ObserveCluster(&in.Clusters[i]))
	}
	installs := map[string]*v1alpha1.OperatorInstall{}
	for i := range in.Installs {
		installs[in.Installs[i].Spec.Cluster] = &in.Installs[i]
		observation.Installs = append(observation.Installs, rollouts.ObserveInstall(&in.Installs[i]))
	}
	classified, err := rollouts.Classify(observation)
	if err != nil {
		return nil
	}
	members := make([]member, 0, len(classified))
	for _, m := range classified {
		members = append(members, describe(in.Rollout, m, installs[m.Cluster], clusters[m.Cluster]))
	}
	return members
}

var states = map[rollouts.Class]struct {
	text string
	tone term.Tone
}{
	rollouts.ClassPending: {"Pending", term.Dim}, rollouts.ClassInProgress: {"Updating", term.Plain},
	rollouts.ClassSucceeded: {"Updated", term.Good}, rollouts.ClassFailed: {"Failed", term.Bad},
	rollouts.ClassDeferred: {"Deferred", term.Warn}, rollouts.ClassRemoved: {"Removed", term.Dim},
}

// describe finds the words for a class and its reason in the conditions.
func describe(r *v1alpha1.OperatorRollout, m rollouts.Member, install *v1alpha1.OperatorInstall,
	cluster *v1alpha1.FleetCluster) member {
	conditions := install.Status.Conditions
	state := states[m.Class]
	shown := member{
		Member: m, state: state.text, tone: state.tone, since: metav1.Time{Time: m.Since}, reason: m.Reason,
		message: cmp.Or(m.Message, term.Headline(conditions)),
	}
	switch m.Reason {
	case rollouts.ReasonStalled:
		stalled := term.Condition(conditions, v1alpha1.ConditionStalled)
		shown.since, shown.reason, shown.message = stalled.LastTransitionTime, stalled.Reason, stalled.Message
	case rollouts.ReasonDeadlineExceeded:
		shown.message = fmt.Sprintf("not updated within %s: %s", DeadlineOf(r, m.Wave), shown.message)
	case rollouts.ReasonNotReady:
		shown.reason = cmp.Or(term.Condition(conditions, v1alpha1.ConditionReady).Reason, m.Reason)
		if m.Class == rollouts.ClassInProgress {
			shown.state, shown.tone = "Not Ready", term.Warn
		}
	case v1alpha1.ReasonPaused:
		shown.message = "the cluster is paused"
	case v1alpha1.ReasonHibernating:
		shown.message = "the cluster hibernates"
	case v1alpha1.ReasonSourcePaused:
		shown.message = "the source of the cluster is paused, or is being moved"
	case v1alpha1.ReasonAgentOffline:
		shown.message = term.Condition(cluster.Status.Conditions, v1alpha1.ConditionOnline).Message
	case v1alpha1.ReasonAPIServerUnreachable:
		shown.message = term.Condition(cluster.Status.Conditions, v1alpha1.ConditionAPIServerReachable).Message
	}
	return shown
}

// DeadlineOf is how long a cluster of a wave may take; 0 where the rollout does
// not say.
func DeadlineOf(r *v1alpha1.OperatorRollout, wave string) time.Duration {
	if w := rollouts.WaveSpec(r, wave); w.Deadline != nil {
		return w.Deadline.Duration
	}
	return 0
}

// attention lists the members that need a look: first those that failed, then
// in the order of the waves.
func attention(in RolloutInput) []member {
	all := slices.DeleteFunc(membersOf(in), func(m member) bool { return !m.needsAttention() })
	slices.SortStableFunc(all, func(a, b member) int { return cmp.Compare(b.tone, a.tone) })
	return all
}

// writeMoved says of which clusters the labels select another wave than their own.
func writeMoved(out *strings.Builder, in RolloutInput, s term.Style) {
	if in.Rollout.Status.Phase.Ended() {
		return
	}
	type move struct{ from, to string }
	var moves []move
	clusters := map[move][]string{}
	for _, m := range membersOf(in) {
		if m.MovedTo == "" {
			continue
		}
		k := move{m.Wave, m.MovedTo}
		if clusters[k] == nil {
			moves = append(moves, k)
		}
		clusters[k] = append(clusters[k], m.Cluster)
	}
	for _, k := range moves {
		names := clusters[k]
		out.WriteString("\n" + s.Lines(term.Dim, rollouts.MovedText(fmt.Sprintf("%s (%s)",
			phrase.Count(len(names), "cluster"), phrase.First(names, maxNames)), k.from, k.to)))
	}
}

func attentionTable(members []member, now time.Time) *term.Table {
	t := &term.Table{Header: []string{"CLUSTER", "WAVE", "STATE", "SINCE", "REASON", "MESSAGE"}, Wrap: true}
	for _, m := range members {
		t.Add(term.Cell{Text: m.Cluster}, term.Cell{Text: m.Wave}, m.tone.Cell(m.state),
			term.Cell{Text: term.Age(now, m.since)},
			term.Cell{Text: term.OrDash(m.reason)}, term.Cell{Text: phrase.OneLine(m.message)})
	}
	return t
}

// Reasons that are on no condition, and what to do about them.
const (
	ReasonNotSelected = "NotSelected"
	ReasonDeadline    = rollouts.ReasonDeadlineExceeded
)
