// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fleet"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/operator"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/rollout"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/explain/remedy"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// WhyInput is what the explanation of one operator on one cluster is made of.
// All but Cluster and Operator may be nil.
type WhyInput struct {
	Now      time.Time
	Cluster  *v1alpha1.FleetCluster
	Operator *v1alpha1.ManagedOperator
	// Rollout is the one that the install belongs to, or else the newest.
	Rollout *v1alpha1.OperatorRollout
	Install *v1alpha1.OperatorInstall
	// Downstream is what was seen on the cluster itself.
	Downstream *Downstream
}

// node is a link of the causal chain.
type node struct {
	tone     term.Tone
	text     string
	children []node
}

// verdict is the explanation in short: the reason is the key of the remedy.
type verdict struct {
	tone    term.Tone
	reason  string
	message string
	// since is zero where the conditions do not tell since when.
	since metav1.Time
}

// Why is the causal chain from the intention to the pod, and what to do.
func Why(in WhyInput, s term.Style) string {
	v := judge(in)
	title := fmt.Sprintf("%s on %s: %s", in.Operator.Name, in.Cluster.Name, v.reason)
	if !v.since.IsZero() {
		title += " for " + term.Age(in.Now, v.since)
	}
	var out strings.Builder
	out.WriteString(s.Paint(v.tone, term.Mark(v.tone)+" "+title) + "\n")
	chain := []node{operatorNode(in), clusterNode(in), rolloutNode(in), admissionNode(in), installNode(in)}
	grow(&out, chain, "", s)
	if v.tone == term.Good {
		out.WriteString("\nAll is as it should be.\n")
		return out.String()
	}
	if in.Downstream != nil {
		if end := deepest(chain[len(chain)-1:]); end != "" {
			writeSection(&out, s, "Where it stops", []string{end})
		}
	}
	writeAdvice(&out, in, v, s)
	return out.String()
}

// deepest is the text of the bad node that is furthest down the chain: the
// cause of those above it.
func deepest(nodes []node) string {
	text := ""
	for _, n := range nodes {
		if n.tone == term.Bad {
			text = n.text
		}
		if below := deepest(n.children); below != "" {
			text = below
		}
	}
	return text
}

// grow draws the branches of a tree behind a prefix.
func grow(out *strings.Builder, nodes []node, prefix string, s term.Style) {
	for i, n := range nodes {
		fork, trunk := "├─ ", "│  "
		if i == len(nodes)-1 {
			fork, trunk = "└─ ", "   "
		}
		stem := "  "
		if len(n.children) > 0 {
			stem = "│ "
		}
		lines := []string{n.text}
		if room := s.Width - runewidth.StringWidth(prefix+fork+stem); s.Width > 0 {
			lines = term.Wrap(n.text, max(room, term.MinWrapped))
		}
		for j, line := range lines {
			if j == 0 {
				out.WriteString(prefix + fork + s.Paint(n.tone, term.Mark(n.tone)+" "+line) + "\n")
				continue
			}
			out.WriteString(prefix + trunk + stem + s.Paint(n.tone, line) + "\n")
		}
		grow(out, n.children, prefix+trunk, s)
	}
}

// judge finds the first link that does not hold, in the order of the chain.
func judge(in WhyInput) verdict {
	ready := term.Condition(in.Operator.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case in.Install == nil && !selects(in.Operator, in.Cluster):
		return verdict{term.Warn, rollout.ReasonNotSelected, "", metav1.Time{}}
	case in.Install == nil && term.Stalled(in.Operator.Status.Conditions):
		c := term.Condition(in.Operator.Status.Conditions, v1alpha1.ConditionStalled)
		return verdict{term.Bad, c.Reason, c.Message, c.LastTransitionTime}
	case !term.Online(in.Cluster):
		c := term.Condition(in.Cluster.Status.Conditions, v1alpha1.ConditionOnline)
		return verdict{term.Bad, cmp.Or(c.Reason, v1alpha1.ReasonNeverJoined), c.Message, c.LastTransitionTime}
	case in.Cluster.Spec.Paused:
		return verdict{term.Warn, v1alpha1.ReasonPaused, "the cluster is paused", metav1.Time{}}
	case in.Install == nil:
		return verdict{term.Warn, cmp.Or(ready.Reason, v1alpha1.ReasonWaiting), ready.Message, metav1.Time{}}
	case waitsForRollout(in):
		return rolloutVerdict(in)
	case late(in):
		return verdict{term.Bad, rollout.ReasonDeadline, term.Headline(in.Install.Status.Conditions),
			in.Install.Spec.Admission.AdmittedAt}
	default:
		return installVerdict(in.Install)
	}
}

