// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/engines/adoption"
	"github.com/bellwether-dev/bellwether/phrase"
)

// adoptText shows the ManagedOperator that is to be, and what it comes to on each cluster.
func adoptText(p *proposal, s term.Style) string {
	var out strings.Builder
	o := p.operator
	title := "with ManagedOperator %s/%s, which is there already"
	if p.isNew {
		title = "with a new ManagedOperator %s/%s"
	}
	out.WriteString(s.Lines(term.Strong, fmt.Sprintf("Take over package %s "+title, o.Spec.Package, o.Namespace,
		o.Name)) + "\n")
	facts := &term.Table{Wrap: true}
	facts.Add(term.PlainCells("Catalog:", fmt.Sprintf("%s, channel %s%s", o.Spec.Catalog.Name, channelOf(o),
		p.followers()))...)
	facts.Add(term.PlainCells("Clusters:", selectorText(&o.Spec.ClusterSelector))...)
	facts.Add(term.PlainCells("Installed into:", fmt.Sprintf("namespace %s, install mode %s",
		cmp.Or(o.Spec.Install.Namespace, o.Spec.Package),
		cmp.Or(o.Spec.Install.Mode, v1alpha1.InstallAllNamespaces)))...)
	facts.Add(term.PlainCells("Settings:", configText(o.Spec.Install.Config))...)
	if len(o.Spec.Adopt.Accept) > 0 {
		facts.Add(term.PlainCells("Accepted:", acceptText(o.Spec.Adopt.Accept))...)
	}
	facts.Add(term.PlainCells("After that:", "a rollout to "+p.afterText())...)
	out.WriteString(facts.Render(s) + "\n")
	out.WriteString(clusterTable(p, s).Render(s))
	writeRefusals(&out, p, s)
	for i, note := range p.notes() {
		if i == 0 {
			out.WriteByte('\n')
		}
		out.WriteString(s.Lines(term.Warn, "! "+note))
	}
	return out.String()
}

func (p *proposal) followers() string {
	if p.found == 0 || p.sameChannel == p.found {
		return ""
	}
	return fmt.Sprintf(" (%d of %s %s it)", p.sameChannel, phrase.Count(p.found, "Subscription"),
		phrase.Word(p.sameChannel, "follows", "follow"))
}

func configText(c *v1alpha1.OperatorConfig) string {
	var fields []string
	if c != nil {
		for name, isSet := range map[string]bool{"env": len(c.Env) > 0, "resources": c.Resources != nil,
			"nodeSelector": len(c.NodeSelector) > 0, "tolerations": len(c.Tolerations) > 0} {
			if isSet {
				fields = append(fields, name)
			}
		}
	}
	if len(fields) == 0 {
		return "none"
	}
	slices.Sort(fields)
	return strings.Join(fields, ", ") + ", as in the Subscriptions"
}

func acceptText(accept []v1alpha1.AcceptedFinding) string {
	var out []string
	for _, reason := range accept {
		out = append(out, string(reason))
	}
	return strings.Join(out, ", ")
}

// afterText is what the operator is brought to once it was taken over.
func (p *proposal) afterText() string {
	version, head := p.operator.Spec.Version, "the head of the channel"
	if p.head != "" {
		head = fmt.Sprintf("version %s, %s", p.head, head)
	}
	switch _, err := semver.Parse(version); {
	case version != "" && err == nil:
		return "version " + version
	case version != "":
		return "the highest version in the range " + version
	case p.isNew:
		return head + "; set --version to choose another version"
	}
	return head
}

func clusterTable(p *proposal, s term.Style) *term.Table {
	t := &term.Table{Header: []string{"CLUSTER", "VERSION", "CHANNEL", "APPROVAL", "RESULT"}, Wrap: true}
	for i, c := range p.clusters {
		if i == term.MaxRows && !s.Wide {
			t.Add(term.Dim.Cell(fmt.Sprintf("and %d more", len(p.clusters)-i)))
			break
		}
		version, channel, approval := "-", "-", "-"
		if c.found != nil {
			version = term.OrDash(adoption.VersionOf(c.found))
			if sub := c.found.Subscription; sub != nil {
				channel, approval = term.OrDash(sub.Channel), term.OrDash(sub.Approval)
			}
		}
		t.Add(term.Cell{Text: c.name}, term.Cell{Text: version}, term.Cell{Text: channel}, term.Cell{Text: approval},
			c.result())
	}
	return t
}

