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

// versionOf identifies a version of an operator.
type versionOf struct {
	operator types.NamespacedName
	version  string
}

// collectChanges writes what the newest started rollout of each version changes, and
// which of its waves were judged failed. An alert blames a version, which the newest
// rollout of the operator may not bring any more: it may be the rollback.
func collectChanges(ctx context.Context, cache client.Reader, all []v1alpha1.OperatorRollout,
	out chan<- prometheus.Metric) error {
	var installs v1alpha1.OperatorInstallList
	if err := cache.List(ctx, &installs, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list OperatorInstalls: %w", err)
	}
	before := changes.VersionsBefore(all, installs.Items)
	newest := map[versionOf]*v1alpha1.OperatorRollout{}
	for i := range all {
		ro := &all[i]
		key := versionOf{types.NamespacedName{Namespace: ro.Namespace, Name: ro.Spec.Operator.Name},
			ro.Spec.Release.Version}
		if ro.Spec.Release.AsInstalled {
			continue // it changes no version, and no version is to blame for its failures
		}
		known := newest[key]
		if ro.Status.StartedAt != nil && (known == nil || known.Spec.Revision < ro.Spec.Revision) {
			newest[key] = ro
		}
	}
	for _, ro := range newest {
		sample{ro, out}.time(changeStartDesc, ro.Status.StartedAt, ro.Name, ro.Spec.Release.Version,
			changes.VersionBefore(ro, before[string(ro.UID)]), changes.Kind(ro), ro.Status.CurrentWave,
			changes.ApprovedBy(ro))
		sample{ro, out}.failedWaves()
	}
	return nil
}
