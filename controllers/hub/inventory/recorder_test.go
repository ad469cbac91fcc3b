// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	facts "github.com/bellwether-dev/bellwether/inventory"
	"github.com/bellwether-dev/bellwether/inventory/serve"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func installOf(cluster, version string) *v1alpha1.OperatorInstall {
	return &v1alpha1.OperatorInstall{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ClusterNamespace(cluster), Name: "team-a.echo"},
		Spec: v1alpha1.OperatorInstallSpec{Cluster: cluster,
			Operator: v1alpha1.OperatorReference{Namespace: "team-a", Name: "echo"}},
		Status: v1alpha1.OperatorInstallStatus{Installed: &v1alpha1.InstalledVersion{Bundle: "echo.v" + version,
			Version: version}}}
}

// ask returns the clusters and versions at a time.
func ask(t *testing.T, r *recorder, at time.Time) string {
	t.Helper()
	answer, err := r.Query(context.Background(), facts.Query{At: at, Visible: facts.Visible{AllNamespaces: true},
		SQL: "SELECT cluster, version, observed_until FROM installs ORDER BY cluster"})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(answer.Rows)
}

// TestRecorder collects changes, and writes them once the file can be written.
func TestRecorder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "not-mounted-yet")
	now := noon
	var lastBatch time.Time
	r := &recorder{file: filepath.Join(folder, "inventory.db"), now: func() time.Time { return now }}
	defer r.close()
	if _, err := r.Query(context.Background(), facts.Query{}); !errors.Is(err, serve.ErrUnavailable) {
		t.Errorf("a query before the file is open: error %v", err)
	}
	r.collect(installOf("a", "1.1.0"), false)
	r.collect(installOf("b", "1.1.0"), false)
	if err := r.write(t.Context(), &lastBatch); err == nil {
		t.Fatal("a file in a folder that does not exist was written")
	}
	r.collect(installOf("a", "1.2.0"), false) // while it cannot be written
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func() {
		t.Helper()
		if err := r.write(t.Context(), &lastBatch); err != nil {
			t.Fatal(err)
		}
	}
	write()
	now = now.Add(time.Second)
	r.collect(toolscache.DeletedFinalStateUnknown{Obj: installOf("b", "1.1.0")}, true)
	write()
	if got, want := ask(t, r, noon), "[[a 1.2.0 2026-11-24T12:00:00Z] [b 1.1.0 2026-11-24T12:00:00Z]]"; got != want {
		t.Errorf("at noon: %s, want %s", got, want)
	}
	if got, want := ask(t, r, now), "[[a 1.2.0 2026-11-24T12:00:01Z]]"; got != want {
		t.Errorf("a second later: %s, want %s", got, want)
	}
	now = now.Add(heartbeat / 2)
	write() // nothing has changed, and no batch is due
	if got, want := ask(t, r, now), "[[a 1.2.0 2026-11-24T12:00:01Z]]"; got != want {
		t.Errorf("before the heartbeat: %s, want %s", got, want)
	}
	now = now.Add(heartbeat)
	write()
	if got, want := ask(t, r, now), "[[a 1.2.0 "+facts.FormatTime(now)+"]]"; got != want {
		t.Errorf("after the heartbeat: %s, want %s", got, want)
	}
}

// TestFailedHeartbeat fails to write a batch without changes, while an object changes.
func TestFailedHeartbeat(t *testing.T) {
	r := &recorder{}
	changes := r.takePending()
	r.collect(installOf("a", "1.1.0"), false)
	r.returnPending(changes)
	if len(r.pending) != 1 {
		t.Errorf("%d changes are collected, want the one of the time of the write", len(r.pending))
	}
}

// TestEachKindHasFacts checks that each recorded kind fills a table, and each table is filled.
func TestEachKindHasFacts(t *testing.T) {
	recorded := map[*facts.Table]bool{}
	for _, kind := range recordedKinds() {
		for _, f := range listFacts(kind) {
			recorded[f.Table] = true
		}
	}
	for _, table := range facts.Tables() {
		if !recorded[table] {
			t.Errorf("nothing is recorded in %s", table.Name)
		}
	}
}
