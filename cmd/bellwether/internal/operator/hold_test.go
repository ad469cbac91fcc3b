// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestRemoveHold checks that one hold is released, and that a version with several holds needs --rollout.
func TestRemoveHold(t *testing.T) {
	anyOf := func(version string) holdSelector { return holdSelector{version: version, anyRollout: true} }
	for name, test := range map[string]struct {
		wanted   holdSelector
		released string
		fails    string
	}{
		"a version that is not held":   {wanted: anyOf("1.1.0"), fails: "the version is not held"},
		"the only hold of its version": {wanted: anyOf("1.3.0"), released: "version 1.3.0 is held"},
		"one of several":               {wanted: anyOf("1.2.0"), fails: "the version has several holds"},
		"settings, by the rollout": {wanted: holdSelector{version: "1.2.0", rollout: "echo-5"},
			released: "hash-5"},
		"other settings, by the rollout": {wanted: holdSelector{version: "1.2.0", rollout: "echo-7"},
			released: "hash-7"},
		"the hold of a person": {wanted: holdSelector{version: "1.2.0"}, released: "version 1.2.0 is held"},
		"a rollout that has no hold": {wanted: holdSelector{version: "1.2.0", rollout: "echo-6"},
			fails: "no hold of this version was made by the rollback of echo-6"},
		"a hold of another version by that rollout": {wanted: holdSelector{version: "1.3.0", rollout: "echo-5"},
			fails: "no hold of this version was made by the rollback of echo-5"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &v1alpha1.ManagedOperator{}
			o.Spec.Holds = []v1alpha1.VersionHold{{Version: "1.2.0"},
				{Version: "1.2.0", Rollout: "echo-5", Settings: "hash-5", Release: "old"}, {Version: "1.3.0"},
				{Version: "1.2.0", Rollout: "echo-7", Settings: "hash-7"}}
			all := o.DeepCopy().Spec.Holds
			got, err := removeHold(o, test.wanted)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("the error is %v, want %q", err, test.fails)
				}
				if diff := cmp.Diff(all, o.Spec.Holds); diff != "" {
					t.Errorf("holds were changed (-before +after):\n%s", diff)
				}
				return
			}
			if err != nil || got.String() != test.released && got.Settings != test.released {
				t.Errorf("released %+v (%v), want %s", got, err, test.released)
			}
			if len(o.Spec.Holds) != len(all)-1 {
				t.Errorf("%d holds are left of %d, want one less", len(o.Spec.Holds), len(all))
			}
		})
	}
}