// late is true for a cluster that fails by its deadline and by nothing else.
func late(in WhyInput) bool {
	if in.Rollout == nil {
		return false
	}
	members, err := rollouts.Classify(rollouts.Input{
		Now: in.Now, Rollout: in.Rollout, Clusters: []rollouts.Cluster{rollouts.ObserveCluster(in.Cluster)},
		Installs: []rollouts.Install{rollouts.ObserveInstall(in.Install)},
	})
	return err == nil && slices.ContainsFunc(members, func(m rollouts.Member) bool {
		return m.Class == rollouts.ClassFailed && m.Reason == rollouts.ReasonDeadlineExceeded
	})
}

func selects(o *v1alpha1.ManagedOperator, c *v1alpha1.FleetCluster) bool {
	selector, err := metav1.LabelSelectorAsSelector(&o.Spec.ClusterSelector)
	return err == nil && selector.Matches(labels.Set(c.Labels))
}

// waitsForRollout is true while the rollout has not admitted the cluster.
func waitsForRollout(in WhyInput) bool {
	return in.Rollout != nil && (in.Install.Spec.Admission == nil ||
		in.Install.Spec.Admission.RolloutUID != string(in.Rollout.UID)) &&
		in.Install.Status.SucceededHash != in.Rollout.Spec.Release.Hash()
}

func rolloutVerdict(in WhyInput) verdict {
	c := term.Condition(in.Rollout.Status.Conditions, v1alpha1.ConditionReady)
	v := verdict{term.Warn, cmp.Or(c.Reason, v1alpha1.ReasonNotAdmitted), in.Rollout.Status.Message, metav1.Time{}}
	if s := term.Condition(in.Rollout.Status.Conditions, v1alpha1.ConditionStalled); s.Status == metav1.ConditionTrue {
		v.tone, v.since = term.Bad, s.LastTransitionTime
	}
	return v
}

func installVerdict(in *v1alpha1.OperatorInstall) verdict {
	ready := term.Condition(in.Status.Conditions, v1alpha1.ConditionReady)
	v := verdict{term.Warn, cmp.Or(ready.Reason, v1alpha1.ReasonWaiting), ready.Message, metav1.Time{}}
	switch {
	case term.Stalled(in.Status.Conditions):
		c := term.Condition(in.Status.Conditions, v1alpha1.ConditionStalled)
		v = verdict{term.Bad, c.Reason, c.Message, c.LastTransitionTime}
	case in.Status.ObservedGeneration < in.Generation:
		v = verdict{term.Warn, v1alpha1.ReasonWaiting, "the agent has not seen the admission yet", metav1.Time{}}
	case ready.Status == metav1.ConditionTrue:
		v.tone, v.since = term.Good, ready.LastTransitionTime
	}
	return v
}

func operatorNode(in WhyInput) node {
	o := in.Operator
	state := operator.OperatorState(o)
	n := node{state.Tone, fmt.Sprintf("operator %s/%s wants %s %s", o.Namespace, o.Name, o.Spec.Package,
		operator.TargetOf(o)),
		nil}
	if state.Tone != term.Good && saysMoreThanRollout(in) {
		n.text += fmt.Sprintf(" (%s): %s", state.Text, term.Headline(o.Status.Conditions))
	} else {
		n.tone = term.Good
	}
	if !selects(o, in.Cluster) {
		n.children = append(n.children, node{term.Warn, fmt.Sprintf("its cluster selector %s does not match the labels %s",
			metav1.FormatLabelSelector(&o.Spec.ClusterSelector), term.OrDash(labels.FormatLabels(in.Cluster.Labels))),
			nil})
	}
	return n
}

// saysMoreThanRollout is false where the operator's state only repeats that of
// its rollout, which has a node of its own.
func saysMoreThanRollout(in WhyInput) bool {
	if in.Rollout == nil {
		return true
	}
	reason := term.Condition(in.Operator.Status.Conditions, v1alpha1.ConditionReady).Reason
	return reason != term.Condition(in.Rollout.Status.Conditions, v1alpha1.ConditionReady).Reason &&
		reason != string(in.Rollout.Status.Phase) &&
		reason != v1alpha1.ReasonProgressing
}

