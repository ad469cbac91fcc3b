// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestRetentionLeavesForeignFolders removes a backup whose status names a folder of another
// cluster. That folder stays, and other backups are still removed.
func TestRetentionLeavesForeignFolders(t *testing.T) {
	root := t.TempDir()
	folder := func(elements ...string) string {
		path := filepath.Join(append([]string{root}, elements...)...)
		if err := errors.Join(os.MkdirAll(path, 0o700),
			os.WriteFile(filepath.Join(path, "manifest.json"), []byte("{}"), 0o600)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	operator := v1alpha1.OperatorReference{Namespace: "team", Name: "echo"}
	backup := func(name, path string, day int) *v1alpha1.OperatorBackup {
		at := metav1.NewTime(start.AddDate(0, 0, day))
		b := &v1alpha1.OperatorBackup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-mine", Name: name, CreationTimestamp: at},
			Spec:       v1alpha1.OperatorBackupSpec{Operator: operator, Trigger: v1alpha1.BackupTriggerSchedule},
			Status:     v1alpha1.OperatorBackupStatus{Location: "file://" + path, VerifiedAt: &at},
		}
		conditions.Set(&b.Status.Conditions, 0, v1alpha1.ConditionReady, true, v1alpha1.ReasonSucceeded, "")
		return b
	}
	foreign, own, newest := folder("victim", "team.echo", "a"), folder("mine", "team.echo", "b"),
		folder("mine", "team.echo", "c")
	install := &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-mine", Name: "team.echo"}}
	install.Spec.Operator, install.Spec.Cluster = operator, "mine"
	install.Spec.Backup = &v1alpha1.BackupPolicy{Retention: v1alpha1.BackupRetention{Keep: ptr.To[int32](1)}}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(install, backup("a", foreign, 0),
		backup("b", own, 1), backup("c", newest, 2)).Build()
	recorder := events.NewFakeRecorder(1)
	isFrozen := true
	r := &PolicyReconciler{Hub: hub, Recorder: recorder, Frozen: func(context.Context) bool { return isFrozen },
		Stores: Stores{Cluster: "mine", Allowed: []string{"file://" + root}},
		Now:    func() time.Time { return start.AddDate(0, 0, 3) }}
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(install)}
	var all v1alpha1.OperatorBackupList
	if result, err := r.Reconcile(t.Context(), request); err != nil || result.RequeueAfter > freezeDelay ||
		hub.List(t.Context(), &all) != nil || len(all.Items) != 3 {
		t.Errorf("frozen: %+v, %v, %d OperatorBackups", result, err, len(all.Items))
	}
	isFrozen = false
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Error(err)
	}
	if event := <-recorder.Events; !strings.Contains(event, "Backup a is over the limits") {
		t.Errorf("the event about the foreign folder is %q", event)
	}
	got := map[string]bool{}
	for name, path := range map[string]string{"foreign": foreign, "own": own, "newest": newest} {
		_, err := os.Stat(filepath.Join(path, "manifest.json"))
		got[name] = err == nil
	}
	if diff := cmp.Diff(map[string]bool{"foreign": true, "own": false, "newest": true}, got); diff != "" {
		t.Errorf("folders that are there (-want +got):\n%s", diff)
	}
	var left v1alpha1.OperatorBackupList
	if err := hub.List(t.Context(), &left); err != nil || len(left.Items) != 2 {
		t.Errorf("%d OperatorBackups are left (%v), want that of the foreign folder and the newest one",
			len(left.Items), err)
	}
}
