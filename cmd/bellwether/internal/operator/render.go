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
	"github.com/bellwether-dev/bellwether/explain/marks"
	"github.com/bellwether-dev/bellwether/phrase"
)

// OperatorInput is what the details of an operator are made of.
type OperatorInput struct {
	Now      time.Time
	Operator *v1alpha1.ManagedOperator
	// Rollouts of the operator, the newest first.
	Rollouts []v1alpha1.OperatorRollout
	Installs []v1alpha1.OperatorInstall
	Clusters []v1alpha1.FleetCluster
	// Catalogs of the operator's namespace say for how long versions are supported.
	Catalogs []v1alpha1.OperatorCatalog
}

// Operator is the details of a ManagedOperator.
func Operator(in OperatorInput, s term.Style) string {
	o := in.Operator
	var out strings.Builder
	facts := &term.Table{Wrap: true}
	facts.Add(term.Cell{Text: "Operator:"}, term.Strong.Cell(o.Name))
	facts.Add(term.Cell{Text: "State:"}, OperatorState(o))
	term.AddMarks(facts, marks.Group(in.Clusters, in.Installs).Operator(o))
	facts.Add(term.PlainCells("Package:", fmt.Sprintf("%s, channel %s, catalog %s", o.Spec.Package, channelOf(o),
		o.Spec.Catalog.Name))...)
	facts.Add(term.PlainCells("Target:", targetText(o))...)
	if text := availableText(o, in.Now); text != "" {
		facts.Add(term.PlainCells("Available:", text)...)
	}
	facts.Add(term.PlainCells("Clusters:", selectorText(&o.Spec.ClusterSelector)+clusterText(o.Status.Clusters))...)
	facts.Add(term.PlainCells("Installed into:", cmp.Or(o.Spec.Install.Namespace,
		o.Spec.Package)+", "+string(cmp.Or(o.Spec.Install.Mode, v1alpha1.InstallAllNamespaces)))...)
	facts.Add(term.PlainCells("On removal:",
		string(cmp.Or(o.Spec.RemovalPolicy, v1alpha1.RemovalOrphan))+removalText(o.Status.Removal))...)
	if text := adoptionText(o, in.Now); text != "" {
		facts.Add(term.PlainCells("Adoption:", text)...)
	}
	for _, h := range o.Spec.Holds {
		facts.Add(term.PlainCells("Held:", heldText(h))...)
	}
	out.WriteString(facts.Render(s))
	term.WriteConditions(&out, o.Status.Conditions, in.Now, s)
	if rows := VersionRows([]v1alpha1.ManagedOperator{*o}, in.Installs); len(rows) > 0 {
		addSupport(rows, []v1alpha1.ManagedOperator{*o}, in.Catalogs)
		out.WriteByte('\n')
		out.WriteString(versionsOfOne(rows, in.Now, s.Wide).Render(s))
	}
	if len(in.Rollouts) > 0 {
		out.WriteByte('\n')
		out.WriteString(rollout.History(in.Rollouts, o.Status.History,
			term.Listing{Now: in.Now, Wide: s.Wide}).Render(s))
	}
	rollout.WriteDecisions(&out, o, "", in.Now, s)
	writeNotReady(&out, in, s)
	return out.String()
}

// adoptionText says whether what others installed was taken over; empty where nothing is to be.
func adoptionText(o *v1alpha1.ManagedOperator, now time.Time) string {
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

// removalText is how far the removal from clusters has come.
func removalText(r *v1alpha1.RemovalProgress) string {
	if r == nil {
		return ""
	}
	text := fmt.Sprintf("; %s uninstalling it now, %d waiting", phrase.Count(r.Uninstalling, "cluster"), r.Waiting)
	if r.Request != "" {
		text += fmt.Sprintf(", %d to be confirmed (request %s)", r.Unconfirmed, r.Request)
	}
	return text
}

func targetText(o *v1alpha1.ManagedOperator) string {
	asked := "the head of the channel"
	if o.Spec.Version != "" {
		asked = "requested: " + o.Spec.Version
	}
	if o.Status.Target == nil {
		return "not resolved yet (" + asked + ")"
	}
	if reason := o.Status.Target.Reason; reason != "" && !catalogs.IsExact(o.Spec.Version) {
		asked = reason
	}
	return fmt.Sprintf("%s (%s)", o.Status.Target.Version, asked)
}

func selectorText(s *metav1.LabelSelector) string {
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return "every cluster"
	}
	return strings.ReplaceAll(metav1.FormatLabelSelector(s), ",", ", ")
}

func clusterText(n v1alpha1.ClusterCounts) string {
	return fmt.Sprintf(": %d selected, %d updated, %d ready, %d offline", n.Selected, n.Updated, n.Ready, n.Offline)
}

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

// Operators is the table of ManagedOperators. With the namespaces, there is room for fewer of the counts.
func Operators(list []v1alpha1.ManagedOperator, known *marks.Fleet, l term.Listing) *term.Table {
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
		t.Add(l.Row(list[i].Namespace, operatorRow(&list[i], known, l))...)
	}
	return l.Table(t)
}

func operatorRow(o *v1alpha1.ManagedOperator, known *marks.Fleet, l term.Listing) []term.Cell {
	n := o.Status.Clusters
	row := []term.Cell{{Text: o.Name}, {Text: TargetOf(o)}, OperatorState(o), partCell(n.Ready, n.Selected)}
	if l.Wide || !l.Namespaces {
		row = append(row, partCell(n.Updated, n.Selected), term.Cell{Text: term.Age(l.Now, o.CreationTimestamp)})
	}
	if l.Wide {
		row = append(append(row, rolloutCell(o.Status.Rollout)),
			term.PlainCells(o.Spec.Package, channelOf(o), o.Spec.Catalog.Name)...)
	}
	row = append(row, term.MarksCell(known.Operator(o)))
	if l.Wide {
		row = append(row, term.Cell{Text: term.Headline(o.Status.Conditions)})
	}
	return row
}

// OperatorState returns a ManagedOperator's state in a word.
func OperatorState(o *v1alpha1.ManagedOperator) term.Cell {
	switch {
	case o.DeletionTimestamp != nil:
		return term.Warn.Cell("Deleting")
	case o.Spec.Paused:
		return term.Warn.Cell("Paused")
	default:
		return term.Health(o.Status.Conditions)
	}
}

// TargetOf returns the version that a ManagedOperator rolls out.
func TargetOf(o *v1alpha1.ManagedOperator) string {
	if o.Status.Target != nil {
		return o.Status.Target.Version
	}
	return term.OrDash(o.Spec.Version)
}

func channelOf(o *v1alpha1.ManagedOperator) string {
	if o.Status.Target != nil {
		return o.Status.Target.Channel
	}
	return cmp.Or(o.Spec.Channel, "(default)")
}

// partCell is a count of all, such as 3/5.
func partCell(n, of int32) term.Cell {
	return term.Cell{Text: term.Fraction(n, of), Tone: shareCell(n, of).Tone}
}

func shareCell[N int | int32](n, of N) term.Cell {
	switch {
	case n < of:
		return term.Warn.Cell(term.Count(n))
	case of > 0:
		return term.Good.Cell(term.Count(n))
	default:
		return term.Dim.Cell(term.Count(n))
	}
}

func rolloutCell(r *v1alpha1.RolloutSummary) term.Cell {
	if r == nil {
		return term.Dim.Cell("-")
	}
	return term.PhaseTone(r.Phase).Cell(fmt.Sprintf("%s %s", r.Name, cmp.Or(r.Phase, v1alpha1.RolloutPending)))
}
