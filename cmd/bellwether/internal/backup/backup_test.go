// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/backups/archive"
	"github.com/bellwether-dev/bellwether/backups/restore"
	"github.com/bellwether-dev/bellwether/backups/store"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/backup"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
)

func complete(location, sum string) *v1alpha1.OperatorBackup {
	at := metav1.NewTime(fixture.Noon.Add(-time.Hour))
	b := &v1alpha1.OperatorBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ClusterNamespace("prod-1"), Name: "default.echo.1",
			CreationTimestamp: at, Labels: map[string]string{v1alpha1.LabelCluster: "prod-1"}},
		Spec: v1alpha1.OperatorBackupSpec{Operator: v1alpha1.OperatorReference{Namespace: "default", Name: "echo"},
			Trigger: v1alpha1.BackupTriggerSchedule},
		Status: v1alpha1.OperatorBackupStatus{Location: location, VerifiedAt: &at, TakenAt: &at, Version: "1.0.0",
			Bundle: "echo-operator.v1.0.0", Objects: 12, Bytes: 5 << 20, Manifest: sum,
			Resources: []v1alpha1.BackedUpResource{{Name: "echoservers.example.com", Version: "v1", Objects: 12}}},
	}
	conditions.Set(&b.Status.Conditions, 1, v1alpha1.ConditionReady, true, v1alpha1.ReasonSucceeded, "12 objects.")
	return b
}

func TestListAndShow(t *testing.T) {
	h := clitest.NewHub(complete("file:///backups/x", "abc"))
	list := h.MustRun(t, "backup", "list", "--operator", "echo", "--cluster", "prod-1", "-o", "wide").Out
	show := h.MustRun(t, "backup", "show", "prod-1", "default.echo.1").Out
	for _, text := range []string{"default.echo.1", "Schedule", "5Mi", "file:///backups/x", "1.0.0"} {
		if !strings.Contains(list, text) && !strings.Contains(show, text) {
			t.Errorf("neither list nor details say %q:\n%s\n%s", text, list, show)
		}
	}
	if !strings.Contains(show, "echoservers.example.com") {
		t.Errorf("the details name no resource:\n%s", show)
	}
	if other := h.MustRun(t, "backup", "list", "--operator", "another/echo"); strings.Contains(other.Out, "echo.1") {
		t.Errorf("the backups of another operator are listed:\n%s", other.Out)
	}
	missing := h.Run(t, "backup", "show", "prod-1", "none")
	if !strings.Contains(missing.Err, "backup list --cluster") {
		t.Errorf("a backup that does not exist: %+v", missing)
	}
}

func TestCreateAsksTheAgent(t *testing.T) {
	operator := clitest.Operator("echo", "1.0.0")
	operator.Spec.Backup = &v1alpha1.BackupPolicy{BackupSettings: v1alpha1.BackupSettings{Store: "file:///backups"}}
	install := &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{
		Namespace: v1alpha1.ClusterNamespace("prod-1"), Name: "default.echo"},
		Spec: v1alpha1.OperatorInstallSpec{Operator: v1alpha1.OperatorReference{Namespace: "default", Name: "echo"},
			Cluster: "prod-1"}}
	h := clitest.NewHub(operator, install)
	h.MustRun(t, "backup", "create", "prod-1", "echo", "--wait=false")
	var list v1alpha1.OperatorBackupList
	if err := h.List(t.Context(), &list, client.InNamespace(install.Namespace)); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Spec.Store != "file:///backups" ||
		list.Items[0].Spec.Trigger != v1alpha1.BackupTriggerManual {
		t.Errorf("OperatorBackups: %+v", list.Items)
	}
	r := h.Run(t, "backup", "create", "prod-2", "echo")
	if r.Code == exit.OK || !strings.Contains(r.Err, "is not on cluster") {
		t.Errorf("a cluster without the operator: %+v", r)
	}
}

func TestVerify(t *testing.T) {
	location := "file://" + filepath.Join(t.TempDir(), "one")
	bucket, err := store.Open(t.Context(), location, store.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close() //nolint:errcheck // the test is over
	_, sum, err := archive.Write(t.Context(), bucket, archive.Manifest{Bundle: "echo.v1"}, archive.Options{},
		func(add func([]byte) error) ([]archive.Resource, error) {
			return []archive.Resource{{Plural: "x", Objects: 1}}, add([]byte("{}"))
		})
	if err != nil {
		t.Fatal(err)
	}
	h := clitest.NewHub(complete(location, sum))
	out := h.MustRun(t, "backup", "verify", "prod-1", "default.echo.1").Out
	if !strings.Contains(out, "1 objects of echo.v1") {
		t.Errorf("output: %s", out)
	}
	h.MustRun(t, "backup", "verify", "--location", location)
	h = clitest.NewHub(complete(location, "another"))
	r := h.Run(t, "backup", "verify", "prod-1", "default.echo.1")
	if !strings.Contains(r.Err, "the hub knows another") {
		t.Errorf("a manifest that the hub does not know: %+v", r)
	}
	r = h.Run(t, "backup", "restore", "prod-1", "default.echo.1")
	if !strings.Contains(r.Err, "--cluster-kubeconfig") {
		t.Errorf("a restore without a cluster: %+v", r)
	}
}

func TestResultsAreOneLine(t *testing.T) {
	for name, test := range map[string]struct {
		result restore.Result
		dryRun bool
		want   string
	}{
		"unchanged": {result: restore.Result{Action: restore.None, Name: "a"}},
		"to create": {dryRun: true, result: restore.Result{Action: restore.Create, Resource: "xs", Namespace: "n", Name: "a"},
			want: "xs n/a: to create"},
		"filled in": {result: restore.Result{Action: restore.Fill, Resource: "xs", Name: "a", Fields: []string{"spec.b"},
			Kept: []string{"spec.a"}},
			want: "xs a: filled in; brings back spec.b; keeps the present value of spec.a"},
		"failed": {result: restore.Result{Action: restore.Fail, Resource: "xs", Name: "a", Problem: "no"},
			want: "xs a: failed; no"},
	} {
		if got := backup.FormatResult(test.result, test.dryRun); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
