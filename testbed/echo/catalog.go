// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package echo gives the sample operator's bundles and file-based catalogs to
// tests and to the demo. It reads only what is embedded in it.
package echo

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/testbed/echo/bundle"
)

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.21.0 object:headerFile=boilerplate.go.txt paths=./api/...
//go:generate go run ./cmd/echo-bundles bundles

//go:embed bundles
var embedded embed.FS

// ErrNoVersion is returned for a version that has no bundle.
var ErrNoVersion = errors.New("no such version of the sample operator")

// Bundles returns the bundle directories, one per version at the root.
func Bundles() fs.FS {
	sub, err := fs.Sub(embedded, "bundles")
	if err != nil {
		panic(err) // the path is a constant
	}
	return sub
}

// Versions returns all versions that have a bundle, oldest first.
func Versions() []string {
	entries, err := fs.ReadDir(Bundles(), ".")
	if err != nil {
		panic(err) // the folder is embedded
	}
	versions := make([]string, 0, len(entries))
	for _, e := range entries {
		versions = append(versions, e.Name())
	}
	sortVersions(versions)
	return versions
}

// FBC returns a file-based catalog (a JSON stream of olm.package, olm.channel
// and olm.bundle blobs) that has the given versions of the sample operator in
// its channel, or all when none is given. Every manifest is inlined and no
// bundle names an image. The same versions in any order give the same bytes.
//
// A catalog that operator-registry would refuse, such as one with two channel
// heads, is an error; so is an unknown version (ErrNoVersion).
func FBC(versions ...string) ([]byte, error) {
	if len(versions) == 0 {
		versions = Versions()
	}
	versions = slices.Clone(versions)
	for _, v := range versions {
		if !slices.Contains(Versions(), v) {
			return nil, fmt.Errorf("%w: %q", ErrNoVersion, v)
		}
	}
	sortVersions(versions)
	versions = slices.Compact(versions)

	cfg := declcfg.DeclarativeConfig{
		Packages: []declcfg.Package{{
			Schema: declcfg.SchemaPackage, Name: bundle.Package, DefaultChannel: bundle.Channel,
			Description: "The sample operator of Bellwether's testbed.",
		}},
		Channels: []declcfg.Channel{{Schema: declcfg.SchemaChannel, Package: bundle.Package, Name: bundle.Channel}},
	}
	for _, v := range versions {
		entry, b, err := bundleBlobs(v)
		if err != nil {
			return nil, fmt.Errorf("read bundle %s: %w", v, err)
		}
		cfg.Channels[0].Entries = append(cfg.Channels[0].Entries, entry)
		cfg.Bundles = append(cfg.Bundles, b)
	}
	if err := check(cfg); err != nil {
		return nil, fmt.Errorf("check catalog of %v: %w", versions, err)
	}
	var out bytes.Buffer
	if err := declcfg.WriteJSON(cfg, &out); err != nil {
		return nil, fmt.Errorf("write catalog: %w", err)
	}
	return out.Bytes(), nil
}

// check asks operator-registry's model about everything but the missing image,
// which the model demands and OLM does not.
func check(cfg declcfg.DeclarativeConfig) error {
	cfg.Bundles = slices.Clone(cfg.Bundles)
	for i := range cfg.Bundles {
		cfg.Bundles[i].Image = "example.com/inlined"
	}
	_, err := declcfg.ConvertToModel(cfg)
	return err
}

func bundleBlobs(version string) (declcfg.ChannelEntry, declcfg.Bundle, error) {
	b := declcfg.Bundle{
		Schema: declcfg.SchemaBundle, Package: bundle.Package, Name: bundle.CSVName(version),
		Properties: []property.Property{property.MustBuildPackage(bundle.Package, version)},
	}
	var csv operatorsv1alpha1.ClusterServiceVersion
	var objects []property.Property
	manifests := path.Join("bundles", version, "manifests")
	entries, err := embedded.ReadDir(manifests)
	if err != nil {
		return declcfg.ChannelEntry{}, b, err
	}
	for _, e := range entries {
		data, err := embedded.ReadFile(path.Join(manifests, e.Name()))
		if err != nil {
			return declcfg.ChannelEntry{}, b, err
		}
		object, err := yaml.YAMLToJSON(data)
		if err != nil {
			return declcfg.ChannelEntry{}, b, fmt.Errorf("parse %s: %w", e.Name(), err)
		}
		objects = append(objects, property.MustBuildBundleObject(object))
		if err := readCSV(object, &csv); err != nil {
			return declcfg.ChannelEntry{}, b, fmt.Errorf("parse %s: %w", e.Name(), err)
		}
	}
	for _, crd := range csv.Spec.CustomResourceDefinitions.Owned {
		_, group, _ := strings.Cut(crd.Name, ".")
		b.Properties = append(b.Properties, property.MustBuildGVK(group, crd.Version, crd.Kind))
	}
	b.Properties = append(b.Properties, objects...)
	return declcfg.ChannelEntry{Name: csv.Name, Replaces: csv.Spec.Replaces, Skips: csv.Spec.Skips}, b, nil
}

// readCSV fills csv if object is one, and leaves it alone otherwise.
func readCSV(object []byte, csv *operatorsv1alpha1.ClusterServiceVersion) error {
	var kind struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(object, &kind); err != nil || kind.Kind != operatorsv1alpha1.ClusterServiceVersionKind {
		return err
	}
	return json.Unmarshal(object, csv)
}

func sortVersions(versions []string) {
	slices.SortFunc(versions, func(a, b string) int {
		return semver.MustParse(a).Compare(semver.MustParse(b))
	})
}
