// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing/fstest" // an fs.FS of files in memory

	"github.com/operator-framework/api/pkg/manifests"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/internal/untrusted"
)

// PackageManifests is a package in the format that was used before bundles: a file that names the package and its
// channels, and a folder with the manifests of each version.
type PackageManifests struct {
	// Package is the name of the package.
	Package  string
	channels []manifests.PackageChannel
	// defaultChannel is empty if the package has several channels and does not name a default.
	defaultChannel string
	folders        []versionFolder
}

// versionFolder is the folder of one version. csv contains only the ClusterServiceVersion, to save memory, because a
// package can have many versions and only one is converted. If the version cannot be read, csv is nil and err is set.
type versionFolder struct {
	name string
	fsys fs.FS
	csv  *bundles.Bundle
	err  error
}

// ErrNotPackageManifests means that a folder is not in the package manifest format.
var ErrNotPackageManifests = errors.New("not in the package manifest format")

// ReadPackageManifests reads a folder in the package manifest format. Errors match ErrNotPackageManifests or ErrInput,
// or are errors of the file system. A version that cannot be read is not an error until it is converted.
func ReadPackageManifests(fsys fs.FS) (*PackageManifests, error) {
	head, file, err := findPackageManifest(fsys)
	if err != nil {
		return nil, err
	}
	p := &PackageManifests{Package: head.PackageName, channels: head.Channels, defaultChannel: head.DefaultChannelName}
	if len(p.channels) == 1 {
		p.defaultChannel = cmp.Or(p.defaultChannel, p.channels[0].Name)
	}
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("read folder: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		v := versionFolder{name: e.Name()}
		if v.fsys, err = fs.Sub(fsys, e.Name()); err != nil {
			return nil, fmt.Errorf("read folder: %w", err)
		}
		files, err := ReadFiles(v.fsys)
		if err != nil && !errors.Is(err, ErrInput) {
			return nil, err
		}
		if v.err = err; err == nil { // only Convert reports v.err
			v.csv, v.err = p.readVersion(v.name, selectCSVs(files))
		}
		p.folders = append(p.folders, v)
	}
	if len(p.folders) == 0 {
		return nil, newInputError("%s names the package %s, but there is no folder with the manifests of a version "+
			"beside it: put the manifests of each version into a folder of its own", file, p.Package)
	}
	return p, nil
}

// findPackageManifest returns the content and the name of the file that names the package: a manifest whose name
// without the extension ends in "package". It returns ErrNotPackageManifests if there is none.
func findPackageManifest(fsys fs.FS) (*manifests.PackageManifest, string, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, "", fmt.Errorf("read folder: %w", err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !strings.HasSuffix(strings.TrimSuffix(e.Name(), path.Ext(e.Name())), "package") ||
			!bundles.IsManifest(e.Name()) {
			continue
		}
		text, err := fs.ReadFile(fsys, e.Name())
		if err != nil {
			return nil, "", fmt.Errorf("read folder: %w", err)
		}
		head := &manifests.PackageManifest{}
		if untrusted.Unmarshal(text, head) == nil && head.PackageName != "" && len(head.Channels) > 0 {
			return head, e.Name(), nil
		}
	}
	return nil, "", ErrNotPackageManifests
}

// selectCSVs returns the files that can contain a ClusterServiceVersion. If there are none, it returns all files, so
// that reading them gives a helpful error.
func selectCSVs(files Files) Files {
	out := Files{}
	for name, text := range files {
		if bytes.Contains(text, []byte(kindCSV)) {
			out[name] = text
		}
	}
	if len(out) == 0 {
		return files
	}
	return out
}

// readVersion reads manifests of a version as a bundle without channels, which are not known before all versions are
// read. The folder replaces manifests/, so that errors name the user's files.
func (p *PackageManifests) readVersion(folder string, files Files) (*bundles.Bundle, error) {
	annotations := p.newAnnotations(nil, "")
	annotations[bundles.AnnotationManifests] = folder + "/"
	annotationsText, err := yaml.Marshal(map[string]any{"annotations": annotations})
	if err != nil {
		return nil, fmt.Errorf("encode annotations: %w", err)
	}
	fsys := fstest.MapFS{annotationsFile: {Data: annotationsText, Mode: 0o644}, folder: {Mode: fs.ModeDir | 0o755}}
	for name, text := range files {
		fsys[path.Join(folder, name)] = &fstest.MapFile{Data: text, Mode: 0o644}
	}
	return bundles.Read(fsys)
}

// newAnnotations returns the annotations of a bundle of the package.
func (p *PackageManifests) newAnnotations(channels []string, defaultChannel string) map[string]string {
	out := map[string]string{
		bundles.AnnotationMediaType: bundles.MediaType,
		bundles.AnnotationManifests: bundles.ManifestsDir + "/",
		bundles.AnnotationMetadata:  bundles.MetadataDir + "/",
		bundles.AnnotationPackage:   p.Package,
		bundles.AnnotationChannels:  strings.Join(channels, ","),
	}
	if defaultChannel != "" {
		out[bundles.AnnotationDefaultChannel] = defaultChannel
	}
	return out
}

