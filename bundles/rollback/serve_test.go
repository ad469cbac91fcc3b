// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollback_test

import (
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/rollback"
)

func TestManifests(t *testing.T) {
	bells := func(fields string) string {
		return strings.ReplaceAll(definition(version("v1", "stored", fields)), "echoes", "bells")
	}
	from := bundle(t, "1.0.0", "", definition(version("v1", "stored", plain)), bells(plain))
	to := bundle(t, "1.1.0", "", definition(version("v1", "stored", narrowed)), bells(added))
	manifests, err := rollback.Manifests(from, to, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	back, err := bundles.FromManifests(manifests, nil)
	if err != nil {
		t.Fatal(err)
	}
	if back.Name != from.Name || len(back.Objects) != len(from.Objects) {
		t.Errorf("%s with %d objects, want %s with %d", back.Name, len(back.Objects), from.Name, len(from.Objects))
	}
	for name, want := range map[string]*bundles.Bundle{"echoes.example.com": from, "bells.example.com": to} {
		if got := marshal(t, back.CRDObject(name)); got != marshal(t, want.CRDObject(name)) {
			t.Errorf("%s is not that of %s:\n%s", name, want.Name, got)
		}
	}
}

func marshal(t *testing.T, o *bundles.Object) string {
	t.Helper()
	text, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRefusal(t *testing.T) {
	for name, tc := range map[string]struct {
		class   bundles.RollbackClass
		consent rollback.Consent
		want    string
	}{
		"in place":       {class: bundles.RollbackInPlace},
		"needs a backup": {class: bundles.RollbackNeedsBackup, want: "may lose data"},
		"has one": {class: bundles.RollbackNeedsBackup,
			consent: rollback.Consent{BackedUp: true}},
		"is forced": {class: bundles.RollbackNeedsBackup,
			consent: rollback.Consent{Forced: true}},
		"one way": {class: bundles.RollbackOneWay, want: "impossible"},
		"one way, and nothing permits": {class: bundles.RollbackOneWay,
			consent: rollback.Consent{BackedUp: true, Forced: true}, want: "impossible"},
		"an unknown class": {class: "sideways", want: "impossible"},
	} {
		t.Run(name, func(t *testing.T) {
			way := bundles.Rollback{From: "echo.v1.0.0", Class: tc.class, Reason: "the field is gone"}
			got := rollback.FormatRefusal(way, "1.1.0", tc.consent)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
			if got != "" && (!strings.Contains(got, "from 1.1.0 to echo.v1.0.0") ||
				!strings.Contains(got, way.Reason)) {
				t.Errorf("does not say from where to where and why: %q", got)
			}
		})
	}
}
