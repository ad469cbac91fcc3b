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
	"github.com/bellwether-dev/bellwether/controllers/operator/plan"
)

// recover gives installs the admissions that their clusters keep.
func (r *Reconciler) recover(ctx context.Context, next plan.Decision) error {
	return kit.ForEach(next.Recover, func(a plan.Recovery) error {
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
