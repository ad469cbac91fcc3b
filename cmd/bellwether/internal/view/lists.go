// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Listing is what the tables of a list need besides its objects.
type Listing struct {
	Now time.Time
	// Wide adds columns.
	Wide bool
	// Namespaces adds the namespace.
	Namespaces bool
}

// Clusters is the table of the fleet.
func Clusters(list []v1alpha1.FleetCluster, l Listing) *Table {
	t := &Table{Header: []string{"NAME", "STATE", "ONLINE", "OPERATORS", "KUBERNETES", "OLM", "AGE"}}
	if l.Wide {
		t.Header = append(t.Header, "AGENT", "LABELS", "MESSAGE")
	}
	for i := range list {
		c := &list[i]
		row := []Cell{{Text: c.Name}, clusterState(c), onlineCell(c), operatorsCell(c.Status.Operators),
			{Text: orDash(c.Status.Versions.Kubernetes)}, olmCell(c), {Text: age(l.Now, c.CreationTimestamp)}}
		if l.Wide {
			row = append(row, plain(orDash(c.Status.Versions.Agent), orDash(labels.FormatLabels(c.Labels)),
				headline(c.Status.Conditions))...)
		}
		t.Add(row...)
	}
	return t
}

func clusterState(c *v1alpha1.FleetCluster) Cell {
	switch {
	case c.DeletionTimestamp != nil:
		return Cell{"Leaving", Warn}
	case c.Spec.Paused:
		return Cell{"Paused", Warn}
	default:
		return health(c.Status.Conditions)
	}
}

func operatorsCell(n v1alpha1.InstallCounts) Cell {
	c := Cell{Text: fmt.Sprintf("%d/%d ready", n.Ready, n.Total)}
	switch {
	case n.Total == 0:
		return Cell{"none", Dim}
	case n.Ready < n.Total:
		c.Tone = Warn
	}
	return c
}

func olmCell(c *v1alpha1.FleetCluster) Cell {
	switch {
	case c.Status.Versions.OLM != "":
		return Cell{Text: c.Status.Versions.OLM}
	case c.Status.Versions.Agent != "":
		return Cell{"missing", Bad}
	default:
		return Cell{Text: "-"}
	}
}

// Operators is the table of ManagedOperators.
func Operators(list []v1alpha1.ManagedOperator, l Listing) *Table {
	t := &Table{Header: []string{"NAME", "PACKAGE", "TARGET", "STATE", "CLUSTERS", "UPDATED", "READY", "ROLLOUT",
		"AGE"}}
	if l.Wide {
		t.Header = append(t.Header, "CHANNEL", "CATALOG", "MESSAGE")
	}
	for i := range list {
		o := &list[i]
		n := o.Status.Clusters
		row := []Cell{{Text: o.Name}, {Text: o.Spec.Package}, {Text: targetOf(o)}, operatorState(o),
			{Text: count(n.Selected)}, shareCell(n.Updated, n.Selected), shareCell(n.Ready, n.Selected),
			rolloutCell(o.Status.Rollout), {Text: age(l.Now, o.CreationTimestamp)}}
		if l.Wide {
			row = append(row, plain(channelOf(o), o.Spec.Catalog.Name, headline(o.Status.Conditions))...)
		}
		t.Add(l.row(o.Namespace, row)...)
	}
	return l.table(t)
}

// table adds the namespace's heading where the listing has namespaces.
func (l Listing) table(t *Table) *Table {
	if l.Namespaces {
		t.Header = slices.Insert(t.Header, 0, "NAMESPACE")
	}
	return t
}

func (l Listing) row(namespace string, row []Cell) []Cell {
	if l.Namespaces {
		return slices.Insert(row, 0, Cell{Text: namespace})
	}
	return row
}

func operatorState(o *v1alpha1.ManagedOperator) Cell {
	switch {
	case o.DeletionTimestamp != nil:
		return Cell{"Deleting", Warn}
	case o.Spec.Paused:
		return Cell{"Paused", Warn}
	default:
		return health(o.Status.Conditions)
	}
}

func targetOf(o *v1alpha1.ManagedOperator) string {
	if o.Status.Target != nil {
		return o.Status.Target.Version
	}
	return orDash(o.Spec.Version)
}

func channelOf(o *v1alpha1.ManagedOperator) string {
	if o.Status.Target != nil {
		return o.Status.Target.Channel
	}
	return cmp.Or(o.Spec.Channel, "(default)")
}

func shareCell[N int | int32](n, of N) Cell {
	switch {
	case n < of:
		return Cell{count(n), Warn}
	case of > 0:
		return Cell{count(n), Good}
	default:
		return Cell{count(n), Dim}
	}
}

func rolloutCell(r *v1alpha1.RolloutSummary) Cell {
	if r == nil {
		return Cell{"-", Dim}
	}
	return Cell{fmt.Sprintf("%s %s", r.Name, cmp.Or(r.Phase, v1alpha1.RolloutPending)), phaseTone(r.Phase)}
}

