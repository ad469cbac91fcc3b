// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalogtest creates synthetic file-based catalogs for tests and benchmarks. Bundles are complete enough for
// OLM to install: a CSV with a Deployment, and a CRD whose schema can have any size. It also creates folders of
// ladders, and random histories of a ladder for property tests.
package catalogtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Options define the size of a catalog.
type Options struct {
	// Packages is the number of packages, Versions the number per package; at least 1 each.
	Packages, Versions int
	// SchemaBytes is roughly the size of each bundle's CRD.
	SchemaBytes int
	// Images names a bundle image in each bundle instead of inlining its objects.
	Images bool
}

// PackageName returns the name of the i-th package.
func PackageName(i int) string { return fmt.Sprintf("operator-%03d", i) }

// Version returns the j-th version of any package: ten patch releases per minor release.
func Version(j int) string { return fmt.Sprintf("1.%d.%d", j/10, j%10) }

// BundleName returns the name of the j-th bundle of the i-th package.
func BundleName(i, j int) string { return fmt.Sprintf("%s.v%s", PackageName(i), Version(j)) }

// Write writes the catalog as one stream of JSON documents.
func Write(w io.Writer, o Options) error {
	for i := range max(1, o.Packages) {
		if err := writePackage(w, o, i); err != nil {
			return fmt.Errorf("write package %d: %w", i, err)
		}
	}
	return nil
}

// WriteDir writes the catalog to a directory, with one sub-directory per package, as in catalog images.
func WriteDir(dir string, o Options) error {
	for i := range max(1, o.Packages) {
		if err := writePackageDir(filepath.Join(dir, PackageName(i)), o, i); err != nil {
			return fmt.Errorf("write package %d: %w", i, err)
		}
	}
	return nil
}

func writePackageDir(dir string, o Options, i int) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, "catalog.json"))
	if err != nil {
		return err
	}
	if err := writePackage(f, o, i); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

// writePackage writes the documents of the i-th package. In its channel "stable" each version replaces the version
// below.
func writePackage(w io.Writer, o Options, i int) error {
	encoder := json.NewEncoder(w)
	name := PackageName(i)
	entries := make([]any, 0, o.Versions)
	for j := range max(1, o.Versions) {
		e := map[string]any{"name": BundleName(i, j)}
		if j > 0 {
			e["replaces"] = BundleName(i, j-1)
			e["skipRange"] = fmt.Sprintf(">=1.0.0 <%s", Version(j))
		}
		entries = append(entries, e)
	}
	docs := []any{
		map[string]any{"schema": "olm.package", "name": name, "defaultChannel": "stable"},
		map[string]any{"schema": "olm.channel", "package": name, "name": "stable", "entries": entries},
	}
	for j := range max(1, o.Versions) {
		docs = append(docs, newBundle(o, i, j))
	}
	for _, d := range docs {
		if err := encoder.Encode(d); err != nil {
			return err
		}
	}
	return nil
}

// newBundle returns the olm.bundle document of the j-th bundle of the i-th package.
func newBundle(o Options, i, j int) map[string]any {
	group := PackageName(i) + ".example.com"
	properties := []any{
		newProperty("olm.package", map[string]any{"packageName": PackageName(i), "version": Version(j)}),
		newProperty("olm.gvk", map[string]any{"group": group, "version": "v1", "kind": "Thing"}),
	}
	image := ""
	if o.Images {
		image = fmt.Sprintf("registry.example.com/%s@sha256:%064x", PackageName(i), j)
	} else {
		for _, object := range []any{CSV(BundleName(i, j), Version(j), group), CRD(group, o.SchemaBytes)} {
			raw, err := json.Marshal(object)
			if err != nil {
				panic(err) // Maps of strings and numbers always marshal.
			}
			properties = append(properties, newProperty("olm.bundle.object", map[string]any{"data": raw}))
		}
	}
	return map[string]any{
		"schema": "olm.bundle", "package": PackageName(i), "name": BundleName(i, j), "image": image,
		"properties": properties,
		"relatedImages": []any{
			map[string]any{"name": "operator", "image": "registry.example.com/" + PackageName(i) + ":" + Version(j)},
		},
	}
}

