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
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// RolloutInput is what the explanation of a rollout is made of.
type RolloutInput struct {
	Now     time.Time
	Rollout *v1alpha1.OperatorRollout
	// Clusters is the whole fleet, Installs are those of the operator.
	Clusters []v1alpha1.FleetCluster
	Installs []v1alpha1.OperatorInstall
	Program  string
}

// Rollout explains an OperatorRollout.
func Rollout(in RolloutInput) Explanation {
	r := in.Rollout
	l, members := rolloutLink(in)
	names := remedy.Names{Operator: r.Spec.Operator.Name, Rollout: r.Name, HubNamespace: r.Namespace,
		Package: r.Spec.Release.Package, Namespace: r.Spec.Release.TargetNamespace(), Program: in.Program,
		Cluster: firstFailed(members)}
	chain := append([]Link{l}, memberLinks(in, members)...)
	e := conclude(Subject{Kind: "OperatorRollout", Namespace: r.Namespace, Name: r.Name}, chain, names, allRun(
		r.Status.Clusters.Succeeded, r.Spec.Release))
	e.Members = members
	return e
}

// allRun is the summary of a rollout that is done.
func allRun(clusters int32, release v1alpha1.Release) string {
	if release.AsInstalled {
		const pending = " as it was installed; nothing is pending."
		return phrase.Word(clusters, "The operator was taken over on the cluster"+pending,
			fmt.Sprintf("The operator was taken over on all %d clusters", clusters)+pending)
	}
	version := release.Version
	return phrase.Word(clusters, fmt.Sprintf("The cluster runs %s and is Ready; nothing is pending.", version),
		fmt.Sprintf("All %d clusters run %s and are Ready; nothing is pending.", clusters, version))
}

func reportedByRollout(r *v1alpha1.OperatorRollout) reported {
	return reported{object: "OperatorRollout " + r.Namespace + "/" + r.Name, generation: r.Generation,
		observed: r.Status.ObservedGeneration, conditions: r.Status.Conditions}
}

// rolloutLink is the rollout with its waves, and how each cluster counts.
func rolloutLink(in RolloutInput) (Link, []Member) {
	l := rolloutState(in.Rollout)
	for i := range in.Rollout.Status.Waves {
		if w := &in.Rollout.Status.Waves[i]; w.Total > 0 {
			l.Links = append(l.Links, waveLink(in.Now, in.Rollout, w))
		}
	}
	l.Links = append(l.Links, heldBackLinks(in.Rollout, "")...)
	l.Links = append(l.Links, policyLinks(in.Rollout)...)
	l.Links = append(l.Links, paceLinks(in.Rollout)...)
	return l, membersOf(in)
}

func rolloutState(r *v1alpha1.OperatorRollout) Link {
	re := reportedByRollout(r)
	phase := string(cmp.Or(r.Status.Phase, v1alpha1.RolloutPending))
	name := fmt.Sprintf("rollout %s %s is %s", r.Name, r.Spec.Release.Purpose(), phase)
	l := re.summary(name, "the rollout has succeeded")
	switch {
	case r.Spec.Paused && !r.Status.Phase.Ended():
		l = Link{State: Waiting, Reason: v1alpha1.ReasonPaused, Since: l.Since, stale: l.stale, Links: l.Links,
			Text: fmt.Sprintf("rollout %s is paused: %s", r.Name, cmp.Or(phrase.OneLine(r.Spec.PausedReason), "no "+
				"reason was given")),
			Evidence: []Evidence{{Object: re.object, Field: "spec.paused", Observed: "true"}}}
	case l.State != Healthy:
		l.Text = nameWithMessage(name, r.Status.Phase, cmp.Or(withoutStop(r.Status.Message), l.Text))
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
			Evidence: []Evidence{{Object: re.object, Field: "spec.paused", Observed: "true"}}})
	}
	if r.Spec.Blocked != "" {
		l.Links = append(l.Links, Link{State: Degraded, Reason: v1alpha1.ReasonVersionBlocked, about: aboutRollingOut,
			Text:     fmt.Sprintf("version %s is blocked: %s", r.Spec.Release.Version, phrase.OneLine(r.Spec.Blocked)),
			Evidence: []Evidence{{Object: re.object, Field: "spec.blocked", Observed: phrase.OneLine(r.Spec.Blocked)}}})
	}
	return l
}

