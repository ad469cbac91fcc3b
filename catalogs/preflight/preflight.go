// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preflight says what a release needs of a cluster, by its bundle and by those of
// the upgrades that lead to it. It is pure: hub and command line give it the same package
// and get the same answer. Whether a cluster meets the requirements is decided in package
// rollouts/holds.
package preflight

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/diff"
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/bundles/requirements"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/view"
	"github.com/bellwether-dev/bellwether/phrase"
)

// Limits of what is read for a rollout, and the API's.
const (
	maxUpgrades    = 20
	maxRead        = 30
	maxRemovedAPIs = 20
	maxRequirement = 512
	maxVersion     = 128
	maxName        = 253
	maxRights      = 10
	maxRight       = 256
)

// Upgrades are the upgrade paths to a release from what clusters run: each begins with
// the installed bundle and ends with the release's. There is one for each bundle.
func Upgrades(pkg *catalogs.Package, release v1alpha1.Release, installed []catalogs.Installed) [][]string {
	var paths [][]string
	known := map[string]bool{"": true, release.Bundle: true}
	sorted := slices.SortedFunc(slices.Values(installed), func(a, b catalogs.Installed) int {
		return cmp.Compare(a.Name, b.Name)
	})
	for _, i := range sorted {
		if known[i.Name] || len(paths) == maxUpgrades {
			continue
		}
		known[i.Name] = true
		path, err := pkg.PathFrom(release.Channel, i, release.Bundle)
		if err == nil { // that there is no path is reported elsewhere
			paths = append(paths, append([]string{i.Name}, path...))
		}
	}
	return paths
}

// BundlesToRead are the bundles of a release and of its upgrade paths.
func BundlesToRead(release v1alpha1.Release, upgrades [][]string) []string {
	names := []string{release.Bundle}
	for _, name := range slices.Concat(upgrades...) {
		if !slices.Contains(names, name) && len(names) < maxRead {
			names = append(names, name)
		}
	}
	return names
}

// Requirements says what a release needs of a cluster. The package has the manifests
// of BundlesToRead, as far as they could be read.
func Requirements(pkg *catalogs.Package, release v1alpha1.Release,
	upgrades [][]string) *v1alpha1.ReleaseRequirements {
	r := &requirementsReader{pkg: pkg, unread: map[string]bool{}, refused: map[[2]string]string{},
		out: &v1alpha1.ReleaseRequirements{}}
	r.readRelease(release)
	for _, path := range upgrades {
		r.readUpgrade(path)
		r.readGrowth(path)
	}
	r.out.NotRead = phrase.Truncate(strings.Join(r.notRead, "; "), maxRequirement)
	return r.out
}

type requirementsReader struct {
	pkg *catalogs.Package
	// parsed are the two bundles that were asked for last, the newest first: more would take too much memory.
	parsed [2]*parsedBundle
	// unread are bundles that cannot be read, and notRead says why.
	unread  map[string]bool
	notRead []string
	// refused are the reasons why upgrades from one bundle to another are refused, or empty. Paths have hops in common.
	refused map[[2]string]string
	out     *v1alpha1.ReleaseRequirements
}

type parsedBundle struct {
	name   string
	bundle *bundles.Bundle
}

// bundle returns a bundle with its manifests; nil where these are not known.
func (r *requirementsReader) bundle(name string) *bundles.Bundle {
	if r.unread[name] {
		return nil
	}
	for i, p := range r.parsed {
		if p != nil && p.name == name {
			r.parsed[0], r.parsed[i] = p, r.parsed[0]
			return p.bundle
		}
	}
	r.parsed[1] = nil // so that there are never three
	b, problem := r.parse(name)
	if problem != "" {
		r.unread[name] = true
		r.notRead = append(r.notRead, problem)
		return nil
	}
	r.parsed = [2]*parsedBundle{{name: name, bundle: b}, r.parsed[0]}
	return b
}

// parse returns a bundle, or why it cannot be read.
func (r *requirementsReader) parse(name string) (*bundles.Bundle, string) {
	described, ok := r.pkg.Bundles[name]
	switch {
	case !ok:
		return nil, fmt.Sprintf("bundle %s is not in the catalog", name)
	case len(described.Objects) == 0 && described.Image == "":
		return nil, fmt.Sprintf("the catalog has neither the manifests of bundle %s nor its image", name)
	case len(described.Objects) == 0:
		return nil, fmt.Sprintf("the manifests of bundle %s are not in the catalog, and image %s could not be read",
			name, described.Image)
	}
	b, err := bundles.FromManifests(described.Objects, nil)
	if err != nil {
		return nil, fmt.Sprintf("bundle %s: %v", name, err)
	}
	return b, ""
}

