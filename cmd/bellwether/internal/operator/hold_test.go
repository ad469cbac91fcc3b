// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

func TestRemoveHold(t *testing.T) {
	o := &v1alpha1.ManagedOperator{}
	o.Spec.Holds = []v1alpha1.VersionHold{{Version: "1.2.0"}, {Version: "1.3.0"}, {Version: "1.2.0", Release: "hash"}}
	if err := removeHold(o, "1.1.0"); err == nil {
		t.Error("a version is released that is not held")
	}
	if err := removeHold(o, "1.2.0"); err != nil || len(o.Spec.Holds) != 1 || o.Spec.Holds[0].Version != "1.3.0" {
		t.Errorf("%v: %+v", err, o.Spec.Holds)
	}
}