// nameWithMessage continues the name of a rollout, which has its phase, with its message. A message that begins with
// the phase does not say it again.
func nameWithMessage(name string, phase v1alpha1.RolloutPhase, message string) string {
	begins := map[v1alpha1.RolloutPhase]string{v1alpha1.RolloutAborted: "aborted",
		v1alpha1.RolloutRolledBack: "rolled back", v1alpha1.RolloutSuperseded: "superseded"}[phase]
	rest, same := strings.CutPrefix(message, begins)
	if same && begins != "" && (rest == "" || strings.ContainsAny(rest[:1], ":,;")) {
		return name + rest
	}
	return name + ": " + message
}

func waveLink(now time.Time, r *v1alpha1.OperatorRollout, w *v1alpha1.WaveStatus) Link {
	l := Link{Text: fmt.Sprintf("wave %s is %s: %s %s", w.Name, shownPhase(r, w),
		phrase.Part(w.Succeeded, w.Total-w.Removed, "cluster"), rollouts.FinishedText(r.Spec.Release)),
		Evidence: []Evidence{{Object: reportedByRollout(r).object, Field: "status.waves[" + w.Name + "]",
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
		l.State, l.Reason = Waiting, reasonOfVerifying(w)
		l.next = verifyingNext(now, r, w)
	default:
		l.State, l.Reason = Progressing, v1alpha1.ReasonProgressing
	}
	for _, g := range w.Gates {
		l.Links = append(l.Links, gateLink(r, w, g))
	}
	return l
}

// shownPhase is what a person reads of a wave, as part of a sentence.
func shownPhase(r *v1alpha1.OperatorRollout, w *v1alpha1.WaveStatus) string {
	shown := rollouts.ShownPhase(r, w)
	if shown != string(w.Phase) {
		return strings.ToLower(shown)
	}
	return shown
}

// reasonOfVerifying is what a wave waits for whose clusters are all updated, or gone.
func reasonOfVerifying(w *v1alpha1.WaveStatus) string {
	for _, g := range w.Gates {
		if g.Name == v1alpha1.GateObservation && !g.IsPassed() {
			return v1alpha1.ReasonNotObserved
		}
	}
	return v1alpha1.ReasonVerifying
}

func gateLink(r *v1alpha1.OperatorRollout, w *v1alpha1.WaveStatus, g v1alpha1.GateStatus) Link {
	l := Link{Text: fmt.Sprintf("gate %s: %s", g.Name, strings.ToLower(string(g.Verdict))),
		Evidence: []Evidence{{Object: reportedByRollout(r).object, Field: "gate " + g.Name,
			Observed: phrase.OneLine(g.Evidence),
			Time:     g.DecidedAt}}}
	if g.Evidence != "" {
		l.Text += ": " + phrase.OneLine(g.Evidence)
	}
	l.Evidence = append(l.Evidence, measurementEvidence(r, g)...)
	measures := isMeasuredGate(r, w.Name, g.Name)
	switch {
	case g.IsPassed():
		l.State, l.Check = Healthy, "gate "+g.Name
	case g.Verdict == v1alpha1.GateFailed:
		l.State, l.Reason = Failed, v1alpha1.ReasonGateFailed
	case g.Name == v1alpha1.GateObservation:
		l.State, l.Reason, l.Since = Waiting, v1alpha1.ReasonNotObserved, g.WaitingSince
	case slices.Contains(rollouts.AwaitingApproval(r), rollouts.GateRef{Wave: w.Name, Gate: g.Name}):
		l.State, l.Reason, l.Since = Waiting, v1alpha1.ReasonGated, g.WaitingSince
	case w.Phase == v1alpha1.WaveVerifying && measures && reasonOfVerifying(w) == v1alpha1.ReasonNotObserved:
		// There is nothing that the gate could judge.
	case w.Phase == v1alpha1.WaveVerifying && measures:
		l.State, l.Reason, l.Since = Waiting, v1alpha1.ReasonVerifying, g.WaitingSince
	}
	return l
}

// classify asks the rollout's own rules how each cluster counts.
func classify(in RolloutInput) []rollouts.Member {
	input := rollouts.Input{Now: in.Now, Rollout: in.Rollout}
	for i := range in.Clusters {
		input.Clusters = append(input.Clusters, rollouts.ObserveCluster(&in.Clusters[i]))
	}
	for i := range in.Installs {
		input.Installs = append(input.Installs, rollouts.ObserveInstall(&in.Installs[i]))
	}
	members, err := rollouts.Classify(input)
	if err != nil { // the rollout says so itself
		return nil
	}
	return members
}

// classReasons are the reasons of the table for those of a member's class.
var classReasons = map[string]string{rollouts.ReasonDeadlineExceeded: remedy.Deadline,
	rollouts.ReasonNotReady: v1alpha1.ReasonPodsUnavailable, v1alpha1.ReasonPaused: v1alpha1.ReasonClusterPaused}

func membersOf(in RolloutInput) []Member {
	installs := map[string]*v1alpha1.OperatorInstall{}
	for i := range in.Installs {
		installs[in.Installs[i].Spec.Cluster] = &in.Installs[i]
	}
	var members []Member
	for _, c := range classify(in) {
		m := Member{Cluster: c.Cluster, Wave: c.Wave, MovedTo: c.MovedTo, State: string(c.Class), Reason: c.Reason,
			Attention: c.Class == rollouts.ClassFailed || c.Class == rollouts.ClassDeferred || c.Reason != ""}
		if !c.Since.IsZero() {
			m.Since = &metav1.Time{Time: c.Since}
		}
		m.explain(installs[c.Cluster])
		m.Message = cmp.Or(c.Message, m.Message)
		members = append(members, m)
	}
	return members
}

// explain fills in what the agent reports as the reason.
func (m *Member) explain(install *v1alpha1.OperatorInstall) {
	if install == nil {
		return
	}
	l := reportedByInstall(install).summary("", "")
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

func firstFailed(members []Member) string {
	for _, state := range []rollouts.Class{rollouts.ClassFailed, rollouts.ClassInProgress} {
		i := slices.IndexFunc(members, func(m Member) bool { return m.State == string(state) })
		if i >= 0 {
			return members[i].Cluster
		}
	}
	return ""
}

// memberLinks are the clusters that are not as the rollout wants them.
func memberLinks(in RolloutInput, members []Member) []Link {
	states := map[rollouts.Class]State{rollouts.ClassFailed: Failed, rollouts.ClassDeferred: Waiting,
		rollouts.ClassInProgress: Progressing, rollouts.ClassPending: Progressing}
	clusters := clustersByName(in.Clusters)
	var links []Link
	for _, m := range members {
		state, open := states[rollouts.Class(m.State)]
		if in.Rollout.IsStopped() {
			state = ""
		}
		l := Link{State: state, Reason: cmp.Or(m.Reason, v1alpha1.ReasonProgressing), Since: m.Since,
			Text: fmt.Sprintf("cluster %s (wave %s): %s", m.Cluster, m.Wave, m.State)}
		if !open {
			l.State, l.Reason, l.Check = Healthy, "", "cluster "+m.Cluster
		} else if m.Message != "" {
			l.Text += ": " + m.Message
		}
		l.Links = movedLinks(in.Rollout, m.Cluster, m.Wave, m.MovedTo)
		if c := clusters[m.Cluster]; c != nil {
			if at := staleSince(c); at != nil {
				l.stale = connectionLink(c, reportedByCluster(c)).stale
			}
		}
		links = append(links, l)
	}
	return links
}

// movedLinks say that the labels of a cluster select another wave than its own; to is empty if they do not.
func movedLinks(r *v1alpha1.OperatorRollout, cluster, from, to string) []Link {
	if to == "" || r.Status.Phase.Ended() {
		return nil
	}
	return []Link{{Text: rollouts.MovedText("cluster "+cluster, from, to)}}
}

// rolloutOfInstall is the rollout as far as it concerns one cluster.
func rolloutOfInstall(in InstallInput) Link {
	r := in.Rollout
	if r == nil {
		return Link{Text: "there is no rollout of this operator"}
	}
	l := rolloutState(r)
	l.about = cmp.Or(l.about, aboutRollingOut)
	if in.Install == nil {
		return l
	}
	if l.State == Failed && isAdmittedBy(in.Install, r) { // because of other clusters, or of what is shown below
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
			l.Links = append(l.Links, waveLink(in.Now, r, w))
		}
	}
	for _, m := range classifyOne(in) {
		l.Links = append(l.Links, movedLinks(r, m.Cluster, m.Wave, m.MovedTo)...)
	}
	l.Links = append(l.Links, heldBackLinks(r, in.Cluster.Name)...)
	l.Links = append(l.Links, policyLinks(r)...)
	l.Links = append(l.Links, paceLinks(r)...)
	return l
}

func isAdmittedBy(install *v1alpha1.OperatorInstall, r *v1alpha1.OperatorRollout) bool {
	return install.Spec.Admission != nil && install.Spec.Admission.RolloutUID == string(r.UID)
}

// classOf says how the cluster counts in its rollout; nil where the rollout did
// not admit it.
func classOf(in InstallInput) *Link {
	if in.Rollout == nil || in.Install == nil || in.Install.Spec.Admission == nil {
		return nil
	}
	members := classifyOne(in)
	if len(members) == 0 {
		return nil
	}
	return classLink(in, members[0])
}

// classifyOne is how the cluster of an install counts in its rollout; empty where it is not a member.
func classifyOne(in InstallInput) []rollouts.Member {
	return classify(RolloutInput{Now: in.Now, Rollout: in.Rollout,
		Clusters: []v1alpha1.FleetCluster{*in.Cluster}, Installs: []v1alpha1.OperatorInstall{*in.Install}})
}

func classLink(in InstallInput, m rollouts.Member) *Link {
	l := Link{Text: fmt.Sprintf("rollout %s counts the cluster as %s", in.Rollout.Name, m.Class)}
	switch {
	case m.Class == rollouts.ClassFailed && m.Reason == rollouts.ReasonDeadlineExceeded:
		l.State, l.Reason, l.Since = Failed, remedy.Deadline, &metav1.Time{Time: m.Since}
		l.Text = "cluster " + in.Cluster.Name + " was not updated within the deadline of its wave, which " +
			"passed at " + clock(m.Since)
		if c := conditions.Get(in.Install.Status.Conditions, v1alpha1.ConditionReady); c.Message != "" {
			l.Text += "; the agent reports: " + withoutStop(c.Message)
		}
	case m.Class == rollouts.ClassFailed:
		l.State, l.Reason = Failed, cmp.Or(classReasons[m.Reason], v1alpha1.ReasonFailed)
	case m.Class == rollouts.ClassInProgress && (m.Until.IsZero() || staleSince(in.Cluster) != nil):
		l.State, l.Reason = Progressing, v1alpha1.ReasonProgressing
	case m.Class == rollouts.ClassInProgress:
		l.State, l.Reason = Progressing, v1alpha1.ReasonProgressing
		what := "deadline of the cluster"
		if m.Reason == rollouts.ReasonNotReady {
			what = "time that the cluster may be not Ready"
		}
		l.next = []Next{{Text: "The " + what + " passes, and the cluster counts as failed.",
			At: &metav1.Time{Time: m.Until}}}
	}
	return &l
}
