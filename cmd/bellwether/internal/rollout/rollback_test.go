// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

func TestRollBack(t *testing.T) {
	r := &v1alpha1.OperatorRollout{}
	r.Name, r.UID, r.Spec.Operator.Name, r.Spec.Release.Version = "echo-2", "uid-2", "echo", "1.2.0"
	abort := v1alpha1.RolloutAbort{Reason: "bad", Rollback: &v1alpha1.RollbackRequest{}}
	installs := []v1alpha1.OperatorInstall{{}}
	installs[0].Spec.Admission = &v1alpha1.Admission{RolloutUID: "uid-2"}
	if _, err := requestRollback(r, installs, abort); err == nil || r.Spec.Abort != nil {
		t.Errorf("%v although no cluster ran anything before", err)
	}
	installs[0].Spec.Admission.Previous = &v1alpha1.PreviousRelease{Version: "1.1.0"}
	said, err := requestRollback(r, installs, abort)
	if err != nil || r.Spec.Abort == nil || r.Spec.Abort.Reason != "bad" ||
		!strings.Contains(said, "version 1.2.0 is held") {
		t.Errorf("%q, %v: %+v", said, err, r.Spec.Abort)
	}
	installs[0].Spec.Admission.Previous.Version = "1.2.0"
	if said, err = requestRollback(r, installs, abort); err != nil ||
		!strings.Contains(said, "one release of version 1.2.0") {
		t.Errorf("only the channel was changed: %q, %v", said, err)
	}
	r.Spec.Release.Install.Mode = v1alpha1.InstallOwnNamespace
	installs[0].Spec.Admission.Previous.Install = &v1alpha1.InstallSettings{}
	if said, err = requestRollback(r, installs, abort); err != nil ||
		!strings.Contains(said, "is rolled back, and settings of version 1.2.0 are held.") {
		t.Errorf("only settings were changed: %q, %v", said, err)
	}
	r.Spec.Abort, r.Spec.Release = nil, v1alpha1.Release{AsInstalled: true}
	if said, err = requestRollback(r, installs, abort); err == nil || r.Spec.Abort != nil ||
		!strings.Contains(err.Error(), "has changed no version") {
		t.Errorf("what is installed was taken over: %q, %v", said, err)
	}
}

func TestForceRollback(t *testing.T) {
	r := &v1alpha1.OperatorRollout{}
	r.Spec.Rollback = &v1alpha1.RolloutRollback{Of: "echo-2"}
	if _, err := forceRollback(r, false); err == nil {
		t.Error("a rollback is rolled back")
	}
	if _, err := forceRollback(r, true); err == nil {
		t.Error("forced although no cluster failed")
	}
	r.Status.Clusters.Failed = 1
	if _, err := forceRollback(r, true); err != nil || !r.Spec.Rollback.Force || r.Spec.Retries != 1 {
		t.Errorf("%v: %+v, %d retries", err, r.Spec.Rollback, r.Spec.Retries)
	}
}
