// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
)

// TestStorageMigrationIsAskedForOnceARolloutHasSucceeded checks for which release agents may migrate custom resources.
func TestStorageMigrationIsAskedForOnceARolloutHasSucceeded(t *testing.T) {
	both := []types.NamespacedName{{Namespace: "bellwether-a", Name: "team.echo"},
		{Namespace: "bellwether-b", Name: "team.echo"}}
	hash := newInput(t).Rollouts[0].Spec.Release.Hash()
	asked, waiting := &v1alpha1.StorageMigration{ReleaseHash: hash}, &v1alpha1.StorageMigration{}
	for name, test := range map[string]struct {
		policy v1alpha1.StorageMigrationPolicy
		has    [2]*v1alpha1.StorageMigration
		change func(*operators.Input)
		set    []types.NamespacedName
		want   *v1alpha1.StorageMigration
	}{
		"no policy":            {},
		"it is left to people": {policy: v1alpha1.StorageMigrationManual},
		"it is no longer asked for": {policy: v1alpha1.StorageMigrationManual,
			has: [2]*v1alpha1.StorageMigration{asked, nil}, set: both[:1]},
		"the rollout has succeeded": {policy: v1alpha1.StorageMigrationAutomatic, set: both, want: asked},
		"it is there": {policy: v1alpha1.StorageMigrationAutomatic,
			has: [2]*v1alpha1.StorageMigration{asked, asked.DeepCopy()}, want: asked},
		"one waits": {policy: v1alpha1.StorageMigrationAutomatic,
			has: [2]*v1alpha1.StorageMigration{asked, waiting}, set: both[1:], want: asked},
		"the first rollout goes on": {policy: v1alpha1.StorageMigrationAutomatic, set: both, want: waiting,
			change: func(in *operators.Input) { in.Rollouts[0].Status.Phase = v1alpha1.RolloutProgressing }},
		"the first rollout was rolled back": {policy: v1alpha1.StorageMigrationAutomatic, set: both, want: waiting,
			change: func(in *operators.Input) { in.Rollouts[0].Status.Phase = v1alpha1.RolloutRolledBack }},
		"it was a rollback": {policy: v1alpha1.StorageMigrationAutomatic, set: both, want: waiting,
			change: func(in *operators.Input) { in.Rollouts[0].Spec.Rollback = &v1alpha1.RolloutRollback{} }},
		"a newer rollout goes on": {policy: v1alpha1.StorageMigrationAutomatic, set: both, want: asked,
			change: func(in *operators.Input) {
				newer := *in.Rollouts[0].DeepCopy()
				newer.Name, newer.Spec.Revision, newer.Spec.Release.Version = "echo-2", 2, "1.2.0"
				newer.Status.Phase = v1alpha1.RolloutProgressing
				in.Rollouts = append(in.Rollouts, newer)
			}},
		"a newer rollout has succeeded too": {policy: v1alpha1.StorageMigrationAutomatic, set: both, want: asked,
			change: func(in *operators.Input) {
				older := *in.Rollouts[0].DeepCopy()
				in.Rollouts[0].Spec.Revision = 2
				older.Name, older.Spec.Release.Version = "echo-0", "1.0.0"
				in.Rollouts = append(in.Rollouts, older)
			}},
		"another write comes first": {policy: v1alpha1.StorageMigrationAutomatic,
			change: func(in *operators.Input) {
				in.Operator.Spec.Backup = &v1alpha1.BackupPolicy{Schedule: "@daily"}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput(t)
			in.Operator.Spec.StorageMigration = test.policy
			for i := range in.Installs {
				in.Installs[i].StorageMigration = test.has[i]
			}
			if test.change != nil {
				test.change(&in)
			}
			next := operators.Next(in)
			if diff := cmp.Diff(test.set, next.SetStorageMigration); diff != "" {
				t.Errorf("installs to write (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, next.StorageMigration); diff != "" {
				t.Errorf("what is asked for (-want +got):\n%s", diff)
			}
		})
	}
}
