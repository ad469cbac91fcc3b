// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kustomize runs kustomize on a folder, for those who have no kustomize at hand, and returns the manifests for
// package build.
//
// Its input is a folder with a kustomization.yaml and what that refers to, also elsewhere. It runs no plugins.
package kustomize

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

	"github.com/bellwether-dev/bellwether/bundles/build"
	"github.com/bellwether-dev/bellwether/untrusted"
)

// ErrKustomization says that kustomize refuses the folder, and why.
var ErrKustomization = errors.New("unusable kustomization")

// Is reports whether a folder has a kustomization.
func Is(dir string) bool {
	fs := filesys.MakeFsOnDisk()
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if fs.Exists(filepath.Join(dir, name)) {
			return true
		}
	}
	return false
}

// Build does what `kustomize build` does with its default options, and returns a source for each object of its output,
// in that order. A source says in which file, and where in it, the object is written. Errors are ErrKustomization.
func Build(dir string) ([]build.Source, error) {
	disk := filesys.MakeFsOnDisk()
	t := &tracker{FileSystem: disk, dir: dir, files: map[string][]build.Document{}}
	resources, err := t.run()
	if err != nil {
		// What the tracker adds to the kustomization must not be a reason to refuse it, nor be in the error.
		t.kept = true
		resources, err = run(disk, dir)
	}
	if err != nil {
		return nil, err
	}
	var out []build.Source
	for _, r := range resources.Resources() {
		s, err := t.source(r)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrKustomization, err)
		}
		out = append(out, s)
	}
	return out, nil
}

func run(fs filesys.FileSystem, dir string) (resmap.ResMap, error) {
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKustomization, err)
	}
	return resources, nil
}

// tracker is a file system in which the kustomization requests that kustomize notes the origin of each object.
type tracker struct {
	filesys.FileSystem
	dir, root string
	// kept says that the objects keep the annotations that they have: the user requested them, or there are none.
	kept bool
	// files are the documents of each file that objects were read from.
	files map[string][]build.Document
}

func (t *tracker) run() (resmap.ResMap, error) {
	root, _, err := t.CleanedAbs(t.dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKustomization, err)
	}
	t.root = root.String()
	return run(t, t.dir)
}

// ReadFile adds the request to the kustomization in the folder, and returns all other files as they are.
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
		t.kept = true
		return text, nil
	}
	k["buildMetadata"] = append(metadata, types.OriginAnnotations)
	tracked, err := yaml.Marshal(k)
	if err != nil {
		return text, nil //nolint:nilerr // it is built as it is, without origins
	}
	return tracked, nil
}

func (t *tracker) source(r *resource.Resource) (build.Source, error) {
	where := t.where(r)
	if !t.kept {
		if err := r.SetOrigin(nil); err != nil {
			return build.Source{}, err
		}
	}
	text, err := r.AsYAML()
	return build.Source{Name: where, Text: text, Where: where}, err
}

// where says where the user wrote an object.
func (t *tracker) where(r *resource.Resource) string {
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
			documents = build.Documents(text)
		}
		t.files[file] = documents
	}
	if line := build.Locate(documents, r.GetKind(), r.GetName()); line > 0 {
		return fmt.Sprintf("%s, line %d", file, line)
	}
	return file
}
