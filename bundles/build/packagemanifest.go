// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
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

// versionFolder is one version; bundle is nil if it cannot be read, and err says why.
type versionFolder struct {
	name   string
	files  Files
	bundle *bundles.Bundle
	err    error
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
	all, err := ReadFiles(fsys)
	if err != nil {
		return nil, err
	}
	p := &PackageManifests{Package: head.PackageName, channels: head.Channels, defaultChannel: head.DefaultChannelName}
	if len(p.channels) == 1 {
		p.defaultChannel = cmp.Or(p.defaultChannel, p.channels[0].Name)
	}
	byFolder := map[string]Files{}
	for name, text := range all {
		folder, rest, ok := strings.Cut(name, "/")
		if !ok {
			continue
		}
		if byFolder[folder] == nil {
			byFolder[folder] = Files{}
		}
		byFolder[folder][rest] = text
	}
	for _, folder := range sortedKeys(byFolder) {
		p.folders = append(p.folders, p.readVersion(folder, byFolder[folder]))
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
		if yaml.Unmarshal(text, head) == nil && head.PackageName != "" && len(head.Channels) > 0 {
			return head, e.Name(), nil
		}
	}
	return nil, "", ErrNotPackageManifests
}

// readVersion reads the manifests of one version. Its channels are not known before all versions are.
func (p *PackageManifests) readVersion(folder string, files Files) versionFolder {
	v := versionFolder{name: folder, files: Files{}}
	fsys := fstest.MapFS{}
	for name, text := range files {
		v.files[path.Join(bundles.ManifestsDir, name)] = text
		fsys[path.Join(folder, name)] = &fstest.MapFile{Data: text, Mode: 0o644}
	}
	// The folder takes the place of manifests/, so that errors name the files that the user has.
	annotations := p.annotations(nil, "")
	annotations[registryv1.AnnotationManifests] = folder + "/"
	head, err := yaml.Marshal(map[string]any{"annotations": annotations})
	if err != nil {
		v.err = fmt.Errorf("encode annotations: %w", err)
		return v
	}
	fsys[annotationsFile] = &fstest.MapFile{Data: head, Mode: 0o644}
	v.bundle, v.err = bundles.Read(fsys)
	return v
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
		if f.bundle != nil {
			all = append(all, f.bundle)
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
	channels := o.Channels
	if len(channels) == 0 {
		channels = p.channelsOf(v.bundle.Name)
	}
	if len(channels) == 0 {
		return nil, input("no channel of the package %s leads to version %s (%s): give --channels", p.Package,
			v.bundle.Version, v.bundle.Name)
	}
	head, err := yaml.Marshal(map[string]any{
		"annotations": p.annotations(channels, cmp.Or(o.DefaultChannel, p.defaultChannel)),
	})
	if err != nil {
		return nil, fmt.Errorf("encode annotations: %w", err)
	}
	r := &Result{Name: v.bundle.Name, Package: p.Package, Version: v.bundle.Version.String(), Files: Files{
		annotationsFile: head,
	}}
	for _, name := range sortedKeys(v.files) {
		shown := path.Join(v.name, strings.TrimPrefix(name, bundles.ManifestsDir+"/"))
		if path.Dir(name) != bundles.ManifestsDir || !bundles.IsManifest(name) {
			r.Warnings = append(r.Warnings, shown+" is left out: only .yaml, .yml and .json files that are directly in "+
				"the folder of a version are manifests")
			continue
		}
		r.Files[name] = v.files[name]
	}
	for _, o := range v.bundle.Objects {
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
		case f.bundle == nil && version == f.name:
			return nil, input("version %s: %v", version, f.err)
		case f.bundle == nil:
			unread = append(unread, fmt.Sprintf("%s: %v", f.name, f.err))
		case version != "" && version == f.name:
			return f, nil
		case version == "" || version == f.bundle.Version.String():
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
		if f.bundle != nil {
			spec := f.bundle.CSV.Spec
			older[f.bundle.Name] = append(slices.Clone(spec.Skips), spec.Replaces)
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
