// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
	"github.com/bellwether-dev/bellwether/rollouts/policy"
)

// PlanInput has the data that a preview of a rollout shows.
type PlanInput struct {
	Now      time.Time
	Operator *v1alpha1.ManagedOperator
	Waves    []rollouts.WavePreview
	// Strategy is the strategy of the operator with all defaults.
	Strategy v1alpha1.RolloutStrategy
	Clusters []v1alpha1.FleetCluster
	// Held are the clusters with the holds that would block their admission now.
	Held     []rollouts.Cluster
	Installs []v1alpha1.OperatorInstall
	// Running is a rollout of the operator that has not ended, or nil.
	Running *v1alpha1.OperatorRollout
	// Package is nil if the catalog cannot be read from this machine; Unread is the reason.
	Package *catalogs.Package
	Unread  error
	Channel string
	Target  *catalogs.Bundle
	// Reason is why the hub chooses this target, if the spec has a range or no version. Waiting is a higher
	// version that needs an approval.
	Reason  string
	Waiting *operators.WaitingUpdate
	// Unsupported is a warning that the target is no longer supported; empty if it is supported.
	Unsupported string
	// NewPermissions lists the permissions that the target requests and the installed versions do not
	// have; empty if there are none.
	NewPermissions string
	// Policies is the effect of the RolloutPolicies on the waves.
	Policies policy.Outcome
	policies *policy.Set
	catalog  *v1alpha1.OperatorCatalog
}

// RenderPlan returns the text that shows what a rollout would do if it started now. wide adds columns, and its lines
// are not broken.
func RenderPlan(in PlanInput, s term.Style, wide bool) string {
	var out strings.Builder
	if wide {
		s.Width = 0
	}
	out.WriteString(s.Lines(term.Strong, formatPlanTitle(in)))
	if in.Reason != "" {
		out.WriteString(s.Lines(term.Plain, fmt.Sprintf("Target: %s.", phrase.OneLine(in.Reason))))
	}
	out.WriteString(s.Paint(term.Dim, "Preview: nothing is changed.") + "\n\n")
	out.WriteString(buildPathTable(in).Render(s))
	out.WriteByte('\n')
	out.WriteString(buildPlanTable(in, wide).Render(s))
	for i, note := range listPlanNotes(in) {
		if i == 0 {
			out.WriteByte('\n')
		}
		out.WriteString(s.Lines(term.Warn, "! "+note))
	}
	return out.String()
}

func formatPlanTitle(in PlanInput) string {
	version := cmp.Or(in.Operator.Spec.Version, "the channel's head")
	if in.Target != nil {
		version = in.Target.VersionString()
	}
	return fmt.Sprintf("%s: %s to %s (channel %s, catalog %s)", in.Operator.Name, in.Operator.Spec.Package, version,
		cmp.Or(in.Channel, "default"), in.Operator.Spec.Catalog.Name)
}

// installedVersion is a bundle that runs on some of the selected clusters. The bundle is empty for
// clusters without the operator.
type installedVersion struct {
	bundle, version string
	clusters        []string
}

// groupByInstalledVersion groups the selected clusters by their installed version, the highest version first.
func groupByInstalledVersion(in PlanInput) []installedVersion {
	installed := map[string]*v1alpha1.InstalledVersion{}
	for i := range in.Installs {
		installed[in.Installs[i].Spec.Cluster] = in.Installs[i].Status.Installed
	}
	found := map[string]*installedVersion{}
	for _, w := range in.Waves {
		for _, c := range w.Clusters {
			p := installedVersion{}
			if v := installed[c]; v != nil {
				p.bundle, p.version = v.Bundle, cmp.Or(v.Version, v.Bundle)
			}
			if found[p.bundle] == nil {
				found[p.bundle] = &p
			}
			found[p.bundle].clusters = append(found[p.bundle].clusters, c)
		}
	}
	var out []installedVersion
	for _, p := range found {
		slices.Sort(p.clusters)
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b installedVersion) int {
		return cmp.Or(catalogs.CompareVersions(b.version, a.version), cmp.Compare(a.bundle, b.bundle))
	})
	return out
}

// buildPathTable returns the table with the upgrade path from each installed version to the target.
func buildPathTable(in PlanInput) *term.Table {
	t := &term.Table{Header: []string{"FROM", "CLUSTERS", "PATH"}, Wrap: true}
	for _, p := range groupByInstalledVersion(in) {
		t.Add(term.Cell{Text: cmp.Or(p.version, "(none)")}, term.Cell{Text: term.Count(len(p.clusters))},
			buildPathCell(in, p))
	}
	return t
}

// buildPathCell returns the upgrade path of an installed version to the target, or why there is none.
func buildPathCell(in PlanInput, p installedVersion) term.Cell {
	if in.Package == nil || in.Target == nil { // in.Unread is the reason
		return term.Warn.Cell("unknown: " + phrase.OneLine(in.Unread.Error()))
	}
	path, err := in.Package.PathFrom(in.Channel, catalogs.Installed{Name: p.bundle, Version: p.version}, in.Target.Name)
	switch {
	case errors.Is(err, catalogs.ErrNoPath):
		return term.Bad.Cell(phrase.OneLine(err.Error()))
	case err != nil:
		return term.Bad.Cell(phrase.OneLine(err.Error()))
	case len(path) == 0:
		return term.Good.Cell("already installed")
	case p.bundle == "":
		return term.Plain.Cell("new installation of " + in.Target.VersionString())
	}
	var hops []string
	for _, name := range path {
		if b := in.Package.Bundles[name]; b != nil {
			name = b.VersionString()
		}
		hops = append(hops, name)
	}
	return term.Plain.Cell("→ " + strings.Join(hops, " → "))
}