func clusterNode(in WhyInput) node {
	c := in.Cluster
	on := term.Condition(c.Status.Conditions, v1alpha1.ConditionOnline)
	n := node{term.Good, fmt.Sprintf("cluster %s is online: Kubernetes %s, OLM %s", c.Name,
		term.OrDash(c.Status.Versions.Kubernetes), fleet.OlmCell(c).Text), nil}
	if on.Status != metav1.ConditionTrue {
		n.tone, n.text = term.Bad, fmt.Sprintf("cluster %s is offline (%s): %s", c.Name,
			cmp.Or(on.Reason, v1alpha1.ReasonNeverJoined), phrase.OneLine(on.Message))
	}
	if c.Spec.Paused {
		n.children = append(n.children, node{term.Warn, "it is paused: rollouts pass it over", nil})
	}
	if olm := term.Condition(c.Status.Conditions, v1alpha1.ConditionOLMAvailable); olm.Status == metav1.ConditionFalse {
		n.children = append(n.children, node{term.Bad, "OLM is missing: " + phrase.OneLine(olm.Message), nil})
	}
	return n
}

func rolloutNode(in WhyInput) node {
	r := in.Rollout
	if r == nil {
		return node{term.Warn, "there is no rollout", nil}
	}
	n := node{term.Good, fmt.Sprintf("rollout %s to %s is %s", r.Name, r.Spec.Release.Version, term.PhaseOf(r)), nil}
	switch r.Status.Phase {
	case v1alpha1.RolloutHalted, v1alpha1.RolloutAborted:
		n.tone = term.Warn
		if in.Install == nil || waitsForRollout(in) {
			n.tone = term.Bad
		}
	case v1alpha1.RolloutPaused, v1alpha1.RolloutPending, "":
		n.tone = term.Warn
	default:
	}
	if n.tone != term.Good {
		n.text += ": " + phrase.OneLine(r.Status.Message)
	}
	if in.Install == nil {
		return n
	}
	wave := in.Install.Labels[v1alpha1.LabelWave]
	for i := range r.Status.Waves {
		if w := &r.Status.Waves[i]; w.Name == wave {
			n.children = append(n.children, waveNode(in, w))
		}
	}
	return n
}

func waveNode(in WhyInput, w *v1alpha1.WaveStatus) node {
	n := node{term.Good, fmt.Sprintf("wave %s is %s, %s updated", w.Name, w.Phase,
		term.Fraction(w.Succeeded, w.Total-w.Removed)),
		nil}
	if w.Phase == v1alpha1.WaveWaiting || w.Phase == v1alpha1.WaveGated {
		n.tone = term.Warn
	}
	if w.Phase == v1alpha1.WaveWaiting && in.Rollout.Status.CurrentWave != "" {
		n.text += fmt.Sprintf("; wave %s comes first", in.Rollout.Status.CurrentWave)
	}
	tones := map[v1alpha1.GateVerdict]term.Tone{v1alpha1.GatePassed: term.Good, v1alpha1.GateFailed: term.Bad,
		v1alpha1.GateWaiting: term.Warn}
	for _, g := range w.Gates {
		n.children = append(n.children, node{tones[g.Verdict],
			fmt.Sprintf("gate %s %s: %s", g.Name, strings.ToLower(string(g.Verdict)), phrase.OneLine(g.Evidence)), nil})
	}
	return n
}

func admissionNode(in WhyInput) node {
	switch {
	case in.Install == nil:
		return node{term.Warn, "nothing was asked of this cluster: it has no OperatorInstall", nil}
	case in.Install.Spec.Admission == nil:
		return node{term.Warn, "not admitted yet", nil}
	}
	a := in.Install.Spec.Admission
	n := node{term.Good, fmt.Sprintf("admitted to %s %s ago by %s, wave %s", a.Release.Version,
		term.Age(in.Now, a.AdmittedAt),
		a.Rollout, a.Wave), nil}
	done := in.Install.Status.SucceededHash == a.Hash
	if in.Rollout != nil && string(in.Rollout.UID) == a.RolloutUID && !done {
		if d := rollout.DeadlineOf(in.Rollout, a.Wave); d > 0 {
			left := a.AdmittedAt.Add(d).Sub(in.Now)
			if left > 0 {
				n.text += fmt.Sprintf("; %s left of its deadline of %s", term.Span(left), term.Span(d))
			} else {
				n.tone, n.text = term.Bad, n.text+fmt.Sprintf("; its deadline of %s passed %s ago", term.Span(d),
					term.Span(-left))
			}
		}
	}
	return n
}

