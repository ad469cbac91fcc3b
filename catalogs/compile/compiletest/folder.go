// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package compiletest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
)

// Folder says how large a folder of ladders is.
type Folder struct {
	// Packages and Versions per package; at least 1 each.
	Packages, Versions int
	// SchemaBytes is roughly the size of each bundle's CRD.
	SchemaBytes int
	// CRDs, if set, returns the CRDs of the j-th version instead.
	CRDs func(group string, j int) []map[string]any
}

// Write writes a ladder file for each package into dir, and below it a bundle folder for each version. The packages and
// versions are those of package catalogtest.
func (f Folder) Write(dir string) error {
	for i := range f.Packages {
		name := catalogtest.PackageName(i)
		l := &ladder.Ladder{APIVersion: ladder.APIVersion, Kind: ladder.Kind, Package: name,
			Channels: []string{"stable"}}
		for j := range f.Versions {
			path := filepath.Join("bundles", name, catalogtest.Version(j))
			crds := []map[string]any{catalogtest.CRD(groupOf(name), f.SchemaBytes)}
			if f.CRDs != nil {
				crds = f.CRDs(groupOf(name), j)
			}
			if err := writeBundle(filepath.Join(dir, path), name, catalogtest.Version(j), crds); err != nil {
				return err
			}
			l.Bundles = append(l.Bundles, ladder.Bundle{
				Version: catalogtest.Version(j), Path: filepath.ToSlash(path), Channel: "stable",
			})
		}
		file, err := ladder.New(name+".yaml", l)
		if err != nil {
			return err
		}
		text, err := file.Format()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file.Name), text, 0o600); err != nil {
			return fmt.Errorf("write ladder: %w", err)
		}
	}
	return nil
}

// WriteBundle writes a bundle folder with a ClusterServiceVersion and a CRD of about that size.
func WriteBundle(dir, pkg, version string, schemaBytes int) error {
	return writeBundle(dir, pkg, version, []map[string]any{catalogtest.CRD(groupOf(pkg), schemaBytes)})
}

func groupOf(pkg string) string { return pkg + ".example.com" }

func writeBundle(dir, pkg, version string, crds []map[string]any) error {
	files := map[string]any{
		"manifests/csv.yaml": catalogtest.CSV(pkg+".v"+version, version, groupOf(pkg)),
		"metadata/annotations.yaml": map[string]any{"annotations": map[string]string{
			registryv1.AnnotationMediaType: registryv1.MediaType, registryv1.AnnotationPackage: pkg,
			registryv1.AnnotationChannels:  "stable",
			registryv1.AnnotationManifests: "manifests/", registryv1.AnnotationMetadata: "metadata/",
		}},
	}
	for i, crd := range crds {
		name := "manifests/crd.yaml"
		if i > 0 {
			name = fmt.Sprintf("manifests/crd%d.yaml", i)
		}
		files[name] = crd
	}
	for path, object := range files {
		raw, err := json.Marshal(object)
		if err != nil {
			return fmt.Errorf("encode %s: %w", path, err)
		}
		if raw, err = yaml.JSONToYAML(raw); err != nil {
			return fmt.Errorf("encode %s: %w", path, err)
		}
		file := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			return fmt.Errorf("make bundle folder: %w", err)
		}
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			return fmt.Errorf("write bundle: %w", err)
		}
	}
	return nil
}
