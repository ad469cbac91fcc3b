// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package sbom

import (
	"cmp"
	"runtime/debug"
	"slices"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/package-url/packageurl-go"

	"github.com/bellwether-dev/bellwether/internal/version"
)

// NewProgramSBOM returns the SBOM of an image with a Go program, as CycloneDX JSON: the modules of the program, and Go
// itself. repository and digest identify the image.
func NewProgramSBOM(repository, digest string, build *debug.BuildInfo, v version.Info) ([]byte, error) {
	root := newImageComponent(repository + "@" + digest)
	root.Description = "image of " + build.Path
	main := newModuleComponent(build.Main.Path, v.Version)
	main.Type = cyclonedx.ComponentTypeApplication
	if v.Revision != "" {
		main.Properties = &[]cyclonedx.Property{{Name: "vcs.revision", Value: v.Revision}}
	}
	components := []cyclonedx.Component{main, newModuleComponent("std", strings.TrimPrefix(build.GoVersion, "go"))}
	needs := []string{components[1].BOMRef}
	for _, m := range build.Deps {
		if m.Replace != nil { // the program contains the replacement only
			m = m.Replace
		}
		c := newModuleComponent(m.Path, m.Version)
		components, needs = append(components, c), append(needs, c.BOMRef)
	}
	slices.SortFunc(components, func(a, b cyclonedx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	slices.Sort(needs)
	return encode(root, components, []cyclonedx.Dependency{
		{Ref: root.BOMRef, Dependencies: &[]string{main.BOMRef}}, {Ref: main.BOMRef, Dependencies: &needs}})
}

// newModuleComponent returns the component of a Go module, with the package URL that vulnerability databases use.
func newModuleComponent(path, version string) cyclonedx.Component {
	c := cyclonedx.Component{Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version}
	namespace, name := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		namespace, name = path[:i], path[i+1:]
	}
	c.PackageURL = packageurl.NewPackageURL(packageurl.TypeGolang, namespace, name, version, nil, "").ToString()
	c.BOMRef = c.PackageURL
	return c
}
