// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/rollback"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
)

func TestWayBack(t *testing.T) {
	const ladder = "1.0.0\n1.1.0 replaces 1.0.0\n1.2.0 replaces 1.1.0\n1.3.0 replaces 1.2.0"
	pkg, err := catalogs.ReadPackage(catalogs.SingleFile("test",
		strings.NewReader(catalogtest.Graph("echo", ladder))), "echo")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		installed, hopFrom, target string
		waits                      bool
		held                       string
		path                       []string
		next                       string
		back                       bool
		blocked                    string
	}{
		"one version": {installed: "1.2.0", target: "1.1.0", path: []string{"echo.v1.1.0"}, next: "echo.v1.1.0",
			back: true},
		"two versions in one hop": {installed: "1.2.0", target: "1.0.0", path: []string{"echo.v1.0.0"},
			next: "echo.v1.0.0", back: true},
		"from a head that is held": {installed: "1.3.0", target: "1.2.0", held: "1.3.0", path: []string{"echo.v1.2.0"},
			next: "echo.v1.2.0", back: true},
		"from one that left the catalog": {installed: "1.4.0", target: "1.2.0", path: []string{"echo.v1.2.0"},
			next: "echo.v1.2.0", back: true},
		"not to one that is blocked": {installed: "1.2.0", target: "1.1.0", held: "1.1.0", blocked: "is blocked"},
		"not yet":                    {installed: "1.2.0", target: "1.1.0", waits: true, path: []string{"echo.v1.1.0"}},
		"under way": {installed: "1.1.0", hopFrom: "1.2.0", target: "1.1.0", waits: true,
			path: []string{"echo.v1.1.0"}, next: "echo.v1.1.0", back: true},
		"nothing to do": {installed: "1.1.0", target: "1.1.0"},
		"a cluster that is behind": {installed: "1.0.0", target: "1.1.0",
			path: []string{"echo.v1.1.0"}, next: "echo.v1.1.0"},
		"a cluster that lost all": {target: "1.1.0", path: []string{"echo.v1.1.0"}, next: "echo.v1.1.0"},
		"an upgrade that is withdrawn": {installed: "1.2.0", hopFrom: "1.1.0", target: "1.1.0",
			waits: true, path: []string{"echo.v1.1.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := Request{CanAdvance: !tc.waits, Consent: &rollback.Consent{}, Release: v1alpha1.Release{
				Package: "echo", Channel: "stable", Version: tc.target, Bundle: "echo.v" + tc.target,
			}}
			if tc.installed != "" {
				r.Installed = catalogs.Installed{Name: "echo.v" + tc.installed, Version: tc.installed}
			}
			if tc.held != "" {
				r.Blocks = []v1alpha1.VersionBlock{{Package: "echo", Version: tc.held, Reason: "rolled back"}}
			}
			if tc.hopFrom != "" {
				r.Hop = &Hop{From: catalogs.Installed{Name: "echo.v" + tc.hopFrom, Version: tc.hopFrom},
					To: "echo.v" + tc.installed}
			}
			found, err := FindRoute(pkg, r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.path, found.Path); diff != "" {
				t.Errorf("path (-want +got):\n%s", diff)
			}
			if found.Next != tc.next || found.IsRollback != tc.back || !strings.Contains(found.Blocked, tc.blocked) ||
				(found.Blocked == "") != (tc.blocked == "") {
				t.Errorf("%+v, want next %q, back %t, blocked %q", found, tc.next, tc.back, tc.blocked)
			}
			r.Consent = nil
			if _, err := FindRoute(pkg, r); tc.back && tc.hopFrom == "" && tc.held == "" && err == nil {
				t.Error("an older version is not refused although going back is not intended")
			}
		})
	}
}

