// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
)

// recoverAdmissions writes into OperatorInstalls the admissions that their clusters report.
// It reads each install without the cache, and skips installs that already have the
// admission or are being deleted.
func (r *Reconciler) recoverAdmissions(ctx context.Context, next operators.Decision) error {
	return kit.ForEach(next.Recover, func(a operators.Recovery) error {
		var install v1alpha1.OperatorInstall
		if err := r.Live.Get(ctx, a.Key, &install); err != nil {
			return client.IgnoreNotFound(fmt.Errorf("read OperatorInstall %s: %w", a.Key, err))
		}
		if install.DeletionTimestamp != nil || install.Spec.Admission.Covers(a.Admission) {
			return nil
		}
		part := kit.Part{Object: &install, Labels: install.Labels, Spec: v1alpha1.OperatorInstallSpec{
			Operator: install.Spec.Operator, Cluster: install.Spec.Cluster, Admission: &a.Admission}}
		if _, err := part.Apply(ctx, r.Client, kit.RolloutManager, client.ForceOwnership); err != nil {
			return fmt.Errorf("recover OperatorInstall %s: %w", a.Key, err)
		}
		log.FromContext(ctx).Info("Recovered what the cluster keeps", "cluster", install.Spec.Cluster, "version",
			a.Admission.Release.Version, "revision", a.Admission.Revision)
		return nil
	})
}
