// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/explain"
	"github.com/bellwether-dev/bellwether/fleet/discovery"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// RenderCluster returns the text of fleet get: the details of a cluster and its operators.
func RenderCluster(c *v1alpha1.FleetCluster, installs []v1alpha1.OperatorInstall, now time.Time, s term.Style) string {
	var out strings.Builder
	state := formatClusterState(c)
	facts := &term.Table{Wrap: true}
	facts.Add(term.Cell{Text: "Cluster:"}, term.Strong.Cell(c.Name))
	facts.Add(term.Cell{Text: "State:"}, state)
	term.AddMarks(facts, explain.NewFleetMarks(nil, installs).Cluster(c))
	facts.Add(term.PlainCells("Labels:",
		term.DashIfEmpty(strings.ReplaceAll(labels.FormatLabels(c.Labels), ",", ", ")))...)
	addSource(facts, c)
	facts.Add(term.PlainCells("Hub namespace:", term.DashIfEmpty(c.Status.Namespace))...)
	facts.Add(term.PlainCells("Kubernetes:", term.DashIfEmpty(c.Status.Versions.Kubernetes))...)
	facts.Add(term.Cell{Text: "OLM:"}, formatOLMVersion(c))
	facts.Add(term.Cell{Text: "Agent:"}, formatAgentVersion(c))
	facts.Add(term.PlainCells("Offboarding:", string(cmp.Or(c.Spec.Offboarding, v1alpha1.RemovalOrphan)))...)
	out.WriteString(facts.Render(s))
	term.WriteConditions(&out, c.Status.Conditions, now, s)
	if len(installs) == 0 {
		out.WriteString("\nNo operators.\n")
		return out.String()
	}
	out.WriteByte('\n')
	out.WriteString(buildInstallTable(installs, s.Wide).Render(s))
	return out.String()
}

// buildInstallTable sorts installs by name, and returns the table of the operators on a cluster. In the narrow table,
// which has no column DESIRED, the message begins with the desired version if it differs from the installed version.
func buildInstallTable(installs []v1alpha1.OperatorInstall, wide bool) *term.Table {
	t := &term.Table{Header: []string{"OPERATOR", "INSTALLED", "STATE", "MESSAGE"}, Wrap: true}
	if wide {
		t.Header = slices.Insert(t.Header, 1, "DESIRED")
	}
	slices.SortFunc(installs, func(a, b v1alpha1.OperatorInstall) int { return cmp.Compare(a.Name, b.Name) })
	for i := range installs {
		install := &installs[i]
		name := term.Cell{Text: install.Spec.Operator.Namespace + "/" + install.Spec.Operator.Name}
		cells := term.InstallCells(install)
		desired, shownCells, message := cells[0], cells[1:], term.NotReadyMessage(install)
		switch {
		case wide:
			shownCells = cells
		case install.Spec.Admission != nil && desired.Text != shownCells[0].Text:
			message = strings.TrimSuffix("desired: "+desired.Text+"; "+message, "; ")
		}
		t.Add(append(append([]term.Cell{name}, shownCells...), term.Cell{Text: message})...)
	}
	return t
}

// addSource adds rows with the source of a discovered cluster.
func addSource(facts *term.Table, c *v1alpha1.FleetCluster) {
	if ref := c.Spec.SourceRef; ref != nil {
		facts.Add(term.PlainCells("Source:", describeSource(c))...)
	}
	source := c.Status.Source
	if source == nil {
		return
	}
	if source.PowerState != "" {
		facts.Add(term.Cell{Text: "Power state:"}, formatPowerState(c))
	}
	if source.Message != "" {
		facts.Add(term.Cell{Text: "Source says:"}, term.Warn.Cell(source.Message))
	}
	for _, clash := range source.Clashes {
		facts.Add(term.Cell{Text: "Same name:"}, term.Warn.Cell(discovery.DescribeSource(clash)+" is not in the fleet"))
	}
}

// formatPowerState returns the power state that the source reports, and why the hub ignores it if the hub does.
func formatPowerState(c *v1alpha1.FleetCluster) term.Cell {
	text := string(c.Status.Source.PowerState)
	if c.Status.Source.SaysStopped() && !c.Status.IsHibernating() {
		reason := fmt.Sprintf("it has lasted for more than %.0f minutes", v1alpha1.PowerTransitionLimit.Minutes())
		if c.Status.Source.PowerState == v1alpha1.PowerHibernating {
			reason = "the agent has reported since then"
		}
		return term.Warn.Cell(text + " (not believed, because " + reason + ": the cluster counts as running)")
	}
	return term.Cell{Text: text}
}

