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

// backupOnly is the part of an OperatorInstall's spec that BackupManager owns.
type backupOnly struct {
	Backup *v1alpha1.BackupPolicy `json:"backup,omitempty"`
}

// writeBackupPolicy records the backup policy in OperatorInstalls. Agents read it.
func (r *Reconciler) writeBackupPolicy(ctx context.Context, in operators.Input, next operators.Decision) error {
	if len(next.SetBackup) == 0 {
		return nil
	}
	spec := backupOnly{Backup: in.Operator.Spec.Backup}
	log.FromContext(ctx).Info("Backup policy written", "installs", len(next.SetBackup))
	return kit.ForEach(next.SetBackup, func(key types.NamespacedName) error {
		return kit.ApplyInstall(ctx, r.Client, kit.BackupManager, key, spec)
	})
}
