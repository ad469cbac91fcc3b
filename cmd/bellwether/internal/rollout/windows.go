// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
)

const overrideWindowsLong = `Let a rollout admit clusters while ChangeWindows are closed. It is meant for
emergencies. The override is stored in the rollout with your user name and the
reason, and holds until the rollout ends. Vetoes on clusters stay in force.

You need permission for the verb override on operatorrollouts (role
bellwether-override).`

func (a *app) newOverrideWindowsCommand() *cobra.Command {
	return a.newChangeCommand(changeCommand{
		use: "override-windows", short: "Admit clusters while ChangeWindows are closed", long: overrideWindowsLong,
		needsReason: true, verb: "override",
		example: "  bellwether rollout override-windows echo --reason \"CVE-2026-1234\"",
		newChange: func(ctx context.Context, h *hub.Client, reason string) (change, error) {
			user, err := h.UserName(ctx)
			if err != nil {
				return nil, err
			}
			return func(r *v1alpha1.OperatorRollout) (string, error) {
				if !r.MayAdmit() {
					return "", newEndedError(r)
				}
				if r.Spec.WindowOverride == nil {
					at := metav1.NewTime(a.Now())
					r.Spec.WindowOverride = &v1alpha1.WindowOverride{By: user, Reason: reason, At: at}
				}
				by := r.Spec.WindowOverride.By
				return fmt.Sprintf("Rollout %s ignores ChangeWindows, as %s decided.", r.Name, by), nil
			}, nil
		},
	})
}
