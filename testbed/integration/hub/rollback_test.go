// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
)

// admittedBy waits until the newest admission of each cluster is by these rollouts.
func (f *fixture) admittedBy(want map[string]string) {
	f.t.Helper()
	eventually(f.t, func() error {
		got := map[string]string{}
		var installs v1alpha1.OperatorInstallList
		if err := f.List(f.t.Context(), &installs); err != nil {
			return err
		}
		for _, o := range installs.Items {
			if o.Spec.Admission != nil {
				got[o.Spec.Cluster[len(f.namespace)+1:]] = o.Spec.Admission.Rollout
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("%w: admitted by (-want +got):\n%s", errNotYet, diff)
		}
		return nil
	})
}

func (f *fixture) held(want ...string) {
	f.t.Helper()
	eventually(f.t, func() error {
		if err := f.Get(f.t.Context(), client.ObjectKeyFromObject(f.operator), f.operator); err != nil {
			return err
		}
		var got []string
		for _, h := range f.operator.Spec.Holds {
			got = append(got, h.Version)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("%w: held (-want +got):\n%s", errNotYet, diff)
		}
		return nil
	})
}

// decided waits until the trail of decisions says all of this.
func (f *fixture) decided(want ...string) {
	f.t.Helper()
	eventually(f.t, func() error {
		if err := f.Get(f.t.Context(), client.ObjectKeyFromObject(f.operator), f.operator); err != nil {
			return err
		}
		var trail strings.Builder
		if log := f.operator.Status.Decisions; log != nil {
			for _, d := range log.Entries {
				fmt.Fprintln(&trail, operators.FormatLoggedDecision(d))
			}
		}
		for _, text := range want {
			if !strings.Contains(trail.String(), text) {
				return fmt.Errorf("%w: %q is not among the decisions:\n%s", errNotYet, text, trail.String())
			}
		}
		return nil
	})
}

// TestAutomaticRollback has a bad version at the head of the channel: the canary
// goes back, nobody else is touched, and the version stays held until a person
// releases it or a newer one was rolled out.
func TestAutomaticRollback(t *testing.T) {
	t.Parallel()
	h := startWhole(t)
	f := newFixtureOn(t, h, second, "a", "b", "c")
	for _, a := range f.agents {
		a.bad = "1.2.0"
		a.work(t)
	}
	one := intstr.FromInt32(1)
	f.operator.Spec.Strategy.Waves = []v1alpha1.Wave{{Name: "canary", Size: &one}, {Name: "rest"}}
	f.operator.Spec.Strategy.OnFailure = v1alpha1.FailureRollback
	f.create()
	f.reaches(t, f.operator, "True Succeeded", "3 of 3 clusters run 1.1.0")

	f.republish(third)
	f.held("1.2.0")
	f.reaches(t, f.operator, "True Succeeded", "3 of 3 clusters run 1.1.0", "held after a rollback: 1.2.0")
	f.running(map[string]string{"a": "1.1.0", "b": "1.1.0", "c": "1.1.0"})
	f.admittedBy(map[string]string{"a": "echo-3", "b": "echo-1", "c": "echo-1"})
	found := f.rollouts("echo-1", "echo-2", "echo-3")
	bad, back := found["echo-2"], found["echo-3"]
	if bad.Status.Phase != v1alpha1.RolloutRolledBack || back.Status.Phase != v1alpha1.RolloutSucceeded ||
		back.Spec.Rollback == nil || !back.Spec.Rollback.Automatic || back.Status.Clusters.Total != 1 {
		t.Errorf("%s: %s, then %s of %d clusters: %+v", bad.Status.Phase, bad.Status.Message, back.Status.Phase,
			back.Status.Clusters.Total, back.Spec.Rollback)
	}
	for name := range f.agents {
		f.waitForBlocks(name, "1.2.0")
	}

	f.restartHub(t)
	f.lookAgain(t, f.catalog)
	f.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.Version = "1.2.0" })
	f.reaches(t, f.operator, "Stalled VersionHeld", "1.2.0 is held since", "release-hold echo 1.2.0")
	f.rollouts("echo-1", "echo-2", "echo-3")

	f.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.Holds = nil })
	f.rollouts("echo-1", "echo-2", "echo-3", "echo-4", "echo-5")
	f.held("1.2.0")
	f.reaches(t, f.operator, "Stalled VersionHeld")

	f.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.Version = "" })
	f.republish(third + "\n1.3.0 replaces 1.2.0")
	f.reaches(t, f.operator, "True Succeeded", "3 of 3 clusters run 1.3.0")
	f.held()
	f.waitForBlocks("a")
	f.decided("VersionHeld, version 1.2.0, by hub: ",
		"RollbackStarted in rollout echo-3, version 1.2.0, brought by echo-2, by hub: ", "HoldLifted, version 1.2.0")
}
