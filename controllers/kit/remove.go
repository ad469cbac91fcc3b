// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
)

// parallelWrites bounds the writes of one reconcile, so that one object with
// ten thousand clusters does not take the whole client.
const parallelWrites = 16

// Remove carries out steps of removal. A step that fails does not stop the
// others; an object that is gone already is no error.
func Remove(ctx context.Context, c client.Client, steps []removal.Step) error {
	var (
		group  errgroup.Group
		mu     sync.Mutex
		failed []error
	)
	group.SetLimit(parallelWrites)
	for _, step := range steps {
		group.Go(func() error {
			if err := remove(ctx, c, step); client.IgnoreNotFound(err) != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, fmt.Errorf("remove OperatorInstall %s/%s: %w", step.Namespace, step.Name, err))
			}
			return nil
		})
	}
	_ = group.Wait() // errors are collected, so that one does not hide the others
	return errors.Join(failed...)
}

func remove(ctx context.Context, c client.Client, step removal.Step) error {
	install := &v1alpha1.OperatorInstall{}
	install.Namespace, install.Name = step.Namespace, step.Name
	if step.SetPolicy != "" {
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"removalPolicy": step.SetPolicy}})
		if err != nil {
			return fmt.Errorf("encode removal policy: %w", err)
		}
		if err := c.Patch(ctx, install, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return fmt.Errorf("set removal policy: %w", err)
		}
	}
	if step.Delete {
		if err := c.Delete(ctx, install); err != nil {
			return fmt.Errorf("delete: %w", err)
		}
	}
	if step.Release {
		return release(ctx, c, client.ObjectKeyFromObject(install))
	}
	return nil
}

func release(ctx context.Context, c client.Client, key client.ObjectKey) error {
	var install v1alpha1.OperatorInstall
	if err := c.Get(ctx, key, &install); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	before := install.DeepCopy()
	if !controllerutil.RemoveFinalizer(&install, v1alpha1.FinalizerAgent) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.Patch(ctx, &install, patch); err != nil {
		return fmt.Errorf("take the agent's finalizer away: %w", err)
	}
	return nil
}
