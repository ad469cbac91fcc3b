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
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/policy"
	"github.com/bellwether-dev/bellwether/rollouts/target"
)

// PlanInput is what a dry run is made of.
type PlanInput struct {
	Now      time.Time
	Operator *v1alpha1.ManagedOperator
	Waves    []rollouts.WavePreview
	// Strategy with every default filled in.
	Strategy v1alpha1.RolloutStrategy
	Clusters []v1alpha1.FleetCluster
	// Held are the clusters with what would hold back their admission now.
	Held     []rollouts.Cluster
	Installs []v1alpha1.OperatorInstall
	// Running is a rollout of the operator that has not ended, or nil.
	Running *v1alpha1.OperatorRollout
	// Package is nil where the catalog cannot be read from here; Unread is why.
	Package *catalogs.Package
	Unread  error
	Channel string
	Target  *catalogs.Bundle
	// Reason is why it is this target, where the spec names a range or no version; Waiting is a higher one that needs
	// an approval.
	Reason  string
	Waiting *target.Update
	// Unsupported warns of a target that is not supported any more.
	Unsupported string
	// NewPermissions says which rights the target asks for that what runs does not have;
	// empty where there are none.
	NewPermissions string
	// Policies say what RolloutPolicies make of the waves.
	Policies policy.Outcome
	policies *policy.Set
	catalog  *v1alpha1.OperatorCatalog
}

// Plan shows what a rollout would do if it were started now.
func Plan(in PlanInput, s term.Style, wide bool) string {
	var out strings.Builder
	if wide {
		s.Width = 0
	}
	out.WriteString(s.Lines(term.Strong, planTitle(in)))
	if in.Reason != "" {
		out.WriteString(s.Lines(term.Plain, fmt.Sprintf("Target: %s.", phrase.OneLine(in.Reason))))
	}
	out.WriteString(s.Paint(term.Dim, "Preview: nothing is changed.") + "\n\n")
	out.WriteString(pathTable(in).Render(s))
	out.WriteByte('\n')
	out.WriteString(planTable(in, wide).Render(s))
	for i, note := range planNotes(in) {
		if i == 0 {
			out.WriteByte('\n')
		}
		out.WriteString(s.Lines(term.Warn, "! "+note))
	}
	return out.String()
}

func planTitle(in PlanInput) string {
	version := cmp.Or(in.Operator.Spec.Version, "the channel's head")
	if in.Target != nil {
		version = in.Target.VersionString()
	}
	return fmt.Sprintf("%s: %s to %s (channel %s, catalog %s)", in.Operator.Name, in.Operator.Spec.Package, version,
		cmp.Or(in.Channel, "default"), in.Operator.Spec.Catalog.Name)
}

// present is a bundle that runs on some of the selected clusters.
type present struct {
	bundle, version string
	clusters        []string
}

// presentVersions sorts the selected clusters by what they run.
func presentVersions(in PlanInput) []present {
	installed := map[string]*v1alpha1.InstalledVersion{}
	for i := range in.Installs {
		installed[in.Installs[i].Spec.Cluster] = in.Installs[i].Status.Installed
	}
	found := map[string]*present{}
	for _, w := range in.Waves {
		for _, c := range w.Clusters {
			p := present{}
			if v := installed[c]; v != nil {
				p.bundle, p.version = v.Bundle, cmp.Or(v.Version, v.Bundle)
			}
			if found[p.bundle] == nil {
				found[p.bundle] = &p
			}
			found[p.bundle].clusters = append(found[p.bundle].clusters, c)
		}
	}
	var out []present
	for _, p := range found {
		slices.Sort(p.clusters)
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b present) int {
		return cmp.Or(catalogs.CompareVersions(b.version, a.version), cmp.Compare(a.bundle, b.bundle))
	})
	return out
}

func pathTable(in PlanInput) *term.Table {
	t := &term.Table{Header: []string{"FROM", "CLUSTERS", "PATH"}, Wrap: true}
	for _, p := range presentVersions(in) {
		t.Add(term.Cell{Text: cmp.Or(p.version, "(none)")}, term.Cell{Text: term.Count(len(p.clusters))},
			pathCell(in, p))
	}
	return t
}

func pathCell(in PlanInput, p present) term.Cell {
	if in.Package == nil || in.Target == nil {
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

func planTable(in PlanInput, wide bool) *term.Table {
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
			gates = term.Warn.Cell(gateNames(w))
		}
		row := []term.Cell{term.Strong.Cell(w.Name), {Text: term.Count(len(w.Clusters))},
			{Text: term.Count(w.MaxConcurrency)}, {Text: term.Count(w.MaxFailures)}, {Text: term.Span(w.Soak)}}
		if wide {
			row = append(row, term.PlainCells(term.Span(w.Deadline), term.Span(w.UnreadyGrace))...)
		}
		t.Add(append(row, gates, term.Cell{Text: memberList(w.Clusters, wide)})...)
	}
	return t
}

// memberList names the members of a wave, or the first of them.
func memberList(clusters []string, wide bool) string {
	const most = 8
	if wide || len(clusters) <= most {
		return term.OrDash(strings.Join(clusters, ", "))
	}
	return phrase.First(clusters, most) + " (-o wide)"
}

// planNotes are what a person should know before starting it.
func planNotes(in PlanInput) []string {
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
	notes = append(notes, deferredNotes(in, members)...)
	notes = append(notes, policyNotes(in)...)
	notes = append(notes, heldNotes(in, members)...)
	if in.Operator.Spec.Paused {
		notes = append(notes, "The operator is paused: no rollout starts until spec.paused is false.")
	}
	adopting := in.Running != nil && in.Running.Spec.Release.AsInstalled
	if in.Operator.Spec.AdoptsFirst(&in.Operator.Status) && !adopting {
		notes = append(notes, "Before that, a rollout with the same waves takes over what others installed, in the "+
			"versions that the clusters have. Clusters without the operator are not changed by it.")
	}
	if in.Running != nil {
		notes = append(notes, runningNote(in))
	}
	return notes
}

// deferredNotes name the members that are not reached at first.
func deferredNotes(in PlanInput, members map[string]bool) []string {
	var notes, offline, unreachable, paused []string
	for i := range in.Clusters {
		c := &in.Clusters[i]
		switch {
		case !members[c.Name]:
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
	does := "be deferred and catch up later"
	if in.Strategy.Offline == v1alpha1.OfflineFail {
		does = "count as failed"
	}
	if len(offline) > 0 {
		notes = append(notes, fmt.Sprintf("Offline clusters would %s: %s.", does, memberList(offline, false)))
	}
	if len(unreachable) > 0 {
		notes = append(notes, fmt.Sprintf("Clusters whose API server does not answer their agent would %s: %s.", does,
			memberList(unreachable, false)))
	}
	if len(paused) > 0 {
		notes = append(notes, fmt.Sprintf("Paused clusters would be deferred: %s.", memberList(paused, false)))
	}
	return notes
}

// runningNote says what becomes of the rollout that runs now.
func runningNote(in PlanInput) string {
	release := in.Running.Spec.Release
	does := "is in progress and would be superseded"
	switch {
	case release.AsInstalled && in.Operator.Spec.AdoptsFirst(&in.Operator.Status):
		does = "is in progress, and the one that is shown here follows it"
	case in.Target != nil && in.Target.Name == release.Bundle:
		does = "is already in progress"
	case in.Strategy.NewTarget == v1alpha1.NewTargetFinish:
		does = "is in progress and would end first"
	}
	return fmt.Sprintf("Rollout %s %s %s.", in.Running.Name, release.Purpose(), does)
}
