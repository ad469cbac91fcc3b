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

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/bellwether-dev/bellwether/bundles/build"
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

// Build does what `kustomize build` does with its default options. Errors are ErrKustomization.
func Build(dir string) (build.Source, error) {
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return build.Source{}, fmt.Errorf("%w: %w", ErrKustomization, err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		return build.Source{}, fmt.Errorf("%w: %w", ErrKustomization, err)
	}
	return build.Source{Name: "kustomize build " + filepath.Base(filepath.Clean(dir)), Text: text}, nil
}
