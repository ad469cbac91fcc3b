// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hollow_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/sign"
	"github.com/bellwether-dev/bellwether/testbed/hollow"
)

// What docs/guides/sizing.md says of an OperatorInstall, in bytes: of one without managed fields and conditions that is
// from a catalog with one trusted key, and of what both add. The budget of the first is 1,536.
const (
	maxInstall       = 1950
	maxConditions    = 1300
	maxManagedFields = 2900
)

// TestSizeOfAnOperatorInstall has the hub and agents write OperatorInstalls of a release that follows another one, and
// measures the median of what the API server has then.
func TestSizeOfAnOperatorInstall(t *testing.T) {
	t.Parallel()
	f := start(t, 3, hollow.Options{})
	f.rollOut(0, v1alpha1.RolloutSucceeded, 1)
	f.rollOut(1, v1alpha1.RolloutSucceeded, 1)
	key, err := sign.GenerateKey(sign.ECDSA, nil)
	must(t, err)
	var bare, conditions, managed []int
	for _, o := range f.installs() {
		must(t, runs(&o, 1))
		o.APIVersion, o.Kind = v1alpha1.SchemeGroupVersion.String(), "OperatorInstall"
		pin := &o.Spec.Admission.Release.Catalog
		pin.PublicKeys = []string{string(key.Public)}
		if a := o.Spec.Admission; a.Previous == nil || a.Previous.Install != nil {
			t.Errorf("%s: previous release %+v, want one without settings, which are the same", o.Namespace, a.Previous)
		}
		whole := encoded(t, o)
		o.ManagedFields = nil
		unmanaged := encoded(t, o)
		o.Status.Conditions = nil
		bare = append(bare, encoded(t, o))
		conditions, managed = append(conditions, unmanaged-bare[len(bare)-1]), append(managed, whole-unmanaged)
		if len(bare) == 1 {
			describe(t, o)
		}
	}
	for name, x := range map[string]struct {
		bytes []int
		most  int
	}{"an OperatorInstall": {bare, maxInstall}, "conditions": {conditions, maxConditions},
		"managed fields": {managed, maxManagedFields}} {
		slices.Sort(x.bytes)
		median := x.bytes[len(x.bytes)/2]
		t.Logf("%-20s %5d bytes at the median", name, median)
		if median > x.most {
			t.Errorf("%s: %d bytes at the median, want at most %d", name, median, x.most)
		}
	}
}

// describe logs what the parts of an OperatorInstall take.
func describe(t *testing.T, o v1alpha1.OperatorInstall) {
	t.Helper()
	a := o.Spec.Admission
	for _, part := range []struct {
		name string
		of   any
	}{{"metadata", o.ObjectMeta}, {"metadata.labels", o.Labels}, {"spec", o.Spec}, {"spec.admission", a},
		{"its release", a.Release}, {"its catalog", a.Release.Catalog}, {"its key", a.Release.Catalog.PublicKeys},
		{"its previous release", a.Previous}, {"status", o.Status}, {"status.olm", o.Status.OLM}} {
		t.Logf("%-20s %5d bytes", part.name, encoded(t, part.of))
	}
}

func encoded(t *testing.T, object any) int {
	t.Helper()
	text, err := json.Marshal(object)
	must(t, err)
	return len(text)
}
