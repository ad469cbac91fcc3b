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
	"github.com/bellwether-dev/bellwether/fleet"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// formatProposal describes the ManagedOperator that is created or changed, and the result on each cluster.
func formatProposal(p *fleet.AdoptionProposal, s term.Style) string {
	var out strings.Builder
	o := p.Operator
	title := "with ManagedOperator %s/%s, which is there already"
	if p.IsNew {
		title = "with a new ManagedOperator %s/%s"
	}
	out.WriteString(s.Lines(term.Strong, fmt.Sprintf("Take over package %s "+title, o.Spec.Package, o.Namespace,
		o.Name)) + "\n")
	facts := &term.Table{Wrap: true}
	facts.Add(term.PlainCells("Catalog:", fmt.Sprintf("%s, channel %s%s", o.Spec.Catalog.Name, formatChannel(o),
		describeFollowers(p)))...)
	facts.Add(term.PlainCells("Clusters:", formatSelector(&o.Spec.ClusterSelector))...)
	facts.Add(term.PlainCells("Installed into:", fmt.Sprintf("namespace %s, install mode %s",
		cmp.Or(o.Spec.Install.Namespace, o.Spec.Package),
		cmp.Or(o.Spec.Install.Mode, v1alpha1.InstallAllNamespaces)))...)
	facts.Add(term.PlainCells("Settings:", describeConfig(o.Spec.Install.Config))...)
	if len(o.Spec.Adopt.Accept) > 0 {
		facts.Add(term.PlainCells("Accepted:", joinAccepted(o.Spec.Adopt.Accept))...)
	}
	facts.Add(term.PlainCells("After that:", "a rollout to "+describeNextVersion(p))...)
	out.WriteString(facts.Render(s) + "\n")
	out.WriteString(buildClusterTable(p, s).Render(s))
	writeRefusals(&out, p, s)
	for i, note := range listNotes(p) {
		if i == 0 {
			out.WriteByte('\n')
		}
		out.WriteString(s.Lines(term.Warn, "! "+note))
	}
	return out.String()
}

// describeFollowers returns how many Subscriptions follow the channel; empty if all do.
func describeFollowers(p *fleet.AdoptionProposal) string {
	if p.Subscriptions == 0 || p.SameChannel == p.Subscriptions {
		return ""
	}
	return fmt.Sprintf(" (%d of %s %s it)", p.SameChannel, phrase.Count(p.Subscriptions, "Subscription"),
		phrase.Word(p.SameChannel, "follows", "follow"))
}

