// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

const resumeLong = `Go on with an operator that the hub found on clusters.

A hub that was made anew, or restored from an old backup, finds operators on clusters that it
did not admit there. It changes nothing: the operator has the reason Recovered, and no cluster is
admitted. Look at what was found with operator get, and wait until all clusters have joined. The
hub then rolls out what the ManagedOperator asks for, wave by wave. Versions that were held stay
held.

With --all every operator in the namespace that waits is resumed (with -A: in all namespaces).`

func (a *app) newResumeCommand() *cobra.Command {
	var all bool
	var scope command.Scope
	c := &cobra.Command{
		Use: "resume NAME | --all", Short: "Go on with an operator that the hub found on clusters",
		Long: resumeLong, Example: "  bellwether operator resume echo\n  bellwether operator resume --all -A",
		Args: command.AtMostOne, ValidArgsFunction: a.CompleteFirst(command.ListOperatorNames),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case all == (len(args) == 1): // both or none
				return exit.Hintf("usage: "+c.UseLine(), "set either the name of the operator or --all")
			case scope.All && !all:
				return exit.Hintf("set --all too", "--all-namespaces has no effect without --all")
			case all:
				return a.resumeAll(c.Context(), scope.All)
			}
			return a.resumeNamed(c.Context(), args[0])
		},
	}
	c.Flags().BoolVar(&all, "all", false, "Resume every operator that waits for it.")
	scope.Add(c)
	return c
}

// resumeNamed resumes one operator, which must wait for it.
func (a *app) resumeNamed(ctx context.Context, name string) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	o, err := h.Operator(ctx, name)
	if err != nil {
		return err
	}
	if o.Status.Recovery == nil {
		return fmt.Errorf("operator %s does not wait to be resumed", name)
	}
	return a.resume(ctx, h, o)
}

// resumeAll resumes every operator that waits for it, and returns all failures.
func (a *app) resumeAll(ctx context.Context, allNamespaces bool) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	var list v1alpha1.ManagedOperatorList
	var options []client.ListOption
	if !allNamespaces {
		options = append(options, client.InNamespace(h.Namespace))
	}
	if err := h.List(ctx, &list, options...); err != nil {
		return fmt.Errorf("list operators: %w", err)
	}
	resumed, failures := 0, []error{}
	for i := range list.Items {
		if list.Items[i].Status.Recovery == nil {
			continue
		}
		if err := a.resume(ctx, h, &list.Items[i]); err != nil {
			failures = append(failures, err)
			continue
		}
		resumed++
	}
	if resumed == 0 && len(failures) == 0 {
		a.Step("no operator waits to be resumed")
	}
	return errors.Join(failures...)
}

// resume confirms the request in the operator's status. The resource version is a precondition, so that the user
// confirms only the state that the command has read.
func (a *app) resume(ctx context.Context, h *hub.Client, o *v1alpha1.ManagedOperator) error {
	before := o.DeepCopy()
	o.Spec.Resume = o.Status.Recovery.Request
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := h.Patch(ctx, o, patch, hub.FieldOwner); err != nil {
		return fmt.Errorf("resume operator %s: %w", o.Name, err)
	}
	a.Step("operator %s goes on; it was found on %s", o.Name, phrase.Count(before.Status.Recovery.Clusters, "cluster"))
	return nil
}
