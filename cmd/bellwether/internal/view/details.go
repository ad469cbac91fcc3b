// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// maxRows keeps details of a large fleet on a screen or two.
const maxRows = 30

// Cluster is the details of a cluster and what runs on it.
func Cluster(c *v1alpha1.FleetCluster, installs []v1alpha1.OperatorInstall, now time.Time, s Style) string {
	var out strings.Builder
	state := clusterState(c)
	facts := &Table{}
	facts.Add(Cell{Text: "Cluster:"}, Cell{c.Name, Strong})
	facts.Add(Cell{Text: "State:"}, state)
	facts.Add(Cell{Text: "Labels:"}, Cell{Text: orDash(labels.FormatLabels(c.Labels))})
	facts.Add(plain("Hub namespace:", orDash(c.Status.Namespace))...)
	facts.Add(plain("Kubernetes:", orDash(c.Status.Versions.Kubernetes))...)
	facts.Add(Cell{Text: "OLM:"}, olmCell(c))
	facts.Add(plain("Agent:", orDash(c.Status.Versions.Agent))...)
	facts.Add(plain("Offboarding:", string(cmp.Or(c.Spec.Offboarding, v1alpha1.RemovalOrphan)))...)
	out.WriteString(facts.Render(Style{Colour: s.Colour}))
	writeConditions(&out, c.Status.Conditions, now, s)
	if len(installs) == 0 {
		out.WriteString("\nNo operators.\n")
		return out.String()
	}
	t := &Table{Header: []string{"OPERATOR", "DESIRED", "INSTALLED", "STATE", "MESSAGE"}, Wrap: true}
	slices.SortFunc(installs, func(a, b v1alpha1.OperatorInstall) int { return cmp.Compare(a.Name, b.Name) })
	for i := range installs {
		in := &installs[i]
		name := Cell{Text: in.Spec.Operator.Namespace + "/" + in.Spec.Operator.Name}
		t.Add(append(append([]Cell{name}, installCells(in)...), Cell{Text: notReadyMessage(in)})...)
	}
	out.WriteByte('\n')
	out.WriteString(t.Render(s))
	return out.String()
}

// notReadyMessage leaves out what is of no interest once all is well.
func notReadyMessage(in *v1alpha1.OperatorInstall) string {
	if condition(in.Status.Conditions, v1alpha1.ConditionReady).Status == metav1.ConditionTrue {
		return ""
	}
	return headline(in.Status.Conditions)
}

func writeConditions(out *strings.Builder, conditions []metav1.Condition, now time.Time, s Style) {
	if len(conditions) == 0 {
		return
	}
	t := &Table{Header: []string{"CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE"}, Wrap: true}
	for _, c := range conditions {
		t.Add(Cell{Text: c.Type}, Cell{string(c.Status), conditionTone(c)}, Cell{Text: age(now, c.LastTransitionTime)},
			Cell{Text: c.Reason}, Cell{Text: oneLine(c.Message)})
	}
	out.WriteByte('\n')
	out.WriteString(t.Render(s))
}

func conditionTone(c metav1.Condition) Tone {
	good := metav1.ConditionTrue
	if c.Type == v1alpha1.ConditionStalled {
		good = metav1.ConditionFalse
	}
	switch {
	case c.Type == v1alpha1.ConditionReconciling:
		return Plain
	case c.Type == v1alpha1.ConditionBlockedVersionInUse:
		return Warn
	case c.Status == good:
		return Good
	case c.Type == v1alpha1.ConditionStalled:
		return Bad
	default:
		return Warn
	}
}

// OperatorInput is what the details of an operator are made of.
type OperatorInput struct {
	Now      time.Time
	Operator *v1alpha1.ManagedOperator
	// Rollouts of the operator, the newest first.
	Rollouts []v1alpha1.OperatorRollout
	Installs []v1alpha1.OperatorInstall
}

// Operator is the details of a ManagedOperator.
func Operator(in OperatorInput, s Style) string {
	o := in.Operator
	var out strings.Builder
	facts := &Table{}
	facts.Add(Cell{Text: "Operator:"}, Cell{o.Name, Strong})
	facts.Add(Cell{Text: "State:"}, operatorState(o))
	facts.Add(plain("Package:", fmt.Sprintf("%s, channel %s, catalog %s", o.Spec.Package, channelOf(o),
		o.Spec.Catalog.Name))...)
	facts.Add(plain("Target:", targetText(o))...)
	facts.Add(plain("Clusters:", selectorText(&o.Spec.ClusterSelector)+clusterText(o.Status.Clusters))...)
	facts.Add(plain("Installed into:", cmp.Or(o.Spec.Install.Namespace,
		o.Spec.Package)+", "+string(cmp.Or(o.Spec.Install.Mode, v1alpha1.InstallAllNamespaces)))...)
	facts.Add(plain("On removal:", string(cmp.Or(o.Spec.RemovalPolicy, v1alpha1.RemovalOrphan)))...)
	out.WriteString(facts.Render(Style{Colour: s.Colour}))
	writeConditions(&out, o.Status.Conditions, in.Now, s)
	if rows := VersionRows([]v1alpha1.ManagedOperator{*o}, in.Installs); len(rows) > 0 {
		out.WriteByte('\n')
		out.WriteString(Versions(rows, Listing{Now: in.Now, Wide: true}).Render(s))
	}
	if len(in.Rollouts) > 0 {
		out.WriteByte('\n')
		out.WriteString(History(in.Rollouts, Listing{Now: in.Now}).Render(s))
	}
	writeNotReady(&out, in, s)
	return out.String()
}

func targetText(o *v1alpha1.ManagedOperator) string {
	asked := "follows the channel's head"
	if o.Spec.Version != "" {
		asked = "asked for " + o.Spec.Version
	}
	if o.Status.Target == nil {
		return "not resolved yet (" + asked + ")"
	}
	return fmt.Sprintf("%s (%s)", o.Status.Target.Version, asked)
}

func selectorText(s *metav1.LabelSelector) string {
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return "every cluster"
	}
	return metav1.FormatLabelSelector(s)
}

func clusterText(n v1alpha1.ClusterCounts) string {
	return fmt.Sprintf(": %d selected, %d updated, %d ready, %d offline", n.Selected, n.Updated, n.Ready, n.Offline)
}

func writeNotReady(out *strings.Builder, in OperatorInput, s Style) {
	t := &Table{Header: []string{"CLUSTER", "DESIRED", "INSTALLED", "STATE", "MESSAGE"}, Wrap: true}
	for i := range in.Installs {
		install := &in.Installs[i]
		if condition(install.Status.Conditions, v1alpha1.ConditionReady).Status != metav1.ConditionTrue {
			t.Add(append(append([]Cell{{Text: install.Spec.Cluster}}, installCells(install)...),
				Cell{Text: notReadyMessage(install)})...)
		}
	}
	if len(t.Rows) == 0 {
		return
	}
	slices.SortFunc(t.Rows, func(a, b []Cell) int { return cmp.Compare(a[0].Text, b[0].Text) })
	more := len(t.Rows) - maxRows
	t.Rows = t.Rows[:min(len(t.Rows), maxRows)]
	fmt.Fprintf(out, "\n%s\n", s.Paint(Strong, "Not ready"))
	out.WriteString(t.Render(s))
	if more > 0 {
		fmt.Fprintf(out, "and %d more\n", more)
	}
}