// result is what becomes of the cluster.
func (c adoptedCluster) result() term.Cell {
	switch {
	case !c.reported:
		return term.Warn.Cell("not known: its agent has not reported operators")
	case c.found == nil && c.refusal == "":
		return term.Dim.Cell("not installed: nothing to take over")
	case c.managed:
		return term.Good.Cell("managed already")
	case c.refusal != "":
		return term.Bad.Cell("not permitted")
	case len(c.blocking) == 0:
		return term.Good.Cell("taken over")
	case c.blocking[0].Class == adoption.Unknown:
		return term.Warn.Cell("not known yet: " + c.blocking[0].Reason)
	}
	var reasons []string
	for _, f := range c.blocking {
		reasons = append(reasons, f.Reason)
	}
	return term.Bad.Cell("refused: " + strings.Join(slices.Compact(reasons), ", "))
}

// writeRefusals says why clusters are refused and what can be done, each reason once.
func writeRefusals(out *strings.Builder, p *proposal, s term.Style) {
	type refusal struct {
		adoption.Finding
		clusters []string
	}
	var all []*refusal
	for _, c := range p.clusters {
		for _, f := range c.obstacles() {
			i := slices.IndexFunc(all, func(r *refusal) bool { return r.Reason == f.Reason && r.Message == f.Message })
			if i < 0 {
				all = append(all, &refusal{Finding: f})
				i = len(all) - 1
			}
			all[i].clusters = append(all[i].clusters, c.name)
		}
	}
	if len(all) == 0 {
		return
	}
	out.WriteString("\n" + s.Paint(term.Strong, "Not taken over") + "\n")
	for _, r := range all {
		tone := term.Bad
		if r.Class == adoption.Unknown {
			tone = term.Warn
		}
		term.WriteText(out, s, "  ", fmt.Sprintf("%s %s: %s", term.Mark(tone), r.Reason,
			phrase.First(r.clusters, maxShown)))
		term.WriteText(out, s, "    ", r.Message)
		for _, choice := range r.Choices {
			term.WriteText(out, s, "    ", "- "+withFlag(r.Finding, choice))
		}
	}
}

// obstacles are why a cluster is not taken over.
func (c adoptedCluster) obstacles() []adoption.Finding {
	if c.refusal == "" || c.managed {
		return c.blocking
	}
	return []adoption.Finding{{Class: adoption.Conflict, Reason: v1alpha1.ReasonAccessNotPermitted,
		Message: c.refusal + ".", Choices: []string{"Ask the platform team for a FleetAccess.",
			"Leave the cluster out of the selection."}}}
}

// withFlag adds the flag of this command to the choice to accept a finding.
func withFlag(f adoption.Finding, choice string) string {
	if !f.IsAcceptable() {
		return choice
	}
	accepts := "Add " + f.Reason + " to spec.adopt.accept of the ManagedOperator"
	return strings.Replace(choice, accepts, accepts+" (--accept "+f.Reason+")", 1)
}

// maxShown is how many clusters are named in a line.
const maxShown = 10

