// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
)

// storageMigrationOnly is the part of an OperatorInstall's spec that MigrationManager owns.
type storageMigrationOnly struct {
	StorageMigration *v1alpha1.StorageMigration `json:"storageMigration,omitempty"`
}

// writeStorageMigration records in OperatorInstalls for which release agents may rewrite stored
// custom resources in the new version.
func (r *Reconciler) writeStorageMigration(ctx context.Context, next operators.Decision) error {
	if len(next.SetStorageMigration) == 0 {
		return nil
	}
	spec := storageMigrationOnly{StorageMigration: next.StorageMigration}
	log.FromContext(ctx).Info("Storage migration written", "installs", len(next.SetStorageMigration),
		"asked", next.StorageMigration != nil)
	return kit.ForEach(next.SetStorageMigration, func(key types.NamespacedName) error {
		return kit.ApplyInstall(ctx, r.Client, kit.MigrationManager, key, spec)
	})
}