func TestRefusedWayBack(t *testing.T) {
	from := catalogs.Installed{Name: "echo.v1.1.0", Version: "1.1.0"}
	way := func(class bundles.RollbackClass) *bundles.Rollback {
		return &bundles.Rollback{From: "echo.v1.0.0", Class: class, Reason: "a field is gone"}
	}
	for name, tc := range map[string]struct {
		way    *bundles.Rollback
		force  bool
		reason string
	}{
		"no way back":    {},
		"in place":       {way: way(bundles.RollbackInPlace)},
		"needs a backup": {way: way(bundles.RollbackNeedsBackup), reason: v1alpha1.ReasonRollbackNeedsBackup},
		"forced":         {way: way(bundles.RollbackNeedsBackup), force: true},
		"impossible":     {way: way(bundles.RollbackOneWay), force: true, reason: v1alpha1.ReasonRollbackImpossible},
	} {
		t.Run(name, func(t *testing.T) {
			got := RefuseRollback(Request{Consent: &rollback.Consent{Forced: tc.force}}, from, tc.way)
			switch {
			case tc.reason == "" && got != nil:
				t.Errorf("refused: %+v", got)
			case tc.reason != "" && (got == nil || got.Reason != tc.reason ||
				!strings.Contains(got.Message, "a field is gone. Nothing was changed.")):
				t.Errorf("%+v, want %s", got, tc.reason)
			}
		})
	}
}

// TestConsent finds the backup that was taken before the upgrade that is rolled back.
func TestConsent(t *testing.T) {
	t.Parallel()
	echo := v1alpha1.OperatorReference{Namespace: "team", Name: "echo"}
	backup := func(from, to string, verified bool) v1alpha1.OperatorBackup {
		b := v1alpha1.OperatorBackup{Spec: v1alpha1.OperatorBackupSpec{Operator: echo,
			Upgrade: &v1alpha1.BackupUpgrade{From: from, To: to, Revision: 3}}}
		if verified {
			b.Status.VerifiedAt = &metav1.Time{Time: time.Unix(1, 0)}
			conditions.Set(&b.Status.Conditions, 1, v1alpha1.ConditionReady, true, v1alpha1.ReasonSucceeded, "")
		}
		return b
	}
	for name, tc := range map[string]struct {
		back  *v1alpha1.AdmissionRollback
		saved []v1alpha1.OperatorBackup
		want  *rollback.Consent
	}{
		"an upgrade": {saved: []v1alpha1.OperatorBackup{backup("echo.v1.0.0", "echo.v1.1.0", true)}},
		"no backup":  {back: &v1alpha1.AdmissionRollback{}, want: &rollback.Consent{}},
		"a person":   {back: &v1alpha1.AdmissionRollback{Force: true}, want: &rollback.Consent{Forced: true}},
		"a backup of an earlier admission": {back: &v1alpha1.AdmissionRollback{},
			saved: []v1alpha1.OperatorBackup{backup("echo.v1.0.0", "echo.v1.1.0", true)},
			want:  &rollback.Consent{BackedUp: true}},
		"a backup that was not verified": {back: &v1alpha1.AdmissionRollback{},
			saved: []v1alpha1.OperatorBackup{backup("echo.v1.0.0", "echo.v1.1.0", false)}, want: &rollback.Consent{}},
		"a backup before another upgrade": {back: &v1alpha1.AdmissionRollback{},
			saved: []v1alpha1.OperatorBackup{backup("echo.v0.9.0", "echo.v1.0.0", true)}, want: &rollback.Consent{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			install := &v1alpha1.OperatorInstall{Spec: v1alpha1.OperatorInstallSpec{Operator: echo,
				Admission: &v1alpha1.Admission{Release: v1alpha1.Release{Bundle: "echo.v1.0.0"}, Rollback: tc.back}}}
			if diff := cmp.Diff(tc.want, newConsent(install, "echo.v1.1.0", tc.saved)); diff != "" {
				t.Errorf("consent (-want +got):\n%s", diff)
			}
		})
	}
}
