// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// TestEachFieldHasOneWriter takes an OperatorInstall through its life with every
// controller of the hub at work, and a person who writes to it as well. The managed
// fields must then be those of the table in docs/architecture.md.
func TestEachFieldHasOneWriter(t *testing.T) {
	t.Parallel()
	f := newFixtureOn(t, startWhole(t), second, "a")
	f.agents["a"].work(t)
	f.operator.Spec.Version, f.operator.Spec.RemovalPolicy = "1.0.0", v1alpha1.RemovalUninstall
	f.operator.Spec.Install.Drift = v1alpha1.DriftCorrect
	f.operator.Spec.Backup = &v1alpha1.BackupPolicy{Schedule: "@daily"}
	f.operator.Spec.StorageMigration = v1alpha1.StorageMigrationAutomatic
	must(t, f.Create(t.Context(), &v1alpha1.OperatorSLO{ // before the hub makes one of that name
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "echo"},
		Spec: v1alpha1.OperatorSLOSpec{Operator: "echo",
			Services: []v1alpha1.ProbedService{{Name: "web", Port: 80}},
			Monitor:  &v1alpha1.PodMetrics{Port: "metrics"}},
	}))
	f.create()
	f.reaches(t, f.operator, "True Succeeded", "1 of 1 cluster runs 1.0.0")
	install := &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{
		Namespace: v1alpha1.ClusterNamespace(f.agents["a"].cluster.Name), Name: f.namespace + ".echo"}}
	f.change(t, install, func() {
		install.Labels["example.com/team"] = "a"
		install.Finalizers = append(install.Finalizers, "example.com/hold")
	})
	f.block("1.2.0")
	f.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.Version = "1.1.0" })
	f.reaches(t, f.operator, "True Succeeded", "1 of 1 cluster runs 1.1.0")
	must(t, f.Delete(t.Context(), f.operator))
	eventually(t, func() error {
		if err := f.Get(t.Context(), client.ObjectKeyFromObject(install), install); err != nil {
			return err
		}
		if install.DeletionTimestamp == nil || slices.Contains(install.Finalizers, v1alpha1.FinalizerAgent) {
			return fmt.Errorf("%w: the install is not removed: %+v", errNotYet, install.ObjectMeta)
		}
		return nil
	})

	checkApplied(t, "install", install)
	want := map[string][]string{
		"bellwether-rollout":  {"admission", "cluster", "operator"},
		"bellwether-operator": {"blocks"},
		"bellwether-drift":    {"drift"},
		"bellwether-backup":   {"backup"},
		"bellwether-slo":      {"monitor", "services"},
		"bellwether-removal":  {"removalPolicy"},

		"bellwether-storage-migration": {"storageMigration"},
	}
	if diff := cmp.Diff(want, specWriters(t, install)); diff != "" {
		t.Errorf("writers of spec (-want +got):\n%s", diff)
	}
	s := install.Spec
	if s.Admission == nil || s.Admission.Release.Version != "1.1.0" || len(s.Blocks) != 1 || len(s.Services) != 1 ||
		s.Monitor == nil || s.RemovalPolicy != v1alpha1.RemovalUninstall ||
		s.Drift != v1alpha1.DriftCorrect || install.Labels["example.com/team"] != "a" {
		t.Errorf("fields were lost: labels %v, spec %+v", install.Labels, s)
	}
	f.change(t, install, func() { install.Finalizers = nil })
	f.gone(t, f.operator)
}

var update = flag.Bool("update", false, "write the golden files")

// checkApplied compares the fields of an object that controllers have applied with a golden file: an apply that begins
// to own a field, such as one that nobody set, takes it from its owner.
func checkApplied(t *testing.T, name string, o client.Object) {
	t.Helper()
	got, err := testenv.AppliedFields(o)
	must(t, err)
	file := filepath.Join("testdata", "applied", name+".txt")
	if *update {
		must(t, os.MkdirAll(filepath.Dir(file), 0o750))
		must(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("applied fields of %s (-want +got):\n%s", name, diff)
	}
}

// specWriters returns the fields of the spec that each manager owns.
func specWriters(t *testing.T, o client.Object) map[string][]string {
	t.Helper()
	fields := map[string]map[string]bool{}
	for _, entry := range o.GetManagedFields() {
		var owned struct {
			Spec map[string]any `json:"f:spec"`
		}
		must(t, json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned))
		for name := range owned.Spec {
			if fields[entry.Manager] == nil {
				fields[entry.Manager] = map[string]bool{}
			}
			fields[entry.Manager][strings.TrimPrefix(name, "f:")] = true
		}
	}
	out := map[string][]string{}
	for manager, names := range fields {
		delete(names, ".")
		out[manager] = slices.Sorted(maps.Keys(names))
	}
	return out
}