// notes are what a person should know before going on.
func (p *proposal) notes() []string {
	var notes []string
	add := func(text string, meets func(adoptedCluster) bool) {
		if clusters := p.names(meets); len(clusters) > 0 {
			notes = append(notes, fmt.Sprintf(text, phrase.First(clusters, maxShown)))
		}
	}
	isPermitted := func(c adoptedCluster) bool { return c.refusal == "" || c.managed }
	isUnknown := func(c adoptedCluster) bool {
		return isPermitted(c) && len(c.blocking) > 0 && c.blocking[0].Class == adoption.Unknown
	}
	add("The rollout stops when it comes to a cluster that is refused, unless its waves permit failures: %s.",
		func(c adoptedCluster) bool { return isPermitted(c) && len(c.blocking) > 0 && !isUnknown(c) })
	add("What is not known yet is judged again when the rollout comes to it: %s.", isUnknown)
	add("No rollout changes anything on a cluster that no FleetAccess permits: %s.",
		func(c adoptedCluster) bool { return !isPermitted(c) })
	add("These follow another channel now, and the one of the ManagedOperator once they are taken over: %s.",
		func(c adoptedCluster) bool { return c.isTakenOver() && c.changesChannel(p.operator.Spec.Channel) })
	add("The rollout after the take-over also installs the operator where it is not installed now: %s.",
		func(c adoptedCluster) bool { return c.reported && c.found == nil && c.refusal == "" })
	add("What runs on %s is not known.", func(c adoptedCluster) bool { return !c.reported })
	if len(p.notRead) > 0 {
		notes = append(notes, "Catalogs that could not be read: "+phrase.First(p.notRead, 3)+".")
	}
	return notes
}

// changesChannel tells whether the Subscription follows another channel than the ManagedOperator names.
func (c adoptedCluster) changesChannel(channel string) bool {
	return channel != "" && c.found.Subscription != nil && c.found.Subscription.Channel != channel
}

func (p *proposal) names(meets func(adoptedCluster) bool) []string {
	var out []string
	for _, c := range p.clusters {
		if meets(c) {
			out = append(out, c.name)
		}
	}
	return out
}

// adoptEffect is what a confirmation is for.
func adoptEffect(p *proposal) string {
	n := p.count(adoptedCluster.isTakenOver)
	return fmt.Sprintf("Bellwether takes over %s on %s: it decides about the versions from then on, and approves the "+
		"InstallPlans. `operator adopt %s --undo` puts back what was there.\n", p.operator.Spec.Package,
		phrase.Count(n, "cluster"), p.operator.Name)
}

// undoText shows what is put back where.
func undoText(o *v1alpha1.ManagedOperator, installs []v1alpha1.OperatorInstall, now time.Time, s term.Style) string {
	var out strings.Builder
	out.WriteString(s.Lines(term.Strong, fmt.Sprintf("Undo the take-over by ManagedOperator %s/%s: each "+
		"Subscription gets back what it had", o.Namespace, o.Name)) + "\n")
	t := &term.Table{Header: []string{"CLUSTER", "SUBSCRIPTION", "CATALOG SOURCE", "CHANNEL", "APPROVAL", "TAKEN OVER"},
		Wrap: true}
	var others, automatic []string
	for _, i := range slices.SortedFunc(slices.Values(installs), func(a, b v1alpha1.OperatorInstall) int {
		return cmp.Compare(a.Spec.Cluster, b.Spec.Cluster)
	}) {
		was := i.Status.Adopted
		if was == nil {
			others = append(others, i.Spec.Cluster)
			continue
		}
		t.Add(term.Cell{Text: i.Spec.Cluster}, term.Cell{Text: was.Name},
			term.Cell{Text: strings.TrimPrefix(was.SourceNamespace+"/"+was.Source, "/")},
			term.Cell{Text: term.OrDash(was.Channel)}, term.Cell{Text: term.OrDash(was.Approval)},
			term.Cell{Text: term.Clock(now, &was.Since)})
		if was.Approval == string(operatorsv1alpha1.ApprovalAutomatic) {
			automatic = append(automatic, i.Spec.Cluster)
		}
	}
	if len(t.Rows) > 0 {
		out.WriteString(t.Render(s))
	}
	if len(others) > 0 {
		out.WriteString("\n" + s.Lines(term.Plain, fmt.Sprintf("Nothing was taken over on %s: the operator stays "+
			"installed there, and is not managed any more.", phrase.First(others, maxShown))))
	}
	if len(automatic) > 0 {
		out.WriteString("\n" + s.Lines(term.Warn, fmt.Sprintf("! Nothing is downgraded, and OLM upgrades by itself "+
			"again, as soon as the catalog source has a newer version: %s.", phrase.First(automatic, maxShown))))
	}
	return out.String()
}