// stages are the agent's conditions in the order in which they come true.
var stages = []string{v1alpha1.ConditionCatalogServed, v1alpha1.ConditionResolved, v1alpha1.ConditionPlanApproved,
	v1alpha1.ConditionInstalled}

func installNode(in WhyInput) node {
	if in.Install == nil {
		return node{term.Dim, "install: nothing to do", nil}
	}
	v := installVerdict(in.Install)
	n := node{v.tone, "install: " + installedText(in.Install), nil}
	if v.tone != term.Good {
		n.text += fmt.Sprintf(" (%s): %s", v.reason, phrase.OneLine(v.message))
	}
	for _, stage := range stages {
		n.children = append(n.children, stageNode(in, stage))
	}
	if in.Downstream != nil {
		n.children = append(n.children, in.Downstream.nodes(in.Now)...)
	}
	return n
}

const succeededPhase = "Succeeded"

func installedText(in *v1alpha1.OperatorInstall) string {
	if in.Status.Installed == nil {
		return "no version runs yet"
	}
	text := hub.InstalledVersion(in) + " runs"
	if phase := in.Status.OLMDetails().CSVPhase; phase != "" && phase != succeededPhase {
		text = fmt.Sprintf("CSV %s is %s", in.Status.Installed.Bundle, phase)
	}
	if len(in.Status.Path) > 0 {
		text += "; still to come: " + strings.Join(in.Status.Path, ", ")
	}
	return text
}

func stageNode(in WhyInput, stage string) node {
	c := term.Condition(in.Install.Status.Conditions, stage)
	o := in.Install.Status.OLMDetails()
	object := map[string]string{
		v1alpha1.ConditionCatalogServed: o.CatalogSource, v1alpha1.ConditionResolved: o.Subscription,
		v1alpha1.ConditionPlanApproved: o.InstallPlan,
	}[stage]
	text := stage
	if object != "" {
		text += " (" + object + ")"
	}
	switch c.Status {
	case metav1.ConditionTrue:
		return node{term.Good, text, nil}
	case metav1.ConditionUnknown:
		return node{term.Dim, text + ": not reported yet", nil}
	default:
		tone := term.Warn
		if s := term.Condition(in.Install.Status.Conditions,
			v1alpha1.ConditionStalled); s.Status == metav1.ConditionTrue &&
			s.Reason == c.Reason {
			tone = term.Bad
		}
		return node{tone, fmt.Sprintf("%s: %s: %s", text, c.Reason, phrase.OneLine(c.Message)), nil}
	}
}

// writeAdvice writes what the table of remedies says on a reason.
func writeAdvice(out *strings.Builder, in WhyInput, v verdict, s term.Style) {
	r := remedyFor(v.reason)
	means := []string{r.Means}
	if message := phrase.OneLine(v.message); message != "" {
		means = append(means, "It says: "+message)
	}
	writeSection(out, s, "What it means", means)
	names := remedy.Names{Cluster: in.Cluster.Name, Operator: in.Operator.Name, Program: s.ProgramName()}
	if in.Rollout != nil {
		names.Rollout = in.Rollout.Name
	}
	do := make([]string, 0, len(r.Do)+1)
	for _, action := range r.For("", names) {
		do = append(do, "- "+action.String())
	}
	if r.Next != "" {
		do = append(do, r.NextFor(names))
	}
	writeSection(out, s, "What to do", do)
}

func writeSection(out *strings.Builder, s term.Style, title string, texts []string) {
	fmt.Fprintf(out, "\n%s\n", s.Paint(term.Strong, title))
	for _, text := range texts {
		hanging := "\n  "
		if strings.HasPrefix(text, "- ") {
			hanging = "\n    "
		}
		room := 0
		if s.Width > 0 {
			room = max(s.Width-len(hanging)+1, term.MinWrapped)
		}
		out.WriteString("  " + strings.Join(term.Wrap(text, room), hanging) + "\n")
	}
}

func remedyFor(reason string) remedy.Remedy {
	r, known := remedy.For(reason)
	if !known {
		r, _ = remedy.For(remedy.UnknownReason)
	}
	return r
}