// buildPlanTable returns the table of the waves with their limits, gates and members. wide adds columns.
func buildPlanTable(in PlanInput, wide bool) *term.Table {
	t := &term.Table{Header: []string{"WAVE", "CLUSTERS", "MAX CONCURRENT", "MAX FAILURES", "SOAK"}, Wrap: true}
	if wide {
		t.Header = append(t.Header, "DEADLINE", "UNREADY GRACE")
	}
	t.Header = append(t.Header, "GATES", "MEMBERS")
	for _, w := range in.Waves {
		if len(w.Clusters) == 0 && w.Name == rollouts.RestWave {
			continue
		}
		gates := term.Dim.Cell("-")
		if len(w.Gates) > 0 {
			gates = term.Warn.Cell(formatGates(w))
		}
		row := []term.Cell{term.Strong.Cell(w.Name), {Text: term.Count(len(w.Clusters))},
			{Text: term.Count(w.MaxConcurrency)}, {Text: term.Count(w.MaxFailures)}, {Text: term.Span(w.Soak)}}
		if wide {
			row = append(row, term.PlainCells(term.Span(w.Deadline), term.Span(w.UnreadyGrace))...)
		}
		t.Add(append(row, gates, term.Cell{Text: formatMembers(w.Clusters, wide)})...)
	}
	return t
}

// formatMembers returns the names of clusters. Unless wide is set, it shortens a long list.
func formatMembers(clusters []string, wide bool) string {
	const maxMembers = 8
	if wide || len(clusters) <= maxMembers {
		return term.DashIfEmpty(strings.Join(clusters, ", "))
	}
	return phrase.First(clusters, maxMembers) + " (-o wide)"
}

// listPlanNotes returns what a person should read before starting the rollout.
func listPlanNotes(in PlanInput) []string {
	var notes []string
	members := map[string]bool{}
	for _, w := range in.Waves {
		for _, c := range w.Clusters {
			members[c] = true
		}
	}
	if len(members) == 0 {
		notes = append(notes, "The cluster selector matches no cluster.")
	}
	if w := in.Waiting; w != nil {
		notes = append(notes, fmt.Sprintf("Version %s waits for an approval: %s.", w.Bundle.VersionString(),
			phrase.OneLine(w.Reason)))
	}
	if in.Unsupported != "" {
		notes = append(notes, "Warning: "+in.Unsupported+".")
	}
	if in.NewPermissions != "" {
		notes = append(notes, "Warning: "+phrase.OneLine(in.NewPermissions)+".")
	}
	notes = append(notes, listDeferredNotes(in, members)...)
	notes = append(notes, listPolicyNotes(in)...)
	notes = append(notes, listHoldNotes(in, members)...)
	if in.Operator.Spec.Paused {
		notes = append(notes, "The operator is paused: no rollout starts until spec.paused is false.")
	}
	adopting := in.Running != nil && in.Running.Spec.Release.AsInstalled
	if in.Operator.Spec.AdoptsFirst(&in.Operator.Status) && !adopting {
		notes = append(notes, "Before that, a rollout with the same waves takes over what others installed, in the "+
			"versions that the clusters have. Clusters without the operator are not changed by it.")
	}
	if in.Running != nil {
		notes = append(notes, formatRunningNote(in))
	}
	return notes
}

// listDeferredNotes returns notes about the offline, unreachable and paused members.
func listDeferredNotes(in PlanInput, members map[string]bool) []string {
	var notes, offline, unreachable, paused []string
	for i := range in.Clusters {
		c := &in.Clusters[i]
		switch {
		case !members[c.Name]: // not in the rollout
		case rollouts.PausedReason(c) != "":
			paused = append(paused, c.Name)
		default:
			switch rollouts.ObserveCluster(c).OfflineReason {
			case v1alpha1.ReasonAgentOffline:
				offline = append(offline, c.Name)
			case v1alpha1.ReasonAPIServerUnreachable:
				unreachable = append(unreachable, c.Name)
			}
		}
	}
	outcome := "be deferred and catch up later"
	if in.Strategy.Offline == v1alpha1.OfflineFail {
		outcome = "count as failed"
	}
	if len(offline) > 0 {
		notes = append(notes, fmt.Sprintf("Offline clusters would %s: %s.", outcome, formatMembers(offline, false)))
	}
	if len(unreachable) > 0 {
		notes = append(notes, fmt.Sprintf("Clusters whose API server does not answer their agent would %s: %s.",
			outcome, formatMembers(unreachable, false)))
	}
	if len(paused) > 0 {
		notes = append(notes, fmt.Sprintf("Paused clusters would be deferred: %s.", formatMembers(paused, false)))
	}
	return notes
}

// formatRunningNote returns what would happen to the rollout that is in progress now.
func formatRunningNote(in PlanInput) string {
	release := in.Running.Spec.Release
	outcome := "is in progress and would be superseded"
	switch {
	case release.AsInstalled && in.Operator.Spec.AdoptsFirst(&in.Operator.Status):
		outcome = "is in progress, and the one that is shown here follows it"
	case in.Target != nil && in.Target.Name == release.Bundle:
		outcome = "is already in progress"
	case in.Strategy.NewTarget == v1alpha1.NewTargetFinish:
		outcome = "is in progress and would end first"
	}
	return fmt.Sprintf("Rollout %s %s %s.", in.Running.Name, release.Purpose(), outcome)
}
