// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/engines/adoption"
	"github.com/bellwether-dev/bellwether/phrase"
)

// adoptText shows the ManagedOperator that is to be, and what it comes to on each cluster.
func adoptText(p *proposal, s term.Style) string {
	var out strings.Builder
	o := p.operator
	title := "is changed"
	if p.isNew {
		title = "is made"
	}
	out.WriteString(s.Lines(term.Strong, fmt.Sprintf("Take over %s: ManagedOperator %s/%s %s", o.Spec.Package,
		o.Namespace, o.Name, title)) + "\n")
	facts := &term.Table{Wrap: true}
	facts.Add(term.PlainCells("Catalog:", fmt.Sprintf("%s, channel %s%s", o.Spec.Catalog.Name, channelOf(o),
		p.followers()))...)
	facts.Add(term.PlainCells("Clusters:", selectorText(&o.Spec.ClusterSelector))...)
	facts.Add(term.PlainCells("Installed into:", cmp.Or(o.Spec.Install.Namespace, o.Spec.Package)+", "+
		string(cmp.Or(o.Spec.Install.Mode, v1alpha1.InstallAllNamespaces)))...)
	facts.Add(term.PlainCells("Settings:", configText(o.Spec.Install.Config))...)
	if len(o.Spec.Adopt.Accept) > 0 {
		facts.Add(term.PlainCells("Accepted:", acceptText(o.Spec.Adopt.Accept))...)
	}
	facts.Add(term.PlainCells("After that:", "a rollout to "+afterText(o))...)
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
func afterText(o *v1alpha1.ManagedOperator) string {
	if o.Spec.Version == "" {
		return "the head of the channel; set --version to choose another version"
	}
	return o.Spec.Version
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
	case c.found == nil:
		return term.Dim.Cell("not installed: nothing to take over")
	case c.managed:
		return term.Good.Cell("managed already")
	case len(c.blocking) == 0:
		return term.Good.Cell("taken over")
	case c.blocking[0].Class == adoption.Unknown:
		return term.Warn.Cell("not known now: " + c.blocking[0].Reason)
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
		for _, f := range c.blocking {
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
	isUnknown := func(c adoptedCluster) bool { return len(c.blocking) > 0 && c.blocking[0].Class == adoption.Unknown }
	refused := p.names(func(c adoptedCluster) bool { return len(c.blocking) > 0 && !isUnknown(c) })
	if len(refused) > 0 {
		notes = append(notes, fmt.Sprintf("The rollout stops when it comes to a cluster that is refused, unless its "+
			"waves permit failures: %s.", phrase.First(refused, maxShown)))
	}
	if unknown := p.names(isUnknown); len(unknown) > 0 {
		notes = append(notes, fmt.Sprintf("What is not known now is judged again when the rollout comes to it: %s.",
			phrase.First(unknown, maxShown)))
	}
	absent := p.names(func(c adoptedCluster) bool { return c.reported && c.found == nil })
	if len(absent) > 0 {
		notes = append(notes, fmt.Sprintf("The rollout after that installs the operator where it is not installed "+
			"now: %s.", phrase.First(absent, maxShown)))
	}
	silent := p.names(func(c adoptedCluster) bool { return !c.reported })
	if len(silent) > 0 {
		notes = append(notes, fmt.Sprintf("What runs on %s is not known.", phrase.First(silent, maxShown)))
	}
	if len(p.notRead) > 0 {
		notes = append(notes, "Catalogs that could not be read: "+phrase.First(p.notRead, 3)+".")
	}
	return notes
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
	out.WriteString(s.Lines(term.Strong, fmt.Sprintf("Put back what was there before ManagedOperator %s/%s",
		o.Namespace, o.Name)) + "\n")
	t := &term.Table{Header: []string{"CLUSTER", "SUBSCRIPTION", "CATALOG SOURCE", "CHANNEL", "APPROVAL", "ADOPTED"},
		Wrap: true}
	var others []string
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
	}
	if len(t.Rows) > 0 {
		out.WriteString(t.Render(s))
	}
	if len(others) > 0 {
		out.WriteString("\n" + s.Lines(term.Plain, fmt.Sprintf("Nothing was taken over on %s: the operator stays "+
			"installed there, and is not managed any more.", phrase.First(others, maxShown))))
	}
	return out.String()
}
