// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/internal/untrusted"
)

// ErrKustomization means that kustomize refuses the folder. The error text gives the reason.
var ErrKustomization = errors.New("unusable kustomization")

// IsKustomization reports whether a folder contains a kustomization file.
func IsKustomization(dir string) bool {
	fs := filesys.MakeFsOnDisk()
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if fs.Exists(filepath.Join(dir, name)) {
			return true
		}
	}
	return false
}

// BuildKustomization does the same as `kustomize build` with default options. It returns a source for each object of
// the output, in the same order. A source contains the file and line of the object. Errors match ErrKustomization.
func BuildKustomization(dir string) ([]Source, error) {
	disk := filesys.MakeFsOnDisk()
	t := &tracker{FileSystem: disk, dir: dir, files: map[string][]Document{}}
	resources, err := t.runTracked()
	if err != nil {
		// Build again without the changes of the tracker, because they must neither cause an error nor appear in
		// its text.
		t.keepAnnotations = true
		resources, err = runKustomize(disk, dir)
	}
	if err != nil {
		return nil, err
	}
	var out []Source
	for _, r := range resources.Resources() {
		s, err := t.newSource(r)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrKustomization, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// runKustomize builds the kustomization in a folder of the file system fs.
func runKustomize(fs filesys.FileSystem, dir string) (resmap.ResMap, error) {
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKustomization, err)
	}
	return resources, nil
}

// tracker is a file system that adds a request to the kustomization file: kustomize shall record each object's origin.
type tracker struct {
	filesys.FileSystem
	dir, root string
	// keepAnnotations is true if the origin annotations must not be removed from objects: the user requested them, or
	// there are none.
	keepAnnotations bool
	// files are the documents of each file that objects were read from.
	files map[string][]Document
}

// runTracked builds the kustomization with the request for origins.
func (t *tracker) runTracked() (resmap.ResMap, error) {
	root, _, err := t.CleanedAbs(t.dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKustomization, err)
	}
	t.root = root.String()
	return runKustomize(t, t.dir)
}

// ReadFile adds the request to the kustomization file in the folder, and returns all other files unchanged.
func (t *tracker) ReadFile(name string) ([]byte, error) {
	text, err := t.FileSystem.ReadFile(name)
	if err != nil || filepath.Dir(name) != t.root ||
		!slices.Contains(konfig.RecognizedKustomizationFileNames(), filepath.Base(name)) {
		return text, err
	}
	var k map[string]any
	if err := untrusted.Unmarshal(text, &k); err != nil || len(k) == 0 {
		return text, nil //nolint:nilerr // kustomize says what is wrong with it
	}
	metadata, _ := k["buildMetadata"].([]any)
	if slices.Contains(metadata, any(types.OriginAnnotations)) {
		t.keepAnnotations = true
		return text, nil
	}
	k["buildMetadata"] = append(metadata, types.OriginAnnotations)
	tracked, err := yaml.Marshal(k)
	if err != nil {
		return text, nil //nolint:nilerr // it is built as it is, without origins
	}
	return tracked, nil
}

// newSource returns the source of an object, without the origin annotations that the tracker requested.
func (t *tracker) newSource(r *resource.Resource) (Source, error) {
	place := t.findPlace(r)
	if !t.keepAnnotations {
		if err := r.SetOrigin(nil); err != nil {
			return Source{}, err
		}
	}
	text, err := r.AsYAML()
	return Source{Name: place, Text: text, Where: place}, err
}

// findPlace returns the file and line where the user wrote an object, as far as they are known.
func (t *tracker) findPlace(r *resource.Resource) string {
	origin, err := r.GetOrigin()
	switch {
	case err != nil || origin == nil:
		return "kustomize build " + filepath.Base(filepath.Clean(t.dir))
	case origin.Repo != "":
		return fmt.Sprintf("%s of %s", origin.Path, origin.Repo)
	case origin.Path == "":
		return filepath.Join(t.dir, origin.ConfiguredIn)
	}
	file := filepath.Join(t.dir, origin.Path)
	documents, ok := t.files[file]
	if !ok {
		if text, err := t.FileSystem.ReadFile(file); err == nil {
			documents = Documents(text)
		}
		t.files[file] = documents
	}
	if line := Locate(documents, r.GetKind(), r.GetName()); line > 0 {
		return fmt.Sprintf("%s, line %d", file, line)
	}
	return file
}