// describeConfig lists the settings that the ManagedOperator takes from the Subscriptions.
func describeConfig(c *v1alpha1.OperatorConfig) string {
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

// joinAccepted joins the accepted findings with commas.
func joinAccepted(accept []v1alpha1.AcceptedFinding) string {
	var out []string
	for _, reason := range accept {
		out = append(out, string(reason))
	}
	return strings.Join(out, ", ")
}

// describeNextVersion returns the version to which the operator is rolled out after the take-over.
func describeNextVersion(p *fleet.AdoptionProposal) string {
	version, head := p.Operator.Spec.Version, "the head of the channel"
	if p.Head != "" {
		head = fmt.Sprintf("version %s, %s", p.Head, head)
	}
	switch _, err := semver.Parse(version); {
	case version != "" && err == nil:
		return "version " + version
	case version != "":
		return "the highest version in the range " + version
	case p.IsNew:
		return head + "; set --version to choose another version"
	}
	return head
}

// buildClusterTable returns a table with the result on each cluster.
func buildClusterTable(p *fleet.AdoptionProposal, s term.Style) *term.Table {
	t := &term.Table{Header: []string{"CLUSTER", "VERSION", "CHANNEL", "APPROVAL", "RESULT"}, Wrap: true}
	for i, c := range p.Clusters {
		if i == term.MaxRows && !s.Wide {
			t.Add(term.Dim.Cell(fmt.Sprintf("and %d more", len(p.Clusters)-i)))
			break
		}
		version, channel, approval := "-", "-", "-"
		if c.Found != nil {
			version = term.DashIfEmpty(adoption.VersionOf(c.Found))
			if sub := c.Found.Subscription; sub != nil {
				channel, approval = term.DashIfEmpty(sub.Channel), term.DashIfEmpty(sub.Approval)
			}
		}
		t.Add(term.Cell{Text: c.Name}, term.Cell{Text: version}, term.Cell{Text: channel}, term.Cell{Text: approval},
			formatResult(c))
	}
	return t
}

// formatResult returns whether the operator on the cluster is taken over, or why it is not.
func formatResult(c fleet.AdoptedCluster) term.Cell {
	switch {
	case !c.Reported:
		return term.Warn.Cell("not known: its agent has not reported operators")
	case c.Found == nil && c.Refusal == "":
		return term.Dim.Cell("not installed: nothing to take over")
	case c.Managed:
		return term.Good.Cell("managed already")
	case c.Refusal != "":
		return term.Bad.Cell("not permitted")
	case len(c.Blocking) == 0:
		return term.Good.Cell("taken over")
	case c.Blocking[0].Class == adoption.Unknown:
		return term.Warn.Cell("not known yet: " + c.Blocking[0].Reason)
	}
	var reasons []string
	for _, f := range c.Blocking {
		reasons = append(reasons, f.Reason)
	}
	return term.Bad.Cell("refused: " + strings.Join(slices.Compact(reasons), ", "))
}

// writeRefusals writes why clusters are refused and what the user can do. Equal reasons are written once.
func writeRefusals(out *strings.Builder, p *fleet.AdoptionProposal, s term.Style) {
	type refusal struct {
		adoption.Finding
		clusters []string
	}
	var refusals []*refusal
	for _, c := range p.Clusters {
		for _, f := range listObstacles(c) {
			i := slices.IndexFunc(refusals, func(r *refusal) bool {
				return r.Reason == f.Reason && r.Message == f.Message
			})
			if i < 0 {
				refusals = append(refusals, &refusal{Finding: f})
				i = len(refusals) - 1
			}
			refusals[i].clusters = append(refusals[i].clusters, c.Name)
		}
	}
	if len(refusals) == 0 {
		return
	}
	out.WriteString("\n" + s.Paint(term.Strong, "Not taken over") + "\n")
	for _, r := range refusals {
		tone := term.Bad
		if r.Class == adoption.Unknown {
			tone = term.Warn
		}
		term.WriteText(out, s, "  ", fmt.Sprintf("%s %s: %s", term.Mark(tone), r.Reason,
			phrase.First(r.clusters, maxClusterNames)))
		term.WriteText(out, s, "    ", r.Message)
		for _, choice := range r.Choices {
			term.WriteText(out, s, "    ", "- "+addAcceptFlag(r.Finding, choice))
		}
	}
}

// listObstacles returns the findings that prevent a take-over on the cluster.
func listObstacles(c fleet.AdoptedCluster) []adoption.Finding {
	if c.Refusal == "" || c.Managed {
		return c.Blocking
	}
	return []adoption.Finding{{Class: adoption.Conflict, Reason: v1alpha1.ReasonAccessNotPermitted,
		Message: c.Refusal + ".", Choices: []string{"Ask the platform team for a FleetAccess.",
			"Leave the cluster out of the selection."}}}
}

// addAcceptFlag adds the flag --accept to a choice that accepts the finding.
func addAcceptFlag(f adoption.Finding, choice string) string {
	if !f.IsAcceptable() {
		return choice
	}
	instruction := "Add " + f.Reason + " to spec.adopt.accept of the ManagedOperator"
	return strings.Replace(choice, instruction, instruction+" (--accept "+f.Reason+")", 1)
}

// maxClusterNames is the number of clusters that a line names.
const maxClusterNames = 10

// listNotes returns warnings that the user should read before the confirmation.
func listNotes(p *fleet.AdoptionProposal) []string {
	var notes []string
	addNote := func(format string, matches func(fleet.AdoptedCluster) bool) {
		if clusters := listClusterNames(p, matches); len(clusters) > 0 {
			notes = append(notes, fmt.Sprintf(format, phrase.First(clusters, maxClusterNames)))
		}
	}
	isPermitted := func(c fleet.AdoptedCluster) bool { return c.Refusal == "" || c.Managed }
	isUnknown := func(c fleet.AdoptedCluster) bool {
		return isPermitted(c) && len(c.Blocking) > 0 && c.Blocking[0].Class == adoption.Unknown
	}
	addNote("The rollout stops when it comes to a cluster that is refused, unless its waves permit failures: %s.",
		func(c fleet.AdoptedCluster) bool { return isPermitted(c) && len(c.Blocking) > 0 && !isUnknown(c) })
	addNote("What is not known yet is judged again when the rollout comes to it: %s.", isUnknown)
	addNote("No rollout changes anything on a cluster that no FleetAccess permits: %s.",
		func(c fleet.AdoptedCluster) bool { return !isPermitted(c) })
	addNote("These follow another channel now, and the one of the ManagedOperator once they are taken over: %s.",
		func(c fleet.AdoptedCluster) bool {
			return c.IsTakenOver() && changesChannel(c, p.Operator.Spec.Channel)
		})
	addNote("The rollout after the take-over also installs the operator where it is not installed now: %s.",
		func(c fleet.AdoptedCluster) bool { return c.Reported && c.Found == nil && c.Refusal == "" })
	addNote("What runs on %s is not known.", func(c fleet.AdoptedCluster) bool { return !c.Reported })
	if len(p.NotRead) > 0 {
		notes = append(notes, "Catalogs that could not be read: "+phrase.First(p.NotRead, 3)+".")
	}
	return notes
}

// changesChannel reports whether the Subscription follows a channel other than the channel of the ManagedOperator.
func changesChannel(c fleet.AdoptedCluster, channel string) bool {
	return channel != "" && c.Found.Subscription != nil && c.Found.Subscription.Channel != channel
}

// listClusterNames returns the names of the clusters that match.
func listClusterNames(p *fleet.AdoptionProposal, matches func(fleet.AdoptedCluster) bool) []string {
	var out []string
	for _, c := range p.Clusters {
		if matches(c) {
			out = append(out, c.Name)
		}
	}
	return out
}

// countTakenOver returns the number of installs that the rollout takes over.
func countTakenOver(p *fleet.AdoptionProposal) int {
	return len(listClusterNames(p, fleet.AdoptedCluster.IsTakenOver))
}

// describeEffect returns the text of the confirmation.
func describeEffect(p *fleet.AdoptionProposal) string {
	n := countTakenOver(p)
	return fmt.Sprintf("Bellwether takes over %s on %s: it decides about the versions from then on, and approves the "+
		"InstallPlans. `operator adopt %s --undo` puts back what was there.\n", p.Operator.Spec.Package,
		phrase.Count(n, "cluster"), p.Operator.Name)
}

// formatUndo shows the original Subscription that is restored on each cluster, and the clusters without a take-over.
func formatUndo(o *v1alpha1.ManagedOperator, installs []v1alpha1.OperatorInstall, now time.Time, s term.Style) string {
	var out strings.Builder
	out.WriteString(s.Lines(term.Strong, fmt.Sprintf("Undo the take-over by ManagedOperator %s/%s: each "+
		"Subscription gets back what it had", o.Namespace, o.Name)) + "\n")
	t := &term.Table{Header: []string{"CLUSTER", "SUBSCRIPTION", "CATALOG SOURCE", "CHANNEL", "APPROVAL", "TAKEN OVER"},
		Wrap: true}
	var notAdopted, automatic []string
	for _, i := range slices.SortedFunc(slices.Values(installs), func(a, b v1alpha1.OperatorInstall) int {
		return cmp.Compare(a.Spec.Cluster, b.Spec.Cluster)
	}) {
		original := i.Status.Adopted
		if original == nil {
			notAdopted = append(notAdopted, i.Spec.Cluster)
			continue
		}
		t.Add(term.Cell{Text: i.Spec.Cluster}, term.Cell{Text: original.Name},
			term.Cell{Text: strings.TrimPrefix(original.SourceNamespace+"/"+original.Source, "/")},
			term.Cell{Text: term.DashIfEmpty(original.Channel)}, term.Cell{Text: term.DashIfEmpty(original.Approval)},
			term.Cell{Text: term.Clock(now, &original.Since)})
		if original.Approval == string(operatorsv1alpha1.ApprovalAutomatic) {
			automatic = append(automatic, i.Spec.Cluster)
		}
	}
	if len(t.Rows) > 0 {
		out.WriteString(t.Render(s))
	}
	if len(notAdopted) > 0 {
		out.WriteString("\n" + s.Lines(term.Plain, fmt.Sprintf("Nothing was taken over on %s: the operator stays "+
			"installed there, and is not managed any more.", phrase.First(notAdopted, maxClusterNames))))
	}
	if len(automatic) > 0 {
		out.WriteString("\n" + s.Lines(term.Warn, fmt.Sprintf("! Nothing is downgraded, and OLM upgrades by itself "+
			"again, as soon as the catalog source has a newer version: %s.", phrase.First(automatic, maxClusterNames))))
	}
	return out.String()
}