func newProperty(kind string, value any) map[string]any {
	return map[string]any{"type": kind, "value": value}
}

// CSV returns a ClusterServiceVersion with one Deployment that owns the API Thing of a group.
func CSV(name, version, group string) map[string]any {
	labels := map[string]any{"app": "operator"}
	container := map[string]any{"name": "manager",
		"image": "registry.example.com/operator:" + strings.ReplaceAll(version, "+", "-")} // a tag has no plus sign
	return map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
		"metadata": map[string]any{"name": name, "namespace": "placeholder",
			"annotations": map[string]any{"capabilities": "Basic Install"}},
		"spec": map[string]any{
			"displayName": name, "version": version, "description": "Runs things.",
			"installModes": []any{
				map[string]any{"type": "OwnNamespace", "supported": true},
				map[string]any{"type": "SingleNamespace", "supported": true},
				map[string]any{"type": "MultiNamespace", "supported": false},
				map[string]any{"type": "AllNamespaces", "supported": true},
			},
			"customresourcedefinitions": map[string]any{"owned": []any{
				map[string]any{"name": "things." + group, "version": "v1", "kind": "Thing"},
			}},
			"install": map[string]any{"strategy": "deployment", "spec": map[string]any{
				"deployments": []any{map[string]any{"name": "operator", "spec": map[string]any{
					"replicas": 1, "selector": map[string]any{"matchLabels": labels},
					"template": map[string]any{
						"metadata": map[string]any{"labels": labels},
						"spec":     map[string]any{"serviceAccountName": "operator", "containers": []any{container}},
					},
				}}},
				"permissions": []any{map[string]any{"serviceAccountName": "operator", "rules": []any{
					map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"},
						"verbs": []any{"get", "list"}},
				}}},
			}},
		},
	}
}

// CRD returns the definition of the API Thing of a group; its schema has about size bytes.
func CRD(group string, size int) map[string]any {
	fields := map[string]any{"name": map[string]any{"type": "string"}}
	const text = "A \"quoted\" explanation of what this field means to the operator and to its users.\n"
	for n := 0; n*(len(text)+60) < size; n++ {
		fields[fmt.Sprintf("field%04d", n)] = map[string]any{"type": "string", "description": text}
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "things." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{"kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object",
					"properties": map[string]any{
						"spec": map[string]any{"type": "object", "properties": fields},
					},
				}},
			}},
		},
	}
}

// Graph returns the documents of a package from a notation for tests, one bundle per line:
//
//	1.1.0 replaces 1.0.0 skips 1.0.1,1.0.2 range <1.1.0
//
// Every bundle is named "<pkg>.v<version>" and is in the channel "stable". An underscore in a range means a space.
func Graph(pkg, notation string) string {
	var entries, bundles []string
	name := func(version string) string { return pkg + ".v" + version }
	for line := range strings.Lines(notation) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		entry := map[string]any{"name": name(words[0])}
		for k := 1; k+1 < len(words); k += 2 {
			switch value := words[k+1]; words[k] {
			case "replaces":
				entry["replaces"] = name(value)
			case "skips":
				var skips []string
				for s := range strings.SplitSeq(value, ",") {
					skips = append(skips, name(s))
				}
				entry["skips"] = skips
			case "range":
				entry["skipRange"] = strings.ReplaceAll(value, "_", " ")
			}
		}
		entries = append(entries, mustJSON(entry))
		bundles = append(bundles, mustJSON(map[string]any{
			"schema": "olm.bundle", "package": pkg, "name": name(words[0]), "image": "registry.example.com/" + pkg +
				":" + words[0],
			"properties": []any{newProperty("olm.package", map[string]any{"packageName": pkg, "version": words[0]})},
		}))
	}
	docs := []string{
		mustJSON(map[string]any{"schema": "olm.package", "name": pkg, "defaultChannel": "stable"}),
		fmt.Sprintf(`{"schema":"olm.channel","package":%q,"name":"stable","entries":[%s]}`, pkg,
			strings.Join(entries, ",")),
	}
	return strings.Join(append(docs, bundles...), "\n") + "\n"
}

func mustJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // Maps of strings and numbers always marshal.
	}
	return string(raw)
}