func (r *requirementsReader) readRelease(release v1alpha1.Release) {
	if described, ok := r.pkg.Bundles[release.Bundle]; ok {
		r.out.MinKubeVersion = phrase.Truncate(described.MinKubeVersion(), maxVersion)
		r.readSupport(described)
	}
	b := r.bundle(release.Bundle)
	if b == nil {
		return
	}
	r.out.MinKubeVersion = phrase.Truncate(b.CSV.Spec.MinKubeVersion, maxVersion)
	// Where there are too many, those that were removed first count.
	all := requirements.RemovedAPIs(b)
	slices.SortStableFunc(all, func(a, b requirements.RemovedAPI) int {
		return registryv1.CompareKubernetes(a.In, b.In)
	})
	for _, removed := range all {
		if len(r.out.RemovedAPIs) == maxRemovedAPIs {
			break
		}
		r.out.RemovedAPIs = append(r.out.RemovedAPIs, v1alpha1.RemovedAPI{APIVersion: removed.Object.GetAPIVersion(),
			Kind: removed.Object.GetKind(), Name: phrase.Truncate(removed.Object.GetName(), maxName),
			RemovedIn: removed.In})
	}
	r.out.TooLarge = phrase.Truncate(r.tooLarge(release), maxRequirement)
}

func (r *requirementsReader) readSupport(b *catalogs.Bundle) {
	support, err := b.Support()
	if err != nil {
		r.notRead = append(r.notRead, fmt.Sprintf("bundle %s: %v", b.Name, err))
		return
	}
	r.out.EndOfSupport = support.EndOfSupport
	if k := support.Kubernetes; k != (registryv1.KubernetesRange{}) {
		r.out.SupportedKubernetes = &v1alpha1.KubernetesRange{Min: k.Min, Max: k.Max}
	}
}

// tooLarge says why a release fits on no cluster; empty where it does.
func (r *requirementsReader) tooLarge(release v1alpha1.Release) string {
	v, err := view.Build(view.Input{Package: r.pkg, Channel: release.Channel, Next: release.Bundle})
	if errors.Is(err, view.ErrBundleTooLarge) {
		return err.Error()
	}
	if err != nil { // the agents report it
		return ""
	}
	objects := r.pkg.Bundles[release.Bundle].Objects
	for _, o := range objects {
		if len(o) > requirements.MaxObject {
			return fmt.Sprintf("bundle %s has a manifest of %d KiB, and etcd takes at most %d KiB", release.Bundle,
				len(o)>>10, requirements.MaxObject>>10)
		}
	}
	if v.Bundles[0].Route != view.Unpack {
		return ""
	}
	if size, err := requirements.PackedSize(objects); err == nil && size > requirements.MaxPacked {
		return fmt.Sprintf("the manifests of bundle %s take %d KiB when compressed, and OLM unpacks at most %d KiB",
			release.Bundle, size>>10, requirements.MaxPacked>>10)
	}
	return ""
}

// readGrowth compares the rights at both ends of a path.
func (r *requirementsReader) readGrowth(path []string) {
	newer, older := r.bundle(path[len(path)-1]), r.bundle(path[0])
	if older == nil || newer == nil {
		return
	}
	all := diff.AddedPermissions(older, newer)
	if len(all) == 0 {
		return
	}
	added := v1alpha1.AddedPermissions{From: path[0], Omitted: int32(max(len(all)-maxRights, 0))}
	for _, right := range all[:min(len(all), maxRights)] {
		added.Rights = append(added.Rights, phrase.Truncate(right, maxRight))
	}
	r.out.AddedPermissions = append(r.out.AddedPermissions, added)
}

// readUpgrade looks at each hop of a path.
func (r *requirementsReader) readUpgrade(path []string) {
	for i := 1; i < len(path); i++ {
		reason, known := r.refusal(path[i-1], path[i])
		if !known {
			return
		}
		if reason != "" {
			r.out.RefusedUpgrades = append(r.out.RefusedUpgrades, v1alpha1.RefusedUpgrade{From: path[0],
				Reason: phrase.Truncate(reason, maxRequirement)})
			return
		}
	}
}

// refusal returns why an upgrade from one bundle to the next is refused, empty if it is not, and whether that is known.
func (r *requirementsReader) refusal(from, to string) (string, bool) {
	hop := [2]string{from, to}
	if reason, known := r.refused[hop]; known {
		return reason, true
	}
	older := r.bundle(from)
	if older == nil {
		r.bundle(to) // says why it cannot be read either
		return "", false
	}
	newer := r.bundle(to)
	if newer == nil {
		return "", false
	}
	r.refused[hop] = requirements.RefusedUpgrade(older, newer)
	return r.refused[hop], true
}
