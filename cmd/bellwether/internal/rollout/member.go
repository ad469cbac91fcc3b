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
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// member is one cluster of a rollout with the texts that are shown for this cluster.
type member struct {
	rollouts.Member
	state   string
	tone    term.Tone
	since   metav1.Time
	reason  string
	message string
}

// needsAttention reports whether a person should look at the member.
func (m member) needsAttention() bool { return m.tone == term.Bad || m.tone == term.Warn }

// classifyMembers classifies the clusters of a rollout as the hub does. It returns nil if a selector is invalid,
// because the message of the rollout already reports this error.
func classifyMembers(in RolloutInput) []member {
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
		members = append(members, describeMember(in.Rollout, m, installs[m.Cluster], clusters[m.Cluster]))
	}
	return members
}

var memberStates = map[rollouts.Class]struct {
	text string
	tone term.Tone
}{
	rollouts.ClassPending: {"Pending", term.Dim}, rollouts.ClassInProgress: {"Updating", term.Plain},
	rollouts.ClassSucceeded: {"Updated", term.Good}, rollouts.ClassFailed: {"Failed", term.Bad},
	rollouts.ClassDeferred: {"Deferred", term.Warn}, rollouts.ClassRemoved: {"Removed", term.Dim},
}

// describeMember adds the shown state, tone, reason and message to a classified member. It takes them from the
// conditions of the OperatorInstall and the FleetCluster.
func describeMember(r *v1alpha1.OperatorRollout, m rollouts.Member, install *v1alpha1.OperatorInstall,
	cluster *v1alpha1.FleetCluster) member {
	conditions := install.Status.Conditions
	state := memberStates[m.Class]
	shown := member{
		Member: m, state: state.text, tone: state.tone, since: metav1.Time{Time: m.Since}, reason: m.Reason,
		message: cmp.Or(m.Message, term.Headline(conditions)),
	}
	switch m.Reason {
	case rollouts.ReasonStalled:
		stalled := term.Condition(conditions, v1alpha1.ConditionStalled)
		shown.since, shown.reason, shown.message = stalled.LastTransitionTime, stalled.Reason, stalled.Message
	case rollouts.ReasonDeadlineExceeded:
		shown.message = fmt.Sprintf("not updated within %s: %s", ReadDeadline(r, m.Wave), shown.message)
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

// ReadDeadline returns how long the update of a cluster in a wave may take; 0 if the rollout sets no deadline.
func ReadDeadline(r *v1alpha1.OperatorRollout, wave string) time.Duration {
	if w := rollouts.WaveSpec(r, wave); w.Deadline != nil {
		return w.Deadline.Duration
	}
	return 0
}

// listAttentionMembers returns the members that need attention: first the failed members, then the
// others in the order of the waves.
func listAttentionMembers(in RolloutInput) []member {
	all := slices.DeleteFunc(classifyMembers(in), func(m member) bool { return !m.needsAttention() })
	// The tone Bad, of failed members, is higher than the tone Warn.
	slices.SortStableFunc(all, func(a, b member) int { return cmp.Compare(b.tone, a.tone) })
	return all
}

// writeMovedClusters lists the clusters whose labels now select another wave than the wave in which they are.
func writeMovedClusters(out *strings.Builder, in RolloutInput, s term.Style) {
	if in.Rollout.Status.Phase.Ended() {
		return
	}
	type move struct{ from, to string }
	var moves []move
	clusters := map[move][]string{}
	for _, m := range classifyMembers(in) {
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

func buildAttentionTable(members []member, now time.Time) *term.Table {
	t := &term.Table{Header: []string{"CLUSTER", "WAVE", "STATE", "SINCE", "REASON", "MESSAGE"}, Wrap: true}
	for _, m := range members {
		t.Add(term.Cell{Text: m.Cluster}, term.Cell{Text: m.Wave}, m.tone.Cell(m.state),
			term.Cell{Text: term.Age(now, m.since)},
			term.Cell{Text: term.DashIfEmpty(m.reason)}, term.Cell{Text: phrase.OneLine(m.message)})
	}
	return t
}

// Reasons of members that no condition has.
const (
	ReasonNotSelected = "NotSelected"
	ReasonDeadline    = rollouts.ReasonDeadlineExceeded
)
