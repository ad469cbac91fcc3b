// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Two hubs, such as an old leader and a new one, roll out three operators at the same
// time: no cluster is ever changed by two of them.
func TestOneOperatorOfAClusterChangesAtATime(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.enrollMany(4)
	all := wave("all", 2)
	all.UnreadyGrace = &metav1.Duration{Duration: 5 * time.Second}
	first := f.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{all}})
	rollouts := []*v1alpha1.OperatorRollout{first}
	for _, name := range []string{"alpha", "zeta"} {
		ro := &v1alpha1.OperatorRollout{Spec: *first.Spec.DeepCopy()}
		ro.Namespace, ro.Name, ro.Spec.Operator.Name = f.namespace, name+"-1", name
		must(t, f.Create(t.Context(), ro))
		rollouts = append(rollouts, ro)
	}
	defer f.startHub()()
	defer f.startHub()()
	f.eventually(func() error { // before any agent works, so somebody has to wait
		for _, ro := range rollouts {
			if err := f.Get(t.Context(), client.ObjectKeyFromObject(ro), ro); err != nil {
				return err
			}
			for _, g := range ro.Status.HeldBack {
				if g.Reason == v1alpha1.ReasonClusterBusy {
					return nil
				}
			}
		}
		return fmt.Errorf("no rollout waits for another one")
	})
	f.runAgents()
	for _, ro := range rollouts {
		f.reaches(ro, v1alpha1.RolloutSucceeded, "4 of 4 clusters updated")
	}
	f.recorder.mu.Lock()
	defer f.recorder.mu.Unlock()
	if len(f.recorder.together) > 0 {
		t.Errorf("clusters that were changed by two operators: %v", f.recorder.together)
	}
}
