// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// RolloutInput has the data for the explanation of a rollout.
type RolloutInput struct {
	Now     time.Time
	Rollout *v1alpha1.OperatorRollout
	// Clusters is the whole fleet. Installs are the installs of the operator.
	Clusters []v1alpha1.FleetCluster
	Installs []v1alpha1.OperatorInstall
	Program  string
}

// Rollout explains an OperatorRollout.
func Rollout(in RolloutInput) Explanation {
	r := in.Rollout
	l, members := buildRolloutLink(in)
	names := remedy.Names{Operator: r.Spec.Operator.Name, Rollout: r.Name, HubNamespace: r.Namespace,
		Package: r.Spec.Release.Package, Namespace: r.Spec.Release.TargetNamespace(), Program: in.Program,
		Cluster: findFirstFailed(members)}
	chain := append([]Link{l}, listMemberLinks(in, members)...)
	e := conclude(Subject{Kind: "OperatorRollout", Namespace: r.Namespace, Name: r.Name}, chain, names, summarizeDone(
		r.Status.Clusters.Succeeded, r.Spec.Release))
	e.Members = members
	return e
}

// summarizeDone returns the summary of a rollout that has succeeded.
func summarizeDone(clusters int32, release v1alpha1.Release) string {
	if release.AsInstalled {
		const pending = " as it was installed; nothing is pending."
		return phrase.Word(clusters, "The operator was taken over on the cluster"+pending,
			fmt.Sprintf("The operator was taken over on all %d clusters", clusters)+pending)
	}
	version := release.Version
	return phrase.Word(clusters, fmt.Sprintf("The cluster runs %s and is Ready; nothing is pending.", version),
		fmt.Sprintf("All %d clusters run %s and are Ready; nothing is pending.", clusters, version))
}

// readRolloutStatus returns the status of a rollout.
func readRolloutStatus(r *v1alpha1.OperatorRollout) objectStatus {
	return objectStatus{object: "OperatorRollout " + r.Namespace + "/" + r.Name, generation: r.Generation,
		observed: r.Status.ObservedGeneration, conditions: r.Status.Conditions}
}

// buildRolloutLink describes the rollout with its waves. It also returns the clusters with their classes.
func buildRolloutLink(in RolloutInput) (Link, []Member) {
	l := buildRolloutStateLink(in.Rollout)
	for i := range in.Rollout.Status.Waves {
		if w := &in.Rollout.Status.Waves[i]; w.Total > 0 {
			l.Links = append(l.Links, buildWaveLink(in.Now, in.Rollout, w))
		}
	}
	l.Links = append(l.Links, listHeldBackLinks(in.Rollout, "")...)
	l.Links = append(l.Links, listPolicyLinks(in.Rollout)...)
	l.Links = append(l.Links, listPaceLinks(in.Rollout)...)
	return l, listMembers(in)
}

