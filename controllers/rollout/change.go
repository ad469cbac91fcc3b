// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/series"
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
	before := versionsBefore(all, installs.Items)
	newest := map[versionOf]*v1alpha1.OperatorRollout{}
	for i := range all {
		ro := &all[i]
		key := versionOf{types.NamespacedName{Namespace: ro.Namespace, Name: ro.Spec.Operator.Name},
			ro.Spec.Release.Version}
		known := newest[key]
		if ro.Status.StartedAt != nil && (known == nil || known.Spec.Revision < ro.Spec.Revision) {
			newest[key] = ro
		}
	}
	for _, ro := range newest {
		sample{ro, out}.time(changeStartDesc, ro.Status.StartedAt, ro.Name, ro.Spec.Release.Version,
			versionBefore(ro, before[string(ro.UID)]), kindOf(ro), ro.Status.CurrentWave, approvedBy(ro))
		sample{ro, out}.failedWaves()
	}
	return nil
}

// versionsBefore counts, for each rollout by its UID, the versions that clusters ran
// before it admitted them. A rollback keeps what they ran before the rollout that it
// rolls back.
func versionsBefore(all []v1alpha1.OperatorRollout, installs []v1alpha1.OperatorInstall) map[string]map[string]int {
	rolledBack := map[string]string{}
	for i := range all {
		if r := all[i].Spec.Rollback; r != nil {
			rolledBack[string(all[i].UID)] = r.UID
		}
	}
	before := map[string]map[string]int{}
	for i := range installs {
		a := installs[i].Spec.Admission
		if a == nil || a.Previous == nil {
			continue
		}
		rollout := a.RolloutUID
		if of := rolledBack[rollout]; of != "" {
			rollout = of
		}
		if before[rollout] == nil {
			before[rollout] = map[string]int{}
		}
		before[rollout][a.Previous.Version]++
	}
	return before
}

// versionBefore is the version that a rollout changes clusters from; empty where it is
// not known.
func versionBefore(ro *v1alpha1.OperatorRollout, counts map[string]int) string {
	if ro.Spec.Rollback != nil {
		return ro.Spec.Rollback.Version
	}
	total := 0
	for _, n := range counts {
		total += n
	}
	for version, n := range counts {
		if 2*n > total {
			return version
		}
	}
	if total > 0 {
		return series.SeveralVersions
	}
	return ""
}

func kindOf(ro *v1alpha1.OperatorRollout) string {
	switch r := ro.Spec.Rollback; {
	case r == nil:
		return series.KindRollout
	case r.Automatic:
		return series.KindAutomaticRollback
	}
	return series.KindRollback
}

// approvedBy is who approved a wave last; empty where nobody did. The API bounds the
// length of user names.
func approvedBy(ro *v1alpha1.OperatorRollout) string {
	if len(ro.Spec.Approvals) == 0 {
		return ""
	}
	return slices.MaxFunc(ro.Spec.Approvals, func(a, b v1alpha1.Approval) int { return a.At.Compare(b.At.Time) }).By
}
