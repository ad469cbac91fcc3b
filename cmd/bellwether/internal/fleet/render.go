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
	"github.com/bellwether-dev/bellwether/controllers/discovery/sources"
	"github.com/bellwether-dev/bellwether/explain/marks"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// Cluster is the details of a cluster and what runs on it.
func Cluster(c *v1alpha1.FleetCluster, installs []v1alpha1.OperatorInstall, now time.Time, s term.Style) string {
	var out strings.Builder
	state := clusterState(c)
	facts := &term.Table{Wrap: true}
	facts.Add(term.Cell{Text: "Cluster:"}, term.Strong.Cell(c.Name))
	facts.Add(term.Cell{Text: "State:"}, state)
	term.AddMarks(facts, marks.Group(nil, installs).Cluster(c))
	facts.Add(term.PlainCells("Labels:", term.OrDash(strings.ReplaceAll(labels.FormatLabels(c.Labels), ",", ", ")))...)
	addSource(facts, c)
	facts.Add(term.PlainCells("Hub namespace:", term.OrDash(c.Status.Namespace))...)
	facts.Add(term.PlainCells("Kubernetes:", term.OrDash(c.Status.Versions.Kubernetes))...)
	facts.Add(term.Cell{Text: "OLM:"}, olmCell(c))
	facts.Add(term.Cell{Text: "Agent:"}, agentCell(c))
	facts.Add(term.PlainCells("Offboarding:", string(cmp.Or(c.Spec.Offboarding, v1alpha1.RemovalOrphan)))...)
	out.WriteString(facts.Render(s))
	term.WriteConditions(&out, c.Status.Conditions, now, s)
	if len(installs) == 0 {
		out.WriteString("\nNo operators.\n")
		return out.String()
	}
	out.WriteByte('\n')
	out.WriteString(installTable(installs, s.Wide).Render(s))
	return out.String()
}

// installTable lists the operators on a cluster. What a cluster is to have and does not have is in the message, unless
// there is room for all columns.
func installTable(installs []v1alpha1.OperatorInstall, wide bool) *term.Table {
	t := &term.Table{Header: []string{"OPERATOR", "INSTALLED", "STATE", "MESSAGE"}, Wrap: true}
	if wide {
		t.Header = slices.Insert(t.Header, 1, "DESIRED")
	}
	slices.SortFunc(installs, func(a, b v1alpha1.OperatorInstall) int { return cmp.Compare(a.Name, b.Name) })
	for i := range installs {
		in := &installs[i]
		name := term.Cell{Text: in.Spec.Operator.Namespace + "/" + in.Spec.Operator.Name}
		cells := term.InstallCells(in)
		desired, rest, message := cells[0], cells[1:], term.NotReadyMessage(in)
		switch {
		case wide:
			rest = cells
		case in.Spec.Admission != nil && desired.Text != rest[0].Text:
			message = strings.TrimSuffix("desired: "+desired.Text+"; "+message, "; ")
		}
		t.Add(append(append([]term.Cell{name}, rest...), term.Cell{Text: message})...)
	}
	return t
}

// addSource says where a discovered cluster comes from.
func addSource(facts *term.Table, c *v1alpha1.FleetCluster) {
	if ref := c.Spec.SourceRef; ref != nil {
		facts.Add(term.PlainCells("Source:", sourceOf(c))...)
	}
	source := c.Status.Source
	if source == nil {
		return
	}
	if source.PowerState != "" {
		facts.Add(term.Cell{Text: "Power state:"}, powerState(c))
	}
	if source.Message != "" {
		facts.Add(term.Cell{Text: "Source says:"}, term.Warn.Cell(source.Message))
	}
	for _, clash := range source.Clashes {
		facts.Add(term.Cell{Text: "Same name:"}, term.Warn.Cell(sources.Describe(clash)+" is not in the fleet"))
	}
}

// powerState is what the source says of the cluster's machines, and whether the hub believes it.
func powerState(c *v1alpha1.FleetCluster) term.Cell {
	text := string(c.Status.Source.PowerState)
	if c.Status.Source.SaysStopped() && !c.Status.IsHibernating() {
		why := fmt.Sprintf("it has lasted for more than %.0f minutes", v1alpha1.PowerTransitionLimit.Minutes())
		if c.Status.Source.PowerState == v1alpha1.PowerHibernating {
			why = "the agent has reported since then"
		}
		return term.Warn.Cell(text + " (not believed, because " + why + ": the cluster counts as running)")
	}
	return term.Cell{Text: text}
}

// sourceOf names the source of a cluster and its state.
func sourceOf(c *v1alpha1.FleetCluster) string {
	if c.Spec.SourceRef == nil {
		return "-"
	}
	text := sources.Describe(*c.Spec.SourceRef)
	if source := c.Status.Source; source != nil && source.State != "" && source.State != v1alpha1.SourcePresent {
		text += " (" + strings.ToLower(string(source.State)) + ")"
	}
	return text
}

// Clusters is the table of the fleet.
func Clusters(list []v1alpha1.FleetCluster, known *marks.Fleet, l term.Listing) *term.Table {
	t := &term.Table{Header: []string{"NAME", "STATE", "ONLINE", "OPERATORS", "KUBERNETES"}}
	if l.Wide {
		t.Header = append(t.Header, "OLM", "AGE", "AGENT", "SOURCE", "LABELS")
	}
	t.Header = append(t.Header, "MARKS")
	if l.Wide {
		t.Header = append(t.Header, "MESSAGE")
	}
	for i := range list {
		t.Add(clusterRow(&list[i], known, l)...)
	}
	return t
}

func clusterRow(c *v1alpha1.FleetCluster, known *marks.Fleet, l term.Listing) []term.Cell {
	row := []term.Cell{{Text: c.Name}, clusterState(c), term.OnlineCell(c), operatorsCell(c),
		{Text: term.OrDash(c.Status.Versions.Kubernetes)}}
	if l.Wide {
		row = append(row, olmCell(c), term.Cell{Text: term.Age(l.Now, c.CreationTimestamp)}, agentCell(c),
			term.Cell{Text: sourceOf(c)}, term.Cell{Text: term.OrDash(labels.FormatLabels(c.Labels))})
	}
	row = append(row, term.MarksCell(known.Cluster(c)))
	if l.Wide {
		row = append(row, term.Cell{Text: term.Headline(c.Status.Conditions)})
	}
	return row
}

func clusterState(c *v1alpha1.FleetCluster) term.Cell {
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

// operatorsCell counts the operators that are Ready; where the cluster does not
// report, it was so by the last report.
func operatorsCell(c *v1alpha1.FleetCluster) term.Cell {
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

// agentCell returns the version of the agent, and whether it is one that the hub works
// with.
func agentCell(c *v1alpha1.FleetCluster) term.Cell {
	agent := term.OrDash(c.Status.Versions.Agent)
	switch conditions.Get(c.Status.Conditions, v1alpha1.ConditionVersionSupported).Reason {
	case v1alpha1.ReasonAgentTooOld:
		return term.Warn.Cell(agent + " (too old for the hub)")
	case v1alpha1.ReasonHubTooOld:
		return term.Warn.Cell(agent + " (too new for the hub)")
	}
	return term.Cell{Text: agent}
}

// olmCell returns the version of OLM on a cluster.
func olmCell(c *v1alpha1.FleetCluster) term.Cell {
	switch {
	case c.Status.Versions.OLM != "":
		return term.Cell{Text: c.Status.Versions.OLM}
	case c.Status.Versions.Agent != "":
		return term.Bad.Cell("missing")
	default:
		return term.Cell{Text: "-"}
	}
}