// buildRolloutStateLink describes the rollout without its waves. A paused rollout is Waiting, and a rollout that was
// aborted or rolled back is Failed, whatever its conditions report.
func buildRolloutStateLink(r *v1alpha1.OperatorRollout) Link {
	status := readRolloutStatus(r)
	phase := string(cmp.Or(r.Status.Phase, v1alpha1.RolloutPending))
	name := fmt.Sprintf("rollout %s %s is %s", r.Name, r.Spec.Release.Purpose(), phase)
	l := status.summarize(name, "the rollout has succeeded")
	switch {
	case r.Spec.Paused && !r.Status.Phase.Ended():
		l = Link{State: Waiting, Reason: v1alpha1.ReasonPaused, Since: l.Since, stale: l.stale, Links: l.Links,
			Text: fmt.Sprintf("rollout %s is paused: %s", r.Name, cmp.Or(phrase.OneLine(r.Spec.PausedReason), "no "+
				"reason was given")),
			Evidence: []Evidence{{Object: status.object, Field: "spec.paused", Observed: "true"}}}
	case l.State != Healthy:
		l.Text = joinNameAndMessage(name, r.Status.Phase, cmp.Or(trimPeriod(r.Status.Message), l.Text))
	case r.Status.Phase != v1alpha1.RolloutSucceeded:
		l.State, l.Reason, l.Check = Progressing, v1alpha1.ReasonProgressing, ""
	}
	if p := r.Status.Phase; l.State != Healthy && (p == v1alpha1.RolloutAborted || p == v1alpha1.RolloutRolledBack) {
		l.State, l.about = Failed, aboutEnded
	}
	if r.Spec.Rollback != nil {
		l.Text += "; it " + phrase.OneLine(rollouts.RollbackText(r))
	}
	if r.Spec.Paused && r.Status.Phase == v1alpha1.RolloutSucceeded && r.MayAdmit() {
		text := fmt.Sprintf("rollout %s is paused: clusters that join later are not admitted", r.Name)
		l.Links = append(l.Links, Link{Text: text,
			Evidence: []Evidence{{Object: status.object, Field: "spec.paused", Observed: "true"}}})
	}
	if r.Spec.Blocked != "" {
		l.Links = append(l.Links, Link{State: Degraded, Reason: v1alpha1.ReasonVersionBlocked, about: aboutRollingOut,
			Text: fmt.Sprintf("version %s is blocked: %s", r.Spec.Release.Version, phrase.OneLine(r.Spec.Blocked)),
			Evidence: []Evidence{{Object: status.object, Field: "spec.blocked",
				Observed: phrase.OneLine(r.Spec.Blocked)}}})
	}
	return l
}

// joinNameAndMessage joins the name of a rollout, which contains its phase, and its message. If the message begins
// with the phase, the phase is not repeated.
func joinNameAndMessage(name string, phase v1alpha1.RolloutPhase, message string) string {
	phaseText := map[v1alpha1.RolloutPhase]string{v1alpha1.RolloutAborted: "aborted",
		v1alpha1.RolloutRolledBack: "rolled back", v1alpha1.RolloutSuperseded: "superseded"}[phase]
	rest, hasPhase := strings.CutPrefix(message, phaseText)
	if hasPhase && phaseText != "" && (rest == "" || strings.ContainsAny(rest[:1], ":,;")) {
		return name + rest
	}
	return name + ": " + message
}

// buildWaveLink describes a wave with its gates. A wave of a stopped rollout has no state and no gates.
func buildWaveLink(now time.Time, r *v1alpha1.OperatorRollout, w *v1alpha1.WaveStatus) Link {
	l := Link{Text: fmt.Sprintf("wave %s is %s: %s %s", w.Name, formatPhase(r, w),
		phrase.Part(w.Succeeded, w.Total-w.Removed, "cluster"), rollouts.FinishedText(r.Spec.Release)),
		Evidence: []Evidence{{Object: readRolloutStatus(r).object, Field: "status.waves[" + w.Name + "]",
			Observed: string(w.Phase)}}}
	if r.IsStopped() {
		return l
	}
	switch w.Phase {
	case v1alpha1.WaveVerified:
		l.State, l.Check, l.Since = Healthy, "wave "+w.Name+" is verified", w.VerifiedAt
	case v1alpha1.WaveSkipped:
		l.Text = fmt.Sprintf("wave %s is skipped: it had no cluster when its turn came", w.Name)
		l.State, l.Check = Healthy, "wave "+w.Name+" is skipped, without a cluster"
	case v1alpha1.WaveGated:
		l.State, l.Reason = Waiting, v1alpha1.ReasonGated
	case v1alpha1.WaveSoaking:
		l.State, l.Reason = Progressing, v1alpha1.ReasonSoaking
		if end := rollouts.SoakEnd(rollouts.WaveSpec(r, w.Name), *w); end.After(now) && w.InterruptedAt == nil {
			l.next = []Next{{Text: "The soak of wave " + w.Name + " ends.", At: &metav1.Time{Time: end}}}
		}
	case v1alpha1.WaveWaiting:
		l.State, l.Reason = Progressing, v1alpha1.ReasonProgressing
		l.Text += "; the wave before it comes first"
	case v1alpha1.WaveVerifying:
		l.State, l.Reason = Waiting, findVerifyingReason(w)
		l.next = listVerifyingNext(now, r, w)
	default:
		l.State, l.Reason = Progressing, v1alpha1.ReasonProgressing
	}
	for _, g := range w.Gates {
		l.Links = append(l.Links, buildGateLink(r, w, g))
	}
	return l
}

