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
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/untrusted"
)

// PackageManifests is a package in the format that came before bundles: a file that names the package and its channels,
// and beside it a folder with the manifests of each version.
type PackageManifests struct {
	// Package is the name of the package.
	Package  string
	channels []manifests.PackageChannel
	// defaultChannel is empty where the package does not say which it is.
	defaultChannel string
	folders        []versionFolder
}

// versionFolder is one version. csv has nothing but the ClusterServiceVersion: a package may have many versions, and
// one is converted. It is nil if it cannot be read, and err says why.
type versionFolder struct {
	name string
	fsys fs.FS
	csv  *bundles.Bundle
	err  error
}

// ErrNotPackageManifests says that a folder is not in the package manifest format.
var ErrNotPackageManifests = errors.New("not in the package manifest format")

// ReadPackageManifests reads a folder in the package manifest format. Errors are ErrNotPackageManifests, ErrInput, or
// those of the file system. A version that cannot be read is an error of Bundle only.
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
		if v.err = err; err == nil {
			v.csv, v.err = p.read(v.name, onlyCSV(files))
		}
		p.folders = append(p.folders, v)
	}
	if len(p.folders) == 0 {
		return nil, input("%s names the package %s, but there is no folder with the manifests of a version beside it: "+
			"put the manifests of each version into a folder of its own", file, p.Package)
	}
	return p, nil
}

// findPackageManifest returns the file that names the package, and its name.
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

// onlyCSV leaves out what is surely no ClusterServiceVersion. Where nothing is left, the files say themselves what is
// wrong with them.
func onlyCSV(files Files) Files {
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

// read reads manifests of a version. Its channels are not known before all versions are. The folder takes the place of
// manifests/, so that errors name the files that the user has.
func (p *PackageManifests) read(folder string, files Files) (*bundles.Bundle, error) {
	annotations := p.annotations(nil, "")
	annotations[registryv1.AnnotationManifests] = folder + "/"
	head, err := yaml.Marshal(map[string]any{"annotations": annotations})
	if err != nil {
		return nil, fmt.Errorf("encode annotations: %w", err)
	}
	fsys := fstest.MapFS{annotationsFile: {Data: head, Mode: 0o644}, folder: {Mode: fs.ModeDir | 0o755}}
	for name, text := range files {
		fsys[path.Join(folder, name)] = &fstest.MapFile{Data: text, Mode: 0o644}
	}
	return bundles.Read(fsys)
}

func (p *PackageManifests) annotations(channels []string, defaultChannel string) map[string]string {
	out := map[string]string{
		registryv1.AnnotationMediaType: registryv1.MediaType,
		registryv1.AnnotationManifests: bundles.ManifestsDir + "/",
		registryv1.AnnotationMetadata:  bundles.MetadataDir + "/",
		registryv1.AnnotationPackage:   p.Package,
		registryv1.AnnotationChannels:  strings.Join(channels, ","),
	}
	if defaultChannel != "" {
		out[registryv1.AnnotationDefaultChannel] = defaultChannel
	}
	return out
}

// Versions lists the versions that can be converted, the lowest first.
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

// Convert makes the bundle of a version: its manifests as they are, with the annotations that say what the package
// manifest said. Of the options, it uses Version, Channels and DefaultChannel; a version is needed where there are
// several. Errors are ErrInput.
func (p *PackageManifests) Convert(o Options) (*Result, error) {
	v, err := p.find(o.Version)
	if err != nil {
		return nil, err
	}
	files, err := ReadFiles(v.fsys)
	if err != nil {
		return nil, err
	}
	b, err := p.read(v.name, files)
	if err != nil {
		return nil, input("version %s: %v", v.csv.Version, err)
	}
	channels := o.Channels
	if len(channels) == 0 {
		channels = p.channelsOf(b.Name)
	}
	if len(channels) == 0 {
		return nil, input("no channel of the package %s leads to version %s (%s): give --channels", p.Package,
			b.Version, b.Name)
	}
	head, err := yaml.Marshal(map[string]any{
		"annotations": p.annotations(channels, cmp.Or(o.DefaultChannel, p.defaultChannel)),
	})
	if err != nil {
		return nil, fmt.Errorf("encode annotations: %w", err)
	}
	r := &Result{Name: b.Name, Package: p.Package, Version: b.Version.String(),
		Files: Files{annotationsFile: head}}
	for _, name := range sortedKeys(files) {
		if path.Dir(name) != "." || !bundles.IsManifest(name) {
			r.Warnings = append(r.Warnings, path.Join(v.name, name)+" is left out: only .yaml, .yml and .json files "+
				"that are directly in the folder of a version are manifests")
			continue
		}
		r.Files[path.Join(bundles.ManifestsDir, name)] = files[name]
	}
	for _, o := range b.Objects {
		r.Account = append(r.Account, Placement{
			Object:  fmt.Sprintf("%s %s (%s, line %d)", o.GetKind(), o.GetName(), o.File, o.Line),
			Becomes: becomesManifest,
		})
	}
	return r, r.check()
}

// find returns the folder of a version, or the only one.
func (p *PackageManifests) find(version string) (*versionFolder, error) {
	var found []*versionFolder
	var unread []string
	for i := range p.folders {
		f := &p.folders[i]
		switch {
		case f.csv == nil && version == f.name:
			return nil, input("version %s: %v", version, f.err)
		case f.csv == nil:
			unread = append(unread, fmt.Sprintf("%s: %v", f.name, f.err))
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
	case len(found) == 0 && len(unread) > 0 && versions == "":
		return nil, input("no version of the package %s can be read: %s", p.Package, strings.Join(unread, "; "))
	case len(found) == 0:
		return nil, input("the package %s has no version %s; it has %s", p.Package, version, versions)
	case version == "":
		return nil, input("the folder is in the package manifest format and has several versions of %s (%s): give "+
			"--version", p.Package, versions)
	}
	return nil, input("several folders have version %s of the package %s: %s", version, p.Package,
		phrase.First([]string{found[0].name, found[1].name}, 2))
}

// channelsOf are the channels in which a bundle can be reached from the current one by what the bundles replace.
func (p *PackageManifests) channelsOf(name string) []string {
	older := map[string][]string{}
	for _, f := range p.folders {
		if f.csv != nil {
			spec := f.csv.CSV.Spec
			older[f.csv.Name] = append(slices.Clone(spec.Skips), spec.Replaces)
		}
	}
	var out []string
	for _, c := range p.channels {
		seen := map[string]bool{}
		for next := []string{c.CurrentCSVName}; len(next) > 0; next = next[1:] {
			if !seen[next[0]] {
				seen[next[0]] = true
				next = append(next, older[next[0]]...)
			}
		}
		if seen[name] {
			out = append(out, c.Name)
		}
	}
	return out
}
