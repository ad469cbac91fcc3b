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
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// writeNotAdmitted lists the clusters that cannot be admitted now, with the reason and the end of the hold. Before
// the list it writes the override of ChangeWindows and, until the rollout has ended, the warnings about the release.
func writeNotAdmitted(out *strings.Builder, in RolloutInput, s term.Style) {
	r := in.Rollout
	if o := r.Spec.WindowOverride; o != nil {
		out.WriteString("\n" + s.Lines(term.Warn, "ChangeWindows are overridden by "+o.By+": "+o.Reason))
	}
	if needs := r.Spec.Requirements; needs != nil && needs.NotRead != "" && !r.Status.Phase.Ended() {
		out.WriteString("\n" + s.Lines(term.Warn, "not checked before admission: "+needs.NotRead))
	}
	if needs := r.Spec.Requirements; needs != nil && len(needs.AddedPermissions) > 0 && !r.Status.Phase.Ended() {
		out.WriteString("\n" + s.Lines(term.Warn, "warning: "+rollouts.ExplainNewPermissions(needs)))
	}
	if problem := holds.ExplainSupportProblem(r.Spec.Requirements, r.Spec.Release.Bundle, in.Now); problem != "" &&
		!r.Status.Phase.Ended() {
		out.WriteString("\n" + s.Lines(term.Warn, "warning: "+problem))
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
			term.Cell{Text: phrase.First(g.Clusters, maxNames) + prefixColon(phrase.OneLine(g.Message))})
	}
	out.WriteString(t.Render(s))
}

const maxNames = 5

// setPlanHolds sets in.Held to the clusters with the holds that would block their admission if a rollout started now.
// It also sets the warnings about new permissions and an unsupported target.
func setPlanHolds(ctx context.Context, h client.Reader, in *PlanInput) error {
	// The list includes the windows that RolloutPolicies require.
	var windows v1alpha1.ChangeWindowList
	if err := h.List(ctx, &windows); err != nil {
		return fmt.Errorf("list change windows: %w", err)
	}
	in.Held = observeClusters(in.Clusters)
	input := holds.Input{Now: in.Now, Operator: v1alpha1.OperatorReference(client.ObjectKeyFromObject(in.Operator)),
		OperatorLabels: in.Operator.Labels, Windows: windows.Items, Policies: in.policies}
	for i := range in.Installs {
		input.Installs = append(input.Installs, rollouts.ObserveInstall(&in.Installs[i]))
	}
	var permitted v1alpha1.FleetAccessList
	if err := h.List(ctx, &permitted); err != nil {
		return fmt.Errorf("list FleetAccess objects: %w", err)
	}
	var freezes v1alpha1.FleetFreezeList
	// A hub of an earlier version does not have the kind FleetFreeze.
	if err := h.List(ctx, &freezes); err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("list FleetFreezes: %w", err)
	}
	input.Freezes = freezes.Items
	input.Access = holds.DecideAccess(permitted.Items, in.Operator.Namespace,
		holds.ReleaseForAccess(in.Operator, in.catalog))
	if in.Target != nil {
		input.Release, input.Requirements = in.Target.Name, computeRequirements(*in)
		if len(input.Requirements.AddedPermissions) > 0 {
			in.NewPermissions = rollouts.ExplainNewPermissions(input.Requirements)
		}
		in.Unsupported = holds.ExplainSupportProblem(input.Requirements, input.Release, in.Now)
	}
	holds.SetHolds(input, in.Held)
	return nil
}

// computeRequirements returns the requirements of the target on a cluster, as far as the catalog contains them. The
// images of bundles are not read.
func computeRequirements(in PlanInput) *v1alpha1.ReleaseRequirements {
	release := v1alpha1.Release{Channel: in.Channel, Bundle: in.Target.Name}
	var installed []catalogs.Installed
	for i := range in.Installs {
		if version := in.Installs[i].Status.Installed; version != nil {
			installed = append(installed, catalogs.Installed{Name: version.Bundle, Version: version.Version})
		}
	}
	return preflight.Requirements(in.Package, release, preflight.Upgrades(in.Package, release, installed))
}

// listHoldNotes returns one note for each reason that would block members of the waves now, with the names of these
// members. A member counts only for its first hold.
func listHoldNotes(in PlanInput, members map[string]bool) []string {
	var order []string
	groups := map[string][]string{}
	for _, c := range in.Held {
		if !members[c.Name] || len(c.Holds) == 0 {
			continue
		}
		hold := c.Holds[0]
		if _, exists := groups[hold.Message]; !exists {
			order = append(order, hold.Message)
		}
		groups[hold.Message] = append(groups[hold.Message], c.Name)
	}
	var notes []string
	for _, message := range order {
		notes = append(notes, fmt.Sprintf("Clusters would not be admitted now: %s: %s.",
			formatMembers(groups[message], false), message))
	}
	return notes
}
