// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/policy"
)

// writePolicies lists the RolloutPolicies that apply to the rollout and the requirements that they add.
func writePolicies(out *strings.Builder, in RolloutInput, s term.Style) {
	applied := in.Rollout.Status.Policies
	if len(applied) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s\n", s.Paint(term.Strong, "bound by policies"))
	out.WriteString(buildPolicyTable(applied).Render(s))
}

func buildPolicyTable(applied []v1alpha1.AppliedPolicy) *term.Table {
	t := &term.Table{Header: []string{"POLICY", "WAVES", "ADDS"}, Wrap: true}
	for _, a := range applied {
		t.Add(term.Strong.Cell(a.Name), term.Cell{Text: phrase.First(a.Waves, maxNames)},
			term.Cell{Text: term.DefaultIfEmpty(phrase.OneLine(strings.Join(a.Added, "; ")),
				"nothing that the strategy does not ask for")})
	}
	return t
}

// setPlanWaves reads the RolloutPolicies and sets in.Waves to the waves of a rollout that starts now.
func setPlanWaves(ctx context.Context, h client.Reader, in *PlanInput) error {
	var policies v1alpha1.RolloutPolicyList
	if err := h.List(ctx, &policies); err != nil {
		return fmt.Errorf("list rollout policies: %w", err)
	}
	in.policies = policy.Read(policies.Items, policy.Operator{
		OperatorReference: v1alpha1.OperatorReference(client.ObjectKeyFromObject(in.Operator)),
		Labels:            in.Operator.Labels,
	})
	var err error
	in.Waves, in.Policies, err = rollouts.Preview(in.Operator.Spec.ClusterSelector, in.Strategy,
		observeClusters(in.Clusters), in.policies)
	if err != nil {
		return fmt.Errorf("plan waves: %w", err)
	}
	return nil
}

// listPolicyNotes returns what policies add to the waves, and the requirement of a policy
// that the rollout does not meet.
func listPolicyNotes(in PlanInput) []string {
	var notes []string
	if unmet := in.Policies.Unmet; unmet != "" {
		notes = append(notes, fmt.Sprintf("Nothing would be admitted: %s.", unmet))
	}
	for _, a := range in.Policies.Applied {
		if len(a.Added) > 0 {
			notes = append(notes, fmt.Sprintf("RolloutPolicy %s adds: %s.", a.Name, strings.Join(a.Added, "; ")))
		}
	}
	return notes
}

// formatGates returns the names of the gates of a planned wave. Gates that wait for an approval are marked.
func formatGates(w rollouts.WavePreview) string {
	approvals := map[string]bool{}
	for _, name := range w.Approvals {
		approvals[name] = true
	}
	names := make([]string, 0, len(w.Gates))
	for _, name := range w.Gates {
		if approvals[name] {
			name += " (approval)"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
