// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package backups_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/backups"
	"github.com/bellwether-dev/bellwether/backups/archive"
)

// scheduled is an OperatorInstall that waits for its next version, with this policy.
func scheduled(policy *v1alpha1.BackupPolicy) *v1alpha1.OperatorInstall {
	oi := install(policy)
	oi.Status = v1alpha1.OperatorInstallStatus{Installed: &v1alpha1.InstalledVersion{Bundle: "echo.v1"},
		Path: []string{"echo.v2"}}
	return oi
}

func TestNext(t *testing.T) {
	daily := &v1alpha1.BackupPolicy{Schedule: "0 3 * * *"}
	waiting := scheduled(&v1alpha1.BackupPolicy{})
	conditions.Set(&waiting.Status.Conditions, waiting.Generation, v1alpha1.ConditionPlanApproved, false,
		v1alpha1.ReasonBackupPending, "")
	asked := backups.Next(backups.Input{Now: start, Install: waiting}).Create
	if len(asked) != 1 {
		t.Fatalf("asked for %d backups, want 1", len(asked))
	}
	deleted := scheduled(daily)
	deleted.DeletionTimestamp = &metav1.Time{Time: start}
	absent := scheduled(daily)
	absent.Status.Installed = nil
	for name, test := range map[string]struct {
		install *v1alpha1.OperatorInstall
		backups []v1alpha1.OperatorBackup
		now     time.Time
		create  []string
		recheck time.Duration
		problem bool
	}{
		"no policy":           {install: scheduled(nil), now: start},
		"an upgrade waits":    {install: waiting, now: start, create: []string{asked[0].Name}},
		"it was asked for":    {install: waiting, now: start, backups: []v1alpha1.OperatorBackup{*asked[0]}},
		"before the schedule": {install: scheduled(daily), now: start, recheck: 15 * time.Hour},
		"the schedule's time": {install: scheduled(daily), now: start.Add(15 * time.Hour),
			create: []string{"fleet.echo.20260302-030000"}},
		"several times missed": {install: scheduled(daily), now: start.Add(90 * time.Hour),
			create: []string{"fleet.echo.20260302-030000"}},
		"it is being deleted": {install: deleted, now: start.Add(15 * time.Hour)},
		"it is not installed": {install: absent, now: start.Add(15 * time.Hour)},
		"the schedule is broken": {install: scheduled(&v1alpha1.BackupPolicy{Schedule: "x"}), now: start,
			problem: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := backups.Next(backups.Input{Now: test.now, Install: test.install, Backups: test.backups})
			var names []string
			for _, b := range got.Create {
				names = append(names, b.Name)
			}
			if diff := cmp.Diff(test.create, names); diff != "" {
				t.Errorf("create (-want +got):\n%s", diff)
			}
			if got.RecheckAfter != test.recheck || (got.Problem != nil) != test.problem {
				t.Errorf("recheck after %v with problem %v, want %v, %t", got.RecheckAfter, got.Problem, test.recheck,
					test.problem)
			}
		})
	}
}

func TestReasonFor(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "echos"}, "", errors.New("no"))
	for want, err := range map[string]error{
		v1alpha1.ReasonBackupForbidden:        fmt.Errorf("x: %w", &backups.ForbiddenError{}),
		v1alpha1.ReasonBackupTooLarge:         fmt.Errorf("x: %w", archive.ErrTooLarge),
		v1alpha1.ReasonBackupDamaged:          fmt.Errorf("x: %w", archive.ErrDamaged),
		v1alpha1.ReasonBackupStoreUnavailable: fmt.Errorf("x: %w", archive.ErrStore),
		v1alpha1.ReasonWaiting:                fmt.Errorf("x: %w", backups.ErrNotInstalled),
		v1alpha1.ReasonBackupFailed:           errors.New("x"),
	} {
		if got := backups.ReasonFor(err); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
	if got := backups.ReasonFor(fmt.Errorf("list: %w", forbidden)); got != v1alpha1.ReasonBackupForbidden {
		t.Errorf("forbidden by the API server: %s", got)
	}
}

func TestWhatIsForbiddenComesWithTheCommand(t *testing.T) {
	var b v1alpha1.OperatorBackup
	after := backups.ReportFailed(&b, &backups.ForbiddenError{Operator: "echo",
		Resources: []string{"echos.example.com"}},
		start)
	ready := conditions.Get(b.Status.Conditions, v1alpha1.ConditionReady)
	const command = "`kubectl create clusterrole bellwether-backup-echo --verb=get,list " +
		"--resource=echos.example.com && kubectl label clusterrole bellwether-backup-echo " +
		"bellwether.dev/aggregate-to-agent-backup=true`"
	if !strings.Contains(ready.Message, command) || ready.Reason != v1alpha1.ReasonBackupForbidden {
		t.Errorf("%s: %s", ready.Reason, ready.Message)
	}
	if after != 10*time.Minute {
		t.Errorf("tried again after %v, want the longest delay for a backup that has failed for long", after)
	}
}

func TestReportTaken(t *testing.T) {
	m := &archive.Manifest{Bundle: "echo.v1", Version: "1.0.0", TakenAt: start,
		Content: archive.Content{Bytes: 1234, Encrypted: true}}
	for i := range 150 {
		m.Resources = append(m.Resources, archive.Resource{Group: "example.com", Plural: fmt.Sprint("r", i),
			Version: "v1", Objects: 2})
	}
	var b v1alpha1.OperatorBackup
	backups.ReportTaken(&b, backups.Taken{Manifest: m, Sum: "abc", Location: "file:///x", At: start.Add(time.Minute)})
	if !backups.IsDone(&b) {
		t.Errorf("not done: %+v", b.Status.Conditions)
	}
	got := b.Status
	if len(got.Resources) != 100 || got.Objects != 300 || got.Bytes != 1234 || !got.Encrypted ||
		got.Manifest != "abc" ||
		got.Resources[1] != (v1alpha1.BackedUpResource{Name: "r1.example.com", Version: "v1", Objects: 2}) {
		t.Errorf("status: %+v", got)
	}
}

func TestResource(t *testing.T) {
	version := func(name string, served, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: served, Storage: storage}
	}
	for name, test := range map[string]struct {
		versions []apiextensionsv1.CustomResourceDefinitionVersion
		want     string
	}{
		"the storage version": {want: "v2", versions: []apiextensionsv1.CustomResourceDefinitionVersion{
			version("v1", true, false), version("v2", true, true)}},
		"one that is served, if that is not": {want: "v1", versions: []apiextensionsv1.CustomResourceDefinitionVersion{
			version("v1", true, false), version("v2", false, true)}},
		"none": {versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v2", false, true)}},
	} {
		d := &apiextensionsv1.CustomResourceDefinition{}
		d.Spec.Versions = test.versions
		if got, ok := backups.FindResource(d); got.Version != test.want || ok != (test.want != "") {
			t.Errorf("%s: %q, %t, want %q", name, got.Version, ok, test.want)
		}
	}
}
