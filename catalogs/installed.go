// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/internal/untrusted"
)

// Installed is the bundle that a cluster runs: the name of its ClusterServiceVersion and its version, if known.
type Installed struct {
	Name    string
	Version string
}

// SemVer returns the version, or else the version in a conventional name; false if there is neither.
func (i Installed) SemVer() (semver.Version, bool) {
	if v, err := semver.ParseTolerant(i.Version); err == nil {
		return v, true
	}
	return bundles.VersionInName(i.Name)
}

// ClusterBundle is a bundle of a package that a cluster runs.
type ClusterBundle struct {
	Package string
	Installed
	Cluster string
}

// ListInstalled returns the bundles that clusters run, in the order of the installs. An install without a known
// package, or on whose cluster nothing is installed, is left out.
func ListInstalled(installs []v1alpha1.OperatorInstall) []ClusterBundle {
	out := []ClusterBundle{}
	for i := range installs {
		admitted, installed := installs[i].Spec.Admission, installs[i].Status.Installed
		if admitted == nil || installed == nil || installed.Bundle == "" {
			continue
		}
		out = append(out, ClusterBundle{Package: admitted.Release.Package, Cluster: installs[i].Spec.Cluster,
			Installed: Installed{Name: installed.Bundle, Version: installed.Version}})
	}
	return out
}

// GroupInstalled returns the bundles by package. Each bundle is listed once, in the order of the list.
func GroupInstalled(list []ClusterBundle) map[string][]Installed {
	out := map[string][]Installed{}
	for _, b := range list {
		if !slices.Contains(out[b.Package], b.Installed) {
			out[b.Package] = append(out[b.Package], b.Installed)
		}
	}
	return out
}

// InstalledCount is a bundle with the number of clusters that run it.
type InstalledCount struct {
	Installed
	Clusters int
}

// CountInstalled returns how many clusters run each bundle of the packages, sorted by bundle name and version. Bundles
// of other packages are not counted.
func CountInstalled(list []ClusterBundle, packages []*Package) []InstalledCount {
	counts := map[Installed]int{}
	for _, b := range list {
		if slices.ContainsFunc(packages, func(p *Package) bool { return p.Name == b.Package }) {
			counts[b.Installed]++
		}
	}
	return sortInstalledCounts(counts)
}

// ErrNotCounts means that a text is not a map of bundles or versions to numbers of clusters.
var ErrNotCounts = errors.New("not a map of bundles or versions to numbers of clusters")

// ParseInstalledCounts parses a YAML map of bundle names or versions to numbers of clusters. Versions are accepted
// if all packages have the same name. The counts are sorted by bundle name and version. An error wraps ErrNotCounts,
// or is about a negative number.
func ParseInstalledCounts(text []byte, packages []*Package) ([]InstalledCount, error) {
	var input map[string]int
	if err := untrusted.UnmarshalStrict(text, &input); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotCounts, err)
	}
	counts := map[Installed]int{}
	for _, key := range slices.Sorted(maps.Keys(input)) {
		if input[key] < 0 {
			return nil, fmt.Errorf("the number of clusters of %s is %d", key, input[key])
		}
		counts[findInstalled(packages, key)] += input[key]
	}
	return sortInstalledCounts(counts), nil
}

// findInstalled returns the bundle with the name or, if all packages have the same name, with the version key. A
// version that the package does not have was removed from the catalog, so the result has the conventional bundle name.
func findInstalled(packages []*Package, key string) Installed {
	hasOnePackage := len(packages) > 0 && !slices.ContainsFunc(packages,
		func(p *Package) bool { return p.Name != packages[0].Name })
	for _, p := range packages {
		versions := p.listBundleVersions()
		for _, name := range slices.Sorted(maps.Keys(versions)) {
			hasVersion := hasOnePackage && versions[name] == key
			if name == key || hasVersion {
				return Installed{Name: name, Version: versions[name]}
			}
		}
	}
	if v, err := semver.Parse(key); err == nil && hasOnePackage {
		return Installed{Name: packages[0].Name + ".v" + v.String(), Version: v.String()}
	}
	return Installed{Name: key}
}

// listBundleVersions returns the versions of a package's bundles and of its blocked bundles, by bundle name.
func (p *Package) listBundleVersions() map[string]string {
	versions := map[string]string{}
	for name, b := range p.Blocks {
		versions[name] = b.Version
	}
	for name, b := range p.Bundles {
		versions[name] = b.VersionString()
	}
	return versions
}

// sortInstalledCounts returns the counts sorted by bundle name and version.
func sortInstalledCounts(counts map[Installed]int) []InstalledCount {
	var out []InstalledCount
	for i, n := range counts {
		out = append(out, InstalledCount{i, n})
	}
	slices.SortFunc(out, func(a, b InstalledCount) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	return out
}
