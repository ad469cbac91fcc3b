// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/afero"
	yamlstore "sigs.k8s.io/kubebuilder/v4/pkg/config/store/yaml"
	"sigs.k8s.io/kubebuilder/v4/pkg/machinery"
	"sigs.k8s.io/kubebuilder/v4/pkg/model/resource"
	"sigs.k8s.io/kubebuilder/v4/pkg/plugins/golang/v4/scaffolds"
)

// TestKubebuilderAddsAKind has kubebuilder add another kind to a new operator, as `kubebuilder create api` does.
func TestKubebuilderAddsAKind(t *testing.T) {
	dir := create(t, Options{Name: "echo-operator"})
	disk := machinery.Filesystem{FS: afero.NewBasePathFs(afero.NewOsFs(), dir)}
	store := yamlstore.New(disk)
	if err := store.Load(); err != nil {
		t.Fatal(err)
	}
	r := resource.Resource{GVK: resource.GVK{Group: "echo", Domain: "example.com", Version: "v1alpha1", Kind: "Mirror"},
		Plural: "mirrors", Path: "example.com/echo-operator/api/v1alpha1", Controller: true,
		API: &resource.API{CRDVersion: "v1", Namespaced: true}}
	kubebuilder := scaffolds.NewAPIScaffolder(store.Config(), r, false)
	kubebuilder.InjectFS(disk)
	if err := kubebuilder.Scaffold(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "cmd", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := format.Source(text); err != nil || !strings.Contains(string(text), "&controller.MirrorReconciler{") {
		t.Errorf("%v\n%s", err, text)
	}
	for _, name := range []string{"api/v1alpha1/mirror_types.go", "internal/controller/mirror_controller.go"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}
