// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package engines

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestUnknown checks that the record of a cluster is reported if the hub has no admission, an older admission, or
// another admission with the same revision. No engine acts on it.
func TestUnknown(t *testing.T) {
	kept := &Kept{Installed: &v1alpha1.InstalledVersion{Version: "1.1.0"}}
	kept.Admission = v1alpha1.Admission{Revision: 5, RolloutUID: "lost"}
	kept.Holds = []v1alpha1.VersionHold{{Version: "1.2.0"}}
	install := func(revision int64, uid string) *v1alpha1.OperatorInstall {
		o := admitted("a", revision)
		o.Spec.Admission.RolloutUID = uid
		return o
	}
	leaving := install(3, "old")
	leaving.DeletionTimestamp = &metav1.Time{Time: now}
	for name, test := range map[string]struct {
		install *v1alpha1.OperatorInstall
		refused string
	}{
		"the hub has no admission":           {&v1alpha1.OperatorInstall{}, v1alpha1.ReasonNotAdmitted},
		"the hub has an older one":           {install(3, "old"), v1alpha1.ReasonStaleAdmission},
		"the hub has counted to the same":    {install(5, "new"), v1alpha1.ReasonStaleAdmission},
		"the hub knows it":                   {install(5, "lost"), ""},
		"the hub has a newer one":            {install(6, "new"), ""},
		"the operator is removed from there": {leaving, ""},
	} {
		t.Run(name, func(t *testing.T) {
			unknown := FindUnknownToHub(test.install, kept)
			finding := Refuse(test.install, unknown)
			if test.refused == "" {
				if unknown != nil || finding != nil {
					t.Errorf("refused: %+v", finding)
				}
				return
			}
			if finding == nil || finding.Reason != test.refused {
				t.Fatalf("%+v, want %s", finding, test.refused)
			}
			status := RefusedStatus(test.install, unknown, *finding)
			if status.Kept == nil || status.Kept.Admission.Revision != 5 || len(status.Kept.Holds) != 1 ||
				status.ObservedRevision != 5 || status.Installed.Version != "1.1.0" {
				t.Errorf("%+v", status)
			}
			test.install.Status = status
			if status := RefusedStatus(test.install, nil, *finding); status.Kept != nil {
				t.Errorf("still reported: %+v", status.Kept)
			}
		})
	}
	if FindUnknownToHub(&v1alpha1.OperatorInstall{}, nil) != nil {
		t.Error("nothing is unknown")
	}
}
