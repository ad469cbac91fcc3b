// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/rollout"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/explain"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// OperatorInput is the data that the details of an operator are rendered from.
type OperatorInput struct {
	Now      time.Time
	Operator *v1alpha1.ManagedOperator
	// Rollouts are the rollouts of the operator, the newest first.
	Rollouts []v1alpha1.OperatorRollout
	Installs []v1alpha1.OperatorInstall
	Clusters []v1alpha1.FleetCluster
	// Catalogs are the catalogs of the operator's namespace. They have the dates until which versions are supported.
	Catalogs []v1alpha1.OperatorCatalog
}

// RenderOperator returns the text of operator get: the details of a ManagedOperator.
func RenderOperator(in OperatorInput, s term.Style) string {
	o := in.Operator
	var out strings.Builder
	facts := &term.Table{Wrap: true}
	facts.Add(term.Cell{Text: "Operator:"}, term.Strong.Cell(o.Name))
	facts.Add(term.Cell{Text: "State:"}, FormatOperatorState(o))
	term.AddMarks(facts, explain.NewFleetMarks(in.Clusters, in.Installs).Operator(o))
	facts.Add(term.PlainCells("Package:", fmt.Sprintf("%s, channel %s, catalog %s", o.Spec.Package, formatChannel(o),
		o.Spec.Catalog.Name))...)
	facts.Add(term.PlainCells("Target:", describeTarget(o))...)
	if text := describeAvailable(o, in.Now); text != "" {
		facts.Add(term.PlainCells("Available:", text)...)
	}
	facts.Add(term.PlainCells("Clusters:", formatSelector(&o.Spec.ClusterSelector)+
		formatClusterCounts(o.Status.Clusters))...)
	facts.Add(term.PlainCells("Installed into:", cmp.Or(o.Spec.Install.Namespace,
		o.Spec.Package)+", "+string(cmp.Or(o.Spec.Install.Mode, v1alpha1.InstallAllNamespaces)))...)
	facts.Add(term.PlainCells("On removal:",
		string(cmp.Or(o.Spec.RemovalPolicy, v1alpha1.RemovalOrphan))+describeRemovalProgress(o.Status.Removal))...)
	if text := describeAdoption(o, in.Now); text != "" {
		facts.Add(term.PlainCells("Adoption:", text)...)
	}
	for _, h := range o.Spec.Holds {
		facts.Add(term.PlainCells("Held:", formatHold(h))...)
	}
	out.WriteString(facts.Render(s))
	term.WriteConditions(&out, o.Status.Conditions, in.Now, s)
	if rows := BuildVersionRows([]v1alpha1.ManagedOperator{*o}, in.Installs); len(rows) > 0 {
		addSupport(rows, []v1alpha1.ManagedOperator{*o}, in.Catalogs)
		out.WriteByte('\n')
		out.WriteString(buildVersionTable(rows, in.Now, s.Wide).Render(s))
	}
	if len(in.Rollouts) > 0 {
		out.WriteByte('\n')
		out.WriteString(rollout.BuildHistoryTable(in.Rollouts, o.Status.History,
			term.Listing{Now: in.Now, Wide: s.Wide}).Render(s))
	}
	rollout.WriteDecisions(&out, o, "", in.Now, s)
	writeNotReady(&out, in, s)
	return out.String()
}

// describeAdoption returns whether existing installs were taken over; empty if the operator does not adopt.
func describeAdoption(o *v1alpha1.ManagedOperator, now time.Time) string {
	a := o.Status.Adoption
	switch {
	case o.Spec.Adopt == nil:
		return ""
	case a == nil:
		return "what others installed is taken over first, in the versions that the clusters have"
	}
	return fmt.Sprintf("done on %s by rollout %s, %s; clusters without the operator had nothing to take over",
		phrase.Count(a.Clusters, "cluster"), a.Rollout, term.Clock(now, a.EndedAt))
}

// describeRemovalProgress returns the end of a sentence: how many clusters are uninstalling the operator, waiting or
// unconfirmed. It is empty if r is nil.
func describeRemovalProgress(r *v1alpha1.RemovalProgress) string {
	if r == nil {
		return ""
	}
	text := fmt.Sprintf("; %s uninstalling it now, %d waiting", phrase.Count(r.Uninstalling, "cluster"), r.Waiting)
	if r.Request != "" {
		text += fmt.Sprintf(", %d to be confirmed (request %s)", r.Unconfirmed, r.Request)
	}
	return text
}

// describeTarget returns the version that is rolled out, and why it is the target.
func describeTarget(o *v1alpha1.ManagedOperator) string {
	origin := "the head of the channel"
	if o.Spec.Version != "" {
		origin = "requested: " + o.Spec.Version
	}
	if o.Status.Target == nil {
		return "not resolved yet (" + origin + ")"
	}
	// The origin of an exact version is enough of a reason.
	if reason := o.Status.Target.Reason; reason != "" && !catalogs.IsExact(o.Spec.Version) {
		origin = reason
	}
	return fmt.Sprintf("%s (%s)", o.Status.Target.Version, origin)
}

func formatSelector(s *metav1.LabelSelector) string {
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return "every cluster"
	}
	return strings.ReplaceAll(metav1.FormatLabelSelector(s), ",", ", ")
}