// formatPhase returns the phase of a wave as part of a sentence.
func formatPhase(r *v1alpha1.OperatorRollout, w *v1alpha1.WaveStatus) string {
	shown := rollouts.ShownPhase(r, w)
	if shown != string(w.Phase) {
		return strings.ToLower(shown)
	}
	return shown
}

// findVerifyingReason returns the reason why a wave in the phase Verifying waits.
func findVerifyingReason(w *v1alpha1.WaveStatus) string {
	for _, g := range w.Gates {
		if g.Name == v1alpha1.GateObservation && !g.IsPassed() {
			return v1alpha1.ReasonNotObserved
		}
	}
	return v1alpha1.ReasonVerifying
}

// buildGateLink describes a gate with its verdict and its measurement. A gate that blocks nothing now has no state.
func buildGateLink(r *v1alpha1.OperatorRollout, w *v1alpha1.WaveStatus, g v1alpha1.GateStatus) Link {
	l := Link{Text: fmt.Sprintf("gate %s: %s", g.Name, strings.ToLower(string(g.Verdict))),
		Evidence: []Evidence{{Object: readRolloutStatus(r).object, Field: "gate " + g.Name,
			Observed: phrase.OneLine(g.Evidence),
			Time:     g.DecidedAt}}}
	if g.Evidence != "" {
		l.Text += ": " + phrase.OneLine(g.Evidence)
	}
	l.Evidence = append(l.Evidence, listMeasurementEvidence(r, g)...)
	isMeasured := isMeasuredGate(r, w.Name, g.Name)
	switch {
	case g.IsPassed():
		l.State, l.Check = Healthy, "gate "+g.Name
	case g.Verdict == v1alpha1.GateFailed:
		l.State, l.Reason = Failed, v1alpha1.ReasonGateFailed
	case g.Name == v1alpha1.GateObservation:
		l.State, l.Reason, l.Since = Waiting, v1alpha1.ReasonNotObserved, g.WaitingSince
	case slices.Contains(rollouts.AwaitingApproval(r), rollouts.GateRef{Wave: w.Name, Gate: g.Name}):
		l.State, l.Reason, l.Since = Waiting, v1alpha1.ReasonGated, g.WaitingSince
	case w.Phase == v1alpha1.WaveVerifying && isMeasured && findVerifyingReason(w) == v1alpha1.ReasonNotObserved:
		// The gate has no cluster to judge.
	case w.Phase == v1alpha1.WaveVerifying && isMeasured:
		l.State, l.Reason, l.Since = Waiting, v1alpha1.ReasonVerifying, g.WaitingSince
	}
	return l
}

// classifyClusters returns the clusters with their classes, by the rules of package rollouts.
func classifyClusters(in RolloutInput) []rollouts.Member {
	input := rollouts.Input{Now: in.Now, Rollout: in.Rollout}
	for i := range in.Clusters {
		input.Clusters = append(input.Clusters, rollouts.ObserveCluster(&in.Clusters[i]))
	}
	for i := range in.Installs {
		input.Installs = append(input.Installs, rollouts.ObserveInstall(&in.Installs[i]))
	}
	members, err := rollouts.Classify(input)
	if err != nil { // the rollout reports this error
		return nil
	}
	return members
}

// classReasons maps the reasons of a member's class to the reasons in the table of remedies.
var classReasons = map[string]string{rollouts.ReasonDeadlineExceeded: remedy.Deadline,
	rollouts.ReasonNotReady: v1alpha1.ReasonPodsUnavailable, v1alpha1.ReasonPaused: v1alpha1.ReasonClusterPaused}

