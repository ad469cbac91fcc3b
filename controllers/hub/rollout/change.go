// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/changes"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// operatorVersion is a version of an operator, used as a map key.
type operatorVersion struct {
	operator types.NamespacedName
	version  string
}

// collectChanges sends, for each version of an operator, the gauges of the newest rollout
// that started with that version: when it started, and which of its waves failed. An alert
// names a version, and the newest rollout of the operator can have a different version, for
// example after a rollback.
func collectChanges(ctx context.Context, cache client.Reader, all []v1alpha1.OperatorRollout,
	out chan<- prometheus.Metric) error {
	var installs v1alpha1.OperatorInstallList
	if err := cache.List(ctx, &installs, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list OperatorInstalls: %w", err)
	}
	previousVersions := changes.VersionsBefore(all, installs.Items)
	newest := map[operatorVersion]*v1alpha1.OperatorRollout{}
	for i := range all {
		ro := &all[i]
		key := operatorVersion{types.NamespacedName{Namespace: ro.Namespace, Name: ro.Spec.Operator.Name},
			ro.Spec.Release.Version}
		if ro.Spec.Release.AsInstalled {
			continue // the rollout changes no version, so its failures are not caused by a version
		}
		known := newest[key]
		if ro.Status.StartedAt != nil && (known == nil || known.Spec.Revision < ro.Spec.Revision) {
			newest[key] = ro
		}
	}
	for _, ro := range newest {
		gaugeWriter{ro, out}.writeTime(changeStartDesc, ro.Status.StartedAt, ro.Name, ro.Spec.Release.Version,
			changes.VersionBefore(ro, previousVersions[string(ro.UID)]), changes.Kind(ro), ro.Status.CurrentWave,
			changes.ApprovedBy(ro))
		gaugeWriter{ro, out}.writeFailedWaves()
	}
	return nil
}