func formatClusterCounts(n v1alpha1.ClusterCounts) string {
	return fmt.Sprintf(": %d selected, %d updated, %d ready, %d offline", n.Selected, n.Updated, n.Ready, n.Offline)
}

// writeNotReady writes a table of the installs that are not Ready, with at most term.MaxRows rows.
func writeNotReady(out *strings.Builder, in OperatorInput, s term.Style) {
	t := &term.Table{Header: []string{"CLUSTER", "DESIRED", "INSTALLED", "STATE", "MESSAGE"}, Wrap: true}
	for i := range in.Installs {
		install := &in.Installs[i]
		if term.Condition(install.Status.Conditions, v1alpha1.ConditionReady).Status != metav1.ConditionTrue {
			t.Add(append(append([]term.Cell{{Text: install.Spec.Cluster}}, term.InstallCells(install)...),
				term.Cell{Text: term.NotReadyMessage(install)})...)
		}
	}
	if len(t.Rows) == 0 {
		return
	}
	slices.SortFunc(t.Rows, func(a, b []term.Cell) int { return cmp.Compare(a[0].Text, b[0].Text) })
	more := len(t.Rows) - term.MaxRows
	t.Rows = t.Rows[:min(len(t.Rows), term.MaxRows)]
	fmt.Fprintf(out, "\n%s\n", s.Paint(term.Strong, "Not ready"))
	out.WriteString(t.Render(s))
	if more > 0 {
		fmt.Fprintf(out, "and %d more\n", more)
	}
}

// BuildOperatorTable returns the table of operator list. A table with namespaces has room for fewer counts.
func BuildOperatorTable(list []v1alpha1.ManagedOperator, fleetMarks *explain.FleetMarks, l term.Listing) *term.Table {
	t := &term.Table{Header: []string{"NAME", "TARGET", "STATE", "READY"}}
	if l.Wide || !l.Namespaces {
		t.Header = append(t.Header, "UPDATED", "AGE")
	}
	if l.Wide {
		t.Header = append(t.Header, "ROLLOUT", "PACKAGE", "CHANNEL", "CATALOG")
	}
	t.Header = append(t.Header, "MARKS")
	if l.Wide {
		t.Header = append(t.Header, "MESSAGE")
	}
	for i := range list {
		t.Add(l.Row(list[i].Namespace, buildOperatorRow(&list[i], fleetMarks, l))...)
	}
	return l.Table(t)
}

// buildOperatorRow returns the row of an operator, with the columns of BuildOperatorTable.
func buildOperatorRow(o *v1alpha1.ManagedOperator, fleetMarks *explain.FleetMarks, l term.Listing) []term.Cell {
	n := o.Status.Clusters
	row := []term.Cell{{Text: o.Name}, {Text: FormatTarget(o)}, FormatOperatorState(o),
		formatFraction(n.Ready, n.Selected)}
	if l.Wide || !l.Namespaces {
		row = append(row, formatFraction(n.Updated, n.Selected), term.Cell{Text: term.Age(l.Now, o.CreationTimestamp)})
	}
	if l.Wide {
		row = append(append(row, formatRollout(o.Status.Rollout)),
			term.PlainCells(o.Spec.Package, formatChannel(o), o.Spec.Catalog.Name)...)
	}
	row = append(row, term.MarksCell(fleetMarks.Operator(o)))
	if l.Wide {
		row = append(row, term.Cell{Text: term.Headline(o.Status.Conditions)})
	}
	return row
}

// FormatOperatorState returns the state of a ManagedOperator in one word.
func FormatOperatorState(o *v1alpha1.ManagedOperator) term.Cell {
	switch {
	case o.DeletionTimestamp != nil:
		return term.Warn.Cell("Deleting")
	case o.Spec.Paused:
		return term.Warn.Cell("Paused")
	default:
		return term.Health(o.Status.Conditions)
	}
}

// FormatTarget returns the version that a ManagedOperator rolls out, or the requested version if it is not resolved
// yet.
func FormatTarget(o *v1alpha1.ManagedOperator) string {
	if o.Status.Target != nil {
		return o.Status.Target.Version
	}
	return term.DashIfEmpty(o.Spec.Version)
}

// formatChannel returns the resolved channel, else the channel in the spec, else "(default)".
func formatChannel(o *v1alpha1.ManagedOperator) string {
	if o.Status.Target != nil {
		return o.Status.Target.Channel
	}
	return cmp.Or(o.Spec.Channel, "(default)")
}

// formatFraction returns a count with its total, such as 3/5.
func formatFraction(n, total int32) term.Cell {
	return term.Cell{Text: term.Fraction(n, total), Tone: formatCount(n, total).Tone}
}

// formatCount returns n: as a warning if it is less than total, as good if it is not, and dimmed if total is 0.
func formatCount[N int | int32](n, total N) term.Cell {
	switch {
	case n < total:
		return term.Warn.Cell(term.Count(n))
	case total > 0:
		return term.Good.Cell(term.Count(n))
	default:
		return term.Dim.Cell(term.Count(n))
	}
}

func formatRollout(r *v1alpha1.RolloutSummary) term.Cell {
	if r == nil {
		return term.Dim.Cell("-")
	}
	return term.PhaseTone(r.Phase).Cell(fmt.Sprintf("%s %s", r.Name, cmp.Or(r.Phase, v1alpha1.RolloutPending)))
}