// listMembers returns the clusters of the rollout with their classes and reasons. The reasons are completed from the
// reports of the agents.
func listMembers(in RolloutInput) []Member {
	installs := map[string]*v1alpha1.OperatorInstall{}
	for i := range in.Installs {
		installs[in.Installs[i].Spec.Cluster] = &in.Installs[i]
	}
	var members []Member
	for _, c := range classifyClusters(in) {
		m := Member{Cluster: c.Cluster, Wave: c.Wave, MovedTo: c.MovedTo, State: string(c.Class), Reason: c.Reason,
			Attention: c.Class == rollouts.ClassFailed || c.Class == rollouts.ClassDeferred || c.Reason != ""}
		if !c.Since.IsZero() {
			m.Since = &metav1.Time{Time: c.Since}
		}
		m.addAgentReport(installs[c.Cluster])
		m.Message = cmp.Or(c.Message, m.Message)
		members = append(members, m)
	}
	return members
}

// addAgentReport sets the reason, the time and the message from the agent's report. install is nil if there is no
// report. The agent's reason replaces only the reasons Stalled and NotReady, which say less.
func (m *Member) addAgentReport(install *v1alpha1.OperatorInstall) {
	if install == nil {
		return
	}
	l := readInstallStatus(install).summarize("", "")
	switch m.Reason {
	case rollouts.ReasonStalled, rollouts.ReasonNotReady:
		m.Reason = cmp.Or(l.Reason, classReasons[m.Reason])
		if m.Since == nil {
			m.Since = l.Since
		}
	default:
		m.Reason = cmp.Or(classReasons[m.Reason], m.Reason)
	}
	if m.State != string(rollouts.ClassSucceeded) {
		m.Message = l.Text
	}
}

// findFirstFailed returns the first failed cluster, or else the first cluster in progress. It returns "" if there
// is none.
func findFirstFailed(members []Member) string {
	for _, state := range []rollouts.Class{rollouts.ClassFailed, rollouts.ClassInProgress} {
		i := slices.IndexFunc(members, func(m Member) bool { return m.State == string(state) })
		if i >= 0 {
			return members[i].Cluster
		}
	}
	return ""
}

// listMemberLinks returns a link for each cluster of the rollout. Clusters that are done are Healthy. If the rollout is
// stopped, other clusters have no state.
func listMemberLinks(in RolloutInput, members []Member) []Link {
	states := map[rollouts.Class]State{rollouts.ClassFailed: Failed, rollouts.ClassDeferred: Waiting,
		rollouts.ClassInProgress: Progressing, rollouts.ClassPending: Progressing}
	clusters := indexClusters(in.Clusters)
	var links []Link
	for _, m := range members {
		state, isOpen := states[rollouts.Class(m.State)]
		if in.Rollout.IsStopped() {
			state = ""
		}
		l := Link{State: state, Reason: cmp.Or(m.Reason, v1alpha1.ReasonProgressing), Since: m.Since,
			Text: fmt.Sprintf("cluster %s (wave %s): %s", m.Cluster, m.Wave, m.State)}
		if !isOpen {
			l.State, l.Reason, l.Check = Healthy, "", "cluster "+m.Cluster
		} else if m.Message != "" {
			l.Text += ": " + m.Message
		}
		l.Links = listMovedLinks(in.Rollout, m.Cluster, m.Wave, m.MovedTo)
		if c := clusters[m.Cluster]; c != nil {
			if findStaleSince(c) != nil {
				l.stale = buildConnectionLink(c, readClusterStatus(c)).stale
			}
		}
		links = append(links, l)
	}
	return links
}

// listMovedLinks returns a link if the labels of a cluster select the wave to and the cluster belongs to the wave from.
// to is empty if the labels select no other wave. It returns nil for a rollout that has ended.
func listMovedLinks(r *v1alpha1.OperatorRollout, cluster, from, to string) []Link {
	if to == "" || r.Status.Phase.Ended() {
		return nil
	}
	return []Link{{Text: rollouts.MovedText("cluster "+cluster, from, to)}}
}