// Versions returns the versions that can be converted, the lowest first.
func (p *PackageManifests) Versions() []string {
	var all []*bundles.Bundle
	for _, f := range p.folders {
		if f.csv != nil {
			all = append(all, f.csv)
		}
	}
	slices.SortFunc(all, func(a, b *bundles.Bundle) int { return a.Version.Compare(b.Version) })
	var out []string
	for _, b := range all {
		out = append(out, b.Version.String())
	}
	return slices.Compact(out)
}

// Convert creates the bundle of a version: its manifests, unchanged, and annotations from the package manifest. It
// uses the options Version, Channels and DefaultChannel; Version is required if there are several versions. Errors
// match ErrInput.
func (p *PackageManifests) Convert(o Options) (*Result, error) {
	v, err := p.findVersion(o.Version)
	if err != nil {
		return nil, err
	}
	files, err := ReadFiles(v.fsys)
	if err != nil {
		return nil, err
	}
	b, err := p.readVersion(v.name, files)
	if err != nil {
		return nil, newInputError("version %s: %v", v.csv.Version, err)
	}
	channels := o.Channels
	if len(channels) == 0 {
		channels = p.listChannels(b.Name)
	}
	if len(channels) == 0 {
		return nil, newInputError("no channel of the package %s leads to version %s (%s): give --channels", p.Package,
			b.Version, b.Name)
	}
	annotationsText, err := yaml.Marshal(map[string]any{
		"annotations": p.newAnnotations(channels, cmp.Or(o.DefaultChannel, p.defaultChannel)),
	})
	if err != nil {
		return nil, fmt.Errorf("encode annotations: %w", err)
	}
	r := &Result{Name: b.Name, Package: p.Package, Version: b.Version.String(),
		Files: Files{annotationsFile: annotationsText}}
	for _, name := range sortKeys(files) {
		if path.Dir(name) != "." || !bundles.IsManifest(name) {
			r.Warnings = append(r.Warnings, path.Join(v.name, name)+" is left out: only .yaml, .yml and .json files "+
				"that are directly in the folder of a version are manifests")
			continue
		}
		r.Files[path.Join(bundles.ManifestsDir, name)] = files[name]
	}
	for _, o := range b.Objects {
		r.Placements = append(r.Placements, Placement{
			Object:  fmt.Sprintf("%s %s (%s, line %d)", o.GetKind(), o.GetName(), o.File, o.Line),
			Becomes: becomesManifest,
		})
	}
	return r, r.validate()
}

// findVersion returns the folder of a version; version is the version itself or the name of the folder. If version is
// empty, there must be only one version that can be read. Errors match ErrInput.
func (p *PackageManifests) findVersion(version string) (*versionFolder, error) {
	var found []*versionFolder
	var unreadable []string
	for i := range p.folders {
		f := &p.folders[i]
		switch {
		case f.csv == nil && version == f.name:
			return nil, newInputError("version %s: %v", version, f.err)
		case f.csv == nil:
			unreadable = append(unreadable, fmt.Sprintf("%s: %v", f.name, f.err))
		case version != "" && version == f.name:
			return f, nil
		case version == "" || version == f.csv.Version.String():
			found = append(found, f)
		}
	}
	versions := strings.Join(p.Versions(), ", ")
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && len(unreadable) > 0 && versions == "":
		return nil, newInputError("no version of the package %s can be read: %s", p.Package,
			strings.Join(unreadable, "; "))
	case len(found) == 0:
		return nil, newInputError("the package %s has no version %s; it has %s", p.Package, version, versions)
	case version == "":
		return nil, newInputError("the folder is in the package manifest format and has several versions of %s (%s): "+
			"give --version", p.Package, versions)
	}
	return nil, newInputError("several folders have version %s of the package %s: %s", version, p.Package,
		phrase.First([]string{found[0].name, found[1].name}, 2))
}

// listChannels returns the channels that contain a bundle: following replaces and skips from the head of the channel
// reaches the bundle.
func (p *PackageManifests) listChannels(name string) []string {
	replaced := map[string][]string{} // by the name of the bundle that replaces or skips them
	for _, f := range p.folders {
		if f.csv != nil {
			spec := f.csv.CSV.Spec
			replaced[f.csv.Name] = append(slices.Clone(spec.Skips), spec.Replaces)
		}
	}
	var out []string
	for _, c := range p.channels {
		reachable := map[string]bool{}
		for next := []string{c.CurrentCSVName}; len(next) > 0; next = next[1:] {
			if !reachable[next[0]] {
				reachable[next[0]] = true
				next = append(next, replaced[next[0]]...)
			}
		}
		if reachable[name] {
			out = append(out, c.Name)
		}
	}
	return out
}
