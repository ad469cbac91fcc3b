// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/preflight"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/access"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// writeHeldBack says which clusters are not admitted now, why and until when, and
// which holds a person has overridden.
func writeHeldBack(out *strings.Builder, in RolloutInput, s term.Style) {
	r := in.Rollout
	if o := r.Spec.WindowOverride; o != nil {
		out.WriteString("\n" + s.Lines(term.Warn, "ChangeWindows are overridden by "+o.By+": "+o.Reason))
	}
	if needs := r.Spec.Requirements; needs != nil && needs.NotRead != "" && !r.Status.Phase.Ended() {
		out.WriteString("\n" + s.Lines(term.Warn, "not checked before admission: "+needs.NotRead))
	}
	if needs := r.Spec.Requirements; needs != nil && len(needs.AddedPermissions) > 0 && !r.Status.Phase.Ended() {
		out.WriteString("\n" + s.Lines(term.Warn, "warning: "+rollouts.NewPermissions(needs)))
	}
	if ended := holds.SupportProblem(r.Spec.Requirements, r.Spec.Release.Bundle, in.Now); ended != "" &&
		!r.Status.Phase.Ended() {
		out.WriteString("\n" + s.Lines(term.Warn, "warning: "+ended))
	}
	if len(r.Status.HeldBack) == 0 || r.IsStopped() {
		return
	}
	fmt.Fprintf(out, "\n%s\n", s.Paint(term.Strong, "not admitted now"))
	t := &term.Table{Header: []string{"CLUSTERS", "REASON", "UNTIL", "MESSAGE"}, Wrap: true}
	for _, g := range r.Status.HeldBack {
		until := term.Cell{Text: "-", Tone: term.Dim}
		if g.Until != nil {
			until = term.Cell{Text: term.Clock(in.Now, g.Until)}
		}
		t.Add(term.Cell{Text: term.Count(int(g.Count))}, term.Warn.Cell(g.Reason), until,
			term.Cell{Text: phrase.First(g.Clusters, maxNames) + colon(phrase.OneLine(g.Message))})
	}
	out.WriteString(t.Render(s))
}

const maxNames = 5

// previewHolds finds what would hold back the clusters of a rollout that started now.
func previewHolds(ctx context.Context, h client.Reader, in *PlanInput) error {
	// Windows that policies ask for are among those that count.
	var windows v1alpha1.ChangeWindowList
	if err := h.List(ctx, &windows); err != nil {
		return fmt.Errorf("list change windows: %w", err)
	}
	in.Held = planClusters(in.Clusters)
	all := holds.Input{Now: in.Now, Operator: v1alpha1.OperatorReference(client.ObjectKeyFromObject(in.Operator)),
		OperatorLabels: in.Operator.Labels, Windows: windows.Items, Policies: in.policies}
	for i := range in.Installs {
		all.Installs = append(all.Installs, rollouts.ObserveInstall(&in.Installs[i]))
	}
	var permitted v1alpha1.FleetAccessList
	if err := h.List(ctx, &permitted); err != nil {
		return fmt.Errorf("list FleetAccess objects: %w", err)
	}
	var freezes v1alpha1.FleetFreezeList
	if err := h.List(ctx, &freezes); err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("list FleetFreezes: %w", err)
	}
	all.Freezes = freezes.Items
	all.Access = access.Decide(permitted.Items, in.Operator.Namespace, access.ReleaseOf(in.Operator, in.catalog))
	if in.Target != nil {
		all.Release, all.Requirements = in.Target.Name, requirements(*in)
		if len(all.Requirements.AddedPermissions) > 0 {
			in.NewPermissions = rollouts.NewPermissions(all.Requirements)
		}
		in.Unsupported = holds.SupportProblem(all.Requirements, all.Release, in.Now)
	}
	holds.Set(all, in.Held)
	return nil
}

// requirements are what the target needs of a cluster, as far as the catalog says so
// itself: images of bundles are not read.
func requirements(in PlanInput) *v1alpha1.ReleaseRequirements {
	release := v1alpha1.Release{Channel: in.Channel, Bundle: in.Target.Name}
	var installed []catalogs.Installed
	for i := range in.Installs {
		if is := in.Installs[i].Status.Installed; is != nil {
			installed = append(installed, catalogs.Installed{Name: is.Bundle, Version: is.Version})
		}
	}
	return preflight.Requirements(in.Package, release, preflight.Upgrades(in.Package, release, installed))
}

// heldNotes say which members of the waves would not be admitted now, by reason.
func heldNotes(in PlanInput, members map[string]bool) []string {
	var order []string
	groups := map[string][]string{}
	for _, c := range in.Held {
		if !members[c.Name] || len(c.Holds) == 0 {
			continue
		}
		hold := c.Holds[0]
		if _, known := groups[hold.Message]; !known {
			order = append(order, hold.Message)
		}
		groups[hold.Message] = append(groups[hold.Message], c.Name)
	}
	var notes []string
	for _, message := range order {
		notes = append(notes, fmt.Sprintf("Clusters would not be admitted now: %s: %s.",
			memberList(groups[message], false), message))
	}
	return notes
}