// Rollouts is the table of rollouts, as given.
func Rollouts(list []v1alpha1.OperatorRollout, l Listing) *Table {
	t := &Table{Header: []string{"NAME", "OPERATOR", "VERSION", "PHASE", "WAVE", "CLUSTERS", "UPDATED", "FAILED",
		"DEFERRED", "AGE"}}
	if l.Wide {
		t.Header = append(t.Header, "MESSAGE")
	}
	for i := range list {
		r := &list[i]
		n := r.Status.Clusters
		row := []Cell{{Text: r.Name}, {Text: r.Spec.Operator.Name}, {Text: r.Spec.Release.Version},
			{phaseOf(r), phaseTone(r.Status.Phase)}, {Text: orDash(r.Status.CurrentWave)}, {Text: count(n.Total)},
			{Text: count(n.Succeeded)}, countCell(n.Failed, Bad), countCell(n.Deferred, Warn),
			{Text: age(l.Now, r.CreationTimestamp)}}
		if l.Wide {
			row = append(row, Cell{Text: oneLine(r.Status.Message)})
		}
		t.Add(l.row(r.Namespace, row)...)
	}
	return l.table(t)
}

func phaseOf(r *v1alpha1.OperatorRollout) string {
	return string(cmp.Or(r.Status.Phase, v1alpha1.RolloutPending))
}

// History is the table of an operator's rollouts, the newest first.
func History(list []v1alpha1.OperatorRollout, l Listing) *Table {
	t := &Table{Header: []string{"REVISION", "ROLLOUT", "VERSION", "PHASE", "CLUSTERS", "UPDATED", "FAILED", "STARTED",
		"TOOK", "WHY"}}
	newest := slices.Clone(list)
	slices.SortFunc(newest, func(a, b v1alpha1.OperatorRollout) int {
		return cmp.Compare(b.Spec.Revision,
			a.Spec.Revision)
	})
	for i := range newest {
		r := &newest[i]
		n := r.Status.Clusters
		t.Add(Cell{Text: fmt.Sprint(r.Spec.Revision)}, Cell{Text: r.Name}, Cell{Text: r.Spec.Release.Version},
			Cell{phaseOf(r), phaseTone(r.Status.Phase)}, Cell{Text: count(n.Total)}, Cell{Text: count(n.Succeeded)},
			countCell(n.Failed, Bad), Cell{Text: clock(l.Now, r.Status.StartedAt)}, Cell{Text: took(r, l.Now)},
			Cell{Text: whyEnded(r)})
	}
	return t
}

func took(r *v1alpha1.OperatorRollout, now time.Time) string {
	switch {
	case r.Status.StartedAt == nil:
		return "-"
	case r.Status.EndedAt == nil:
		return span(now.Sub(r.Status.StartedAt.Time)) + " so far"
	default:
		return span(r.Status.EndedAt.Sub(r.Status.StartedAt.Time))
	}
}

func whyEnded(r *v1alpha1.OperatorRollout) string {
	switch {
	case r.Spec.Abort != nil:
		return oneLine(r.Spec.Abort.Reason)
	case r.Spec.Paused && !r.Status.Phase.Ended():
		return oneLine(r.Spec.PausedReason)
	case r.Status.Phase == v1alpha1.RolloutSucceeded:
		return ""
	default:
		return oneLine(r.Status.Message)
	}
}

// Catalogs is the table of catalogs.
func Catalogs(list []v1alpha1.OperatorCatalog, l Listing) *Table {
	t := &Table{Header: []string{"NAME", "STATE", "PACKAGES", "BLOCKED", "DIGEST", "READ", "SOURCE"}}
	if l.Wide {
		t.Header = append(t.Header, "MESSAGE")
	}
	for i := range list {
		c := &list[i]
		read := "-"
		if c.Status.LastReadTime != nil {
			read = age(l.Now, *c.Status.LastReadTime) + " ago"
		}
		row := []Cell{{Text: c.Name}, health(c.Status.Conditions), {Text: count(c.Status.PackageCount)},
			blockedText(c.Status.BlockedVersions),
			{Text: orDash(shortDigest(c.Status.Digest))}, {Text: read}, {Text: sourceOf(c.Spec.Source)}}
		if l.Wide {
			row = append(row, Cell{Text: headline(c.Status.Conditions)})
		}
		t.Add(l.row(c.Namespace, row)...)
	}
	return l.table(t)
}

func sourceOf(s v1alpha1.CatalogSource) string { return cmp.Or(s.Image, s.Directory) }

// shortDigest keeps as much of a digest as people compare.
func shortDigest(digest string) string {
	const length = len("sha256:") + 12
	if len(digest) > length {
		return digest[:length]
	}
	return digest
}