// buildInstallRolloutLink describes the rollout from the view of one cluster: the link has only the wave of this
// cluster, and a rollout that failed is not a failure of a cluster that it has admitted.
func buildInstallRolloutLink(in InstallInput) Link {
	r := in.Rollout
	if r == nil {
		return Link{Text: "there is no rollout of this operator"}
	}
	l := buildRolloutStateLink(r)
	l.about = cmp.Or(l.about, aboutRollingOut)
	if in.Install == nil {
		return l
	}
	if l.State == Failed && isAdmittedBy(in.Install, r) { // other clusters failed, or the failure is shown below
		l.State = Waiting
		text := "Show the rollout"
		if r.Status.Clusters.Failed > 0 {
			text = "Show the clusters that failed"
		}
		l.remedies = []remedy.Action{{Text: text, Command: fmt.Sprintf("%s rollout get %s -n %s",
			cmp.Or(in.Program, "bellwether"), r.Name, r.Namespace)}}
	}
	for i := range r.Status.Waves {
		if w := &r.Status.Waves[i]; w.Name == in.Install.Labels[v1alpha1.LabelWave] {
			l.Links = append(l.Links, buildWaveLink(in.Now, r, w))
		}
	}
	for _, m := range classifyInstall(in) {
		l.Links = append(l.Links, listMovedLinks(r, m.Cluster, m.Wave, m.MovedTo)...)
	}
	l.Links = append(l.Links, listHeldBackLinks(r, in.Cluster.Name)...)
	l.Links = append(l.Links, listPolicyLinks(r)...)
	l.Links = append(l.Links, listPaceLinks(r)...)
	return l
}

// isAdmittedBy reports whether the rollout admitted the install.
func isAdmittedBy(install *v1alpha1.OperatorInstall, r *v1alpha1.OperatorRollout) bool {
	return install.Spec.Admission != nil && install.Spec.Admission.RolloutUID == string(r.UID)
}

// findClassLink describes the class of the cluster in its rollout. It returns nil if the cluster is not admitted or
// not a member.
func findClassLink(in InstallInput) *Link {
	if in.Rollout == nil || in.Install == nil || in.Install.Spec.Admission == nil {
		return nil
	}
	members := classifyInstall(in)
	if len(members) == 0 {
		return nil
	}
	return buildClassLink(in, members[0])
}

// classifyInstall returns the cluster of an install with its class in the rollout. The result is empty if the cluster
// is not a member.
func classifyInstall(in InstallInput) []rollouts.Member {
	return classifyClusters(RolloutInput{Now: in.Now, Rollout: in.Rollout,
		Clusters: []v1alpha1.FleetCluster{*in.Cluster}, Installs: []v1alpha1.OperatorInstall{*in.Install}})
}

// buildClassLink describes the class of a cluster in its rollout. For a cluster in progress, it says when the cluster
// counts as failed. Other classes than Failed and InProgress have no state.
func buildClassLink(in InstallInput, m rollouts.Member) *Link {
	l := Link{Text: fmt.Sprintf("rollout %s counts the cluster as %s", in.Rollout.Name, m.Class)}
	switch {
	case m.Class == rollouts.ClassFailed && m.Reason == rollouts.ReasonDeadlineExceeded:
		l.State, l.Reason, l.Since = Failed, remedy.Deadline, &metav1.Time{Time: m.Since}
		l.Text = "cluster " + in.Cluster.Name + " was not updated within the deadline of its wave, which " +
			"passed at " + formatTime(m.Since)
		if c := conditions.Get(in.Install.Status.Conditions, v1alpha1.ConditionReady); c.Message != "" {
			l.Text += "; the agent reports: " + trimPeriod(c.Message)
		}
	case m.Class == rollouts.ClassFailed:
		l.State, l.Reason = Failed, cmp.Or(classReasons[m.Reason], v1alpha1.ReasonFailed)
	case m.Class == rollouts.ClassInProgress && (m.Until.IsZero() || findStaleSince(in.Cluster) != nil):
		// The deadline is not known, or can change when the cluster comes online.
		l.State, l.Reason = Progressing, v1alpha1.ReasonProgressing
	case m.Class == rollouts.ClassInProgress:
		l.State, l.Reason = Progressing, v1alpha1.ReasonProgressing
		limit := "deadline of the cluster"
		if m.Reason == rollouts.ReasonNotReady {
			limit = "time that the cluster may be not Ready"
		}
		l.next = []Next{{Text: "The " + limit + " passes, and the cluster counts as failed.",
			At: &metav1.Time{Time: m.Until}}}
	}
	return &l
}
