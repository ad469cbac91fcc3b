// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
)

// LadderFolder defines the size of a folder of ladders.
type LadderFolder struct {
	// Packages is the number of packages, Versions the number per package; at least 1 each.
	Packages, Versions int
	// SchemaBytes is roughly the size of each bundle's CRD.
	SchemaBytes int
	// CRDs, if set, returns the CRDs of the j-th version instead.
	CRDs func(group string, j int) []map[string]any
}

// Write writes a ladder file for each package to dir, and a bundle folder below dir for each version.
// PackageName and Version define the names of packages and versions.
func (f LadderFolder) Write(dir string) error {
	for i := range f.Packages {
		name := PackageName(i)
		l := &ladder.Ladder{APIVersion: ladder.APIVersion, Kind: ladder.Kind, Package: name,
			Channels: []string{"stable"}}
		for j := range f.Versions {
			path := filepath.Join("bundles", name, Version(j))
			crds := []map[string]any{CRD(buildGroup(name), f.SchemaBytes)}
			if f.CRDs != nil {
				crds = f.CRDs(buildGroup(name), j)
			}
			if err := writeBundle(filepath.Join(dir, path), name, Version(j), crds); err != nil {
				return err
			}
			l.Bundles = append(l.Bundles, ladder.Bundle{
				Version: Version(j), Path: filepath.ToSlash(path), Channel: "stable",
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

// WriteBundleDir writes a bundle folder with a ClusterServiceVersion and a CRD of about schemaBytes bytes.
func WriteBundleDir(dir, pkg, version string, schemaBytes int) error {
	return writeBundle(dir, pkg, version, []map[string]any{CRD(buildGroup(pkg), schemaBytes)})
}

func buildGroup(pkg string) string { return pkg + ".example.com" }

// writeBundle writes a bundle folder with a ClusterServiceVersion, the annotations and the CRDs, each in its own file.
func writeBundle(dir, pkg, version string, crds []map[string]any) error {
	files := map[string]any{
		"manifests/csv.yaml": CSV(pkg+".v"+version, version, buildGroup(pkg)),
		"metadata/annotations.yaml": map[string]any{"annotations": map[string]string{
			bundles.AnnotationMediaType: bundles.MediaType, bundles.AnnotationPackage: pkg,
			bundles.AnnotationChannels:  "stable",
			bundles.AnnotationManifests: "manifests/", bundles.AnnotationMetadata: "metadata/",
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
