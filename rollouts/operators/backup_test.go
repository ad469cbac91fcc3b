// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
)

func TestTheBackupPolicyIsPassedOn(t *testing.T) {
	daily := &v1alpha1.BackupPolicy{Schedule: "@daily"}
	both := []types.NamespacedName{{Namespace: "bellwether-a", Name: "team.echo"},
		{Namespace: "bellwether-b", Name: "team.echo"}}
	for name, test := range map[string]struct {
		policy *v1alpha1.BackupPolicy
		has    []*v1alpha1.BackupPolicy
		want   []types.NamespacedName
	}{
		"no policy":          {has: []*v1alpha1.BackupPolicy{nil, nil}},
		"a new policy":       {policy: daily, has: []*v1alpha1.BackupPolicy{nil, nil}, want: both},
		"it is there":        {policy: daily, has: []*v1alpha1.BackupPolicy{daily.DeepCopy(), daily.DeepCopy()}},
		"it was removed":     {has: []*v1alpha1.BackupPolicy{daily, nil}, want: both[:1]},
		"one has an old one": {policy: daily, has: []*v1alpha1.BackupPolicy{daily, {Schedule: "@hourly"}}, want: both[1:]},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput(t)
			in.Operator.Spec.Backup = test.policy
			for i := range in.Installs {
				in.Installs[i].Backup = test.has[i]
			}
			next := operators.Next(in)
			if diff := cmp.Diff(test.want, next.SetBackup); diff != "" {
				t.Errorf("installs to write (-want +got):\n%s", diff)
			}
			if next.Create != nil {
				t.Errorf("a change of the policy started rollout %s", next.Create.Name)
			}
		})
	}
}

func TestABackupPolicyThatCannotWork(t *testing.T) {
	in := newInput(t)
	in.Operator.Spec.Backup = &v1alpha1.BackupPolicy{Schedule: "sometimes"}
	status := operators.Next(in).Status
	if ready := conditions.Get(status.Conditions, v1alpha1.ConditionReady); ready.Reason != v1alpha1.ReasonInvalidSpec {
		t.Errorf("Ready is %s: %s", ready.Reason, ready.Message)
	}
}