// describeSource returns the source of a cluster, with its state unless it is present.
func describeSource(c *v1alpha1.FleetCluster) string {
	if c.Spec.SourceRef == nil {
		return "-"
	}
	text := discovery.DescribeSource(*c.Spec.SourceRef)
	if source := c.Status.Source; source != nil && source.State != "" && source.State != v1alpha1.SourcePresent {
		text += " (" + strings.ToLower(string(source.State)) + ")"
	}
	return text
}

// BuildClusterTable returns the table of fleet list.
func BuildClusterTable(list []v1alpha1.FleetCluster, fleetMarks *explain.FleetMarks, l term.Listing) *term.Table {
	t := &term.Table{Header: []string{"NAME", "STATE", "ONLINE", "OPERATORS", "KUBERNETES"}}
	if l.Wide {
		t.Header = append(t.Header, "OLM", "AGE", "AGENT", "SOURCE", "LABELS")
	}
	t.Header = append(t.Header, "MARKS")
	if l.Wide {
		t.Header = append(t.Header, "MESSAGE")
	}
	for i := range list {
		t.Add(buildClusterRow(&list[i], fleetMarks, l)...)
	}
	return t
}

// buildClusterRow returns the row of a cluster, with the columns of BuildClusterTable.
func buildClusterRow(c *v1alpha1.FleetCluster, fleetMarks *explain.FleetMarks, l term.Listing) []term.Cell {
	row := []term.Cell{{Text: c.Name}, formatClusterState(c), term.OnlineCell(c), formatOperatorCounts(c),
		{Text: term.DashIfEmpty(c.Status.Versions.Kubernetes)}}
	if l.Wide {
		row = append(row, formatOLMVersion(c), term.Cell{Text: term.Age(l.Now, c.CreationTimestamp)},
			formatAgentVersion(c), term.Cell{Text: describeSource(c)},
			term.Cell{Text: term.DashIfEmpty(labels.FormatLabels(c.Labels))})
	}
	row = append(row, term.MarksCell(fleetMarks.Cluster(c)))
	if l.Wide {
		row = append(row, term.Cell{Text: term.Headline(c.Status.Conditions)})
	}
	return row
}

// formatClusterState returns the state of a cluster in a few words.
func formatClusterState(c *v1alpha1.FleetCluster) term.Cell {
	switch {
	case c.DeletionTimestamp != nil:
		return term.Warn.Cell("Leaving")
	case c.Spec.Paused:
		return term.Warn.Cell("Paused")
	case c.Status.IsHibernating():
		return term.Warn.Cell(string(c.Status.Source.PowerState))
	case c.Status.IsSourcePaused():
		return term.Warn.Cell("Source " + strings.ToLower(string(c.Status.Source.State)))
	}
	return term.Health(c.Status.Conditions)
}

// formatOperatorCounts returns how many operators of a cluster are Ready. If the cluster is not online, the numbers
// are from its last report and are marked as stale.
func formatOperatorCounts(c *v1alpha1.FleetCluster) term.Cell {
	n := c.Status.Operators
	switch {
	case n.Total == 0:
		return term.Dim.Cell("none")
	case !rollouts.ObserveCluster(c).Online:
		return term.Warn.Cell(fmt.Sprintf("%d/%d ready (stale)", n.Ready, n.Total))
	case n.Ready < n.Total:
		return term.Warn.Cell(fmt.Sprintf("%d/%d ready", n.Ready, n.Total))
	}
	return term.Cell{Text: fmt.Sprintf("%d/%d ready", n.Ready, n.Total)}
}

// formatAgentVersion returns the version of the agent, with a remark if the hub does not support it.
func formatAgentVersion(c *v1alpha1.FleetCluster) term.Cell {
	agent := term.DashIfEmpty(c.Status.Versions.Agent)
	switch conditions.Get(c.Status.Conditions, v1alpha1.ConditionVersionSupported).Reason {
	case v1alpha1.ReasonAgentTooOld:
		return term.Warn.Cell(agent + " (too old for the hub)")
	case v1alpha1.ReasonHubTooOld:
		return term.Warn.Cell(agent + " (too new for the hub)")
	}
	return term.Cell{Text: agent}
}

// formatOLMVersion returns the version of OLM on a cluster.
func formatOLMVersion(c *v1alpha1.FleetCluster) term.Cell {
	switch {
	case c.Status.Versions.OLM != "":
		return term.Cell{Text: c.Status.Versions.OLM}
	case c.Status.Versions.Agent != "":
		return term.Bad.Cell("missing")
	default:
		return term.Cell{Text: "-"}
	}
}
