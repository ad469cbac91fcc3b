// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
)

// RunRemovalSteps executes removal steps. A step that fails does not stop the other steps. It is not an
// error if an object does not exist.
func RunRemovalSteps(ctx context.Context, c client.Client, steps []removal.Step) error {
	return ForEach(steps, func(step removal.Step) error {
		if err := removeInstall(ctx, c, step); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove OperatorInstall %s/%s: %w", step.Namespace, step.Name, err)
		}
		return nil
	})
}

// policyOnly is the part of an OperatorInstall's spec that RemovalManager owns.
type policyOnly struct {
	RemovalPolicy v1alpha1.RemovalPolicy `json:"removalPolicy"`
}

// removeInstall executes one removal step of an OperatorInstall.
func removeInstall(ctx context.Context, c client.Client, step removal.Step) error {
	key := client.ObjectKey{Namespace: step.Namespace, Name: step.Name}
	if step.SetPolicy != "" {
		if err := ApplyInstall(ctx, c, RemovalManager, key, policyOnly{step.SetPolicy}); err != nil {
			return fmt.Errorf("set removal policy: %w", err)
		}
	}
	if step.Delete {
		install := &v1alpha1.OperatorInstall{}
		install.Namespace, install.Name = step.Namespace, step.Name
		if err := c.Delete(ctx, install); err != nil {
			return fmt.Errorf("delete: %w", err)
		}
	}
	if step.Release {
		return removeAgentFinalizer(ctx, c, key)
	}
	return nil
}

// removeAgentFinalizer removes the agent's finalizer from an OperatorInstall. Finalizers
// are not part of a field group of the spec: agent and hub patch them with the resource
// version as a precondition.
func removeAgentFinalizer(ctx context.Context, c client.Client, key client.ObjectKey) error {
	var install v1alpha1.OperatorInstall
	if err := c.Get(ctx, key, &install); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	return RemoveFinalizer(ctx, c, &install, v1alpha1.FinalizerAgent)
}
