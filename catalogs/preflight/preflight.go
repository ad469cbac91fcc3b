// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preflight computes the requirements of a release on a cluster, from its bundle and from the bundles of the
// upgrades that lead to it. It is pure: the hub and the command line pass it the same package and get the same
// result. Package rollouts/holds decides whether a cluster meets the requirements.
package preflight

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/requirements"
	"github.com/bellwether-dev/bellwether/bundles/review"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/view"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Limits of the bundles that are read for a rollout, and limits of the API.
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

// Upgrades returns the upgrade paths from the installed bundles to a release: each begins with the installed bundle and
// ends with the release's bundle. There is one path for each bundle, and at most maxUpgrades paths. A bundle without a
// path is omitted.
func Upgrades(pkg *catalogs.Package, release v1alpha1.Release, installed []catalogs.Installed) [][]string {
	var paths [][]string
	isDone := map[string]bool{"": true, release.Bundle: true}
	sorted := slices.SortedFunc(slices.Values(installed), func(a, b catalogs.Installed) int {
		return cmp.Compare(a.Name, b.Name)
	})
	for _, i := range sorted {
		if isDone[i.Name] || len(paths) == maxUpgrades {
			continue
		}
		isDone[i.Name] = true
		path, err := pkg.PathFrom(release.Channel, i, release.Bundle)
		if err == nil { // a missing path is reported elsewhere
			paths = append(paths, append([]string{i.Name}, path...))
		}
	}
	return paths
}

// BundlesToRead returns the names of the bundles of a release and of its upgrade paths.
func BundlesToRead(release v1alpha1.Release, upgrades [][]string) []string {
	names := []string{release.Bundle}
	for _, name := range slices.Concat(upgrades...) {
		if !slices.Contains(names, name) && len(names) < maxRead {
			names = append(names, name)
		}
	}
	return names
}

// Requirements returns the requirements of a release on a cluster. The package must have the manifests of
// BundlesToRead, as far as they can be read.
func Requirements(pkg *catalogs.Package, release v1alpha1.Release,
	upgrades [][]string) *v1alpha1.ReleaseRequirements {
	r := &requirementsReader{pkg: pkg, unread: map[string]bool{}, refused: map[[2]string]string{},
		out: &v1alpha1.ReleaseRequirements{}}
	r.readRelease(release)
	for _, path := range upgrades {
		r.readUpgrade(path)
		r.readAddedPermissions(path)
	}
	r.out.NotRead = phrase.Truncate(strings.Join(r.notRead, "; "), maxRequirement)
	return r.out
}

type requirementsReader struct {
	pkg *catalogs.Package
	// parsed are the two bundles that were used last, the newest first. More bundles would need too much memory.
	parsed [2]*parsedBundle
	// unread are bundles that cannot be read, and notRead the reasons.
	unread  map[string]bool
	notRead []string
	// refused are the reasons why upgrades from one bundle to another are refused; empty if they are not. It is a
	// cache, because paths have hops in common.
	refused map[[2]string]string
	out     *v1alpha1.ReleaseRequirements
}

type parsedBundle struct {
	name   string
	bundle *bundles.Bundle
}

// loadBundle returns a bundle with its manifests; nil if they cannot be read. It records the reason in r.notRead.
func (r *requirementsReader) loadBundle(name string) *bundles.Bundle {
	if r.unread[name] {
		return nil
	}
	for i, p := range r.parsed {
		if p != nil && p.name == name {
			r.parsed[0], r.parsed[i] = p, r.parsed[0]
			return p.bundle
		}
	}
	r.parsed[1] = nil // so that there are never three bundles in memory
	b, problem := r.parseBundle(name)
	if problem != "" {
		r.unread[name] = true
		r.notRead = append(r.notRead, problem)
		return nil
	}
	r.parsed = [2]*parsedBundle{{name: name, bundle: b}, r.parsed[0]}
	return b
}

// parseBundle returns a bundle, or why it cannot be read.
func (r *requirementsReader) parseBundle(name string) (*bundles.Bundle, string) {
	entry, ok := r.pkg.Bundles[name]
	switch {
	case !ok:
		return nil, fmt.Sprintf("bundle %s is not in the catalog", name)
	case len(entry.Objects) == 0 && entry.Image == "":
		return nil, fmt.Sprintf("the catalog has neither the manifests of bundle %s nor its image", name)
	case len(entry.Objects) == 0:
		return nil, fmt.Sprintf("the manifests of bundle %s are not in the catalog, and image %s could not be read",
			name, entry.Image)
	}
	b, err := bundles.FromManifests(entry.Objects, nil)
	if err != nil {
		return nil, fmt.Sprintf("bundle %s: %v", name, err)
	}
	return b, ""
}

// readRelease records the requirements of the release's bundle itself.
func (r *requirementsReader) readRelease(release v1alpha1.Release) {
	if entry, ok := r.pkg.Bundles[release.Bundle]; ok {
		r.out.MinKubeVersion = phrase.Truncate(entry.MinKubeVersion(), maxVersion)
		r.readSupport(entry)
	}
	b := r.loadBundle(release.Bundle)
	if b == nil {
		return
	}
	r.out.MinKubeVersion = phrase.Truncate(b.CSV.Spec.MinKubeVersion, maxVersion)
	// If there are too many, the APIs that are removed first take precedence.
	all := requirements.RemovedAPIs(b)
	slices.SortStableFunc(all, func(a, b requirements.RemovedAPI) int {
		return bundles.CompareKubernetes(a.In, b.In)
	})
	for _, removed := range all {
		if len(r.out.RemovedAPIs) == maxRemovedAPIs {
			break
		}
		r.out.RemovedAPIs = append(r.out.RemovedAPIs, v1alpha1.RemovedAPI{APIVersion: removed.Object.GetAPIVersion(),
			Kind: removed.Object.GetKind(), Name: phrase.Truncate(removed.Object.GetName(), maxName),
			RemovedIn: removed.In})
	}
	r.out.TooLarge = phrase.Truncate(r.checkSize(release), maxRequirement)
}

// readSupport records until when and on which versions of Kubernetes a bundle is supported.
func (r *requirementsReader) readSupport(b *catalogs.Bundle) {
	support, err := b.Support()
	if err != nil {
		r.notRead = append(r.notRead, fmt.Sprintf("bundle %s: %v", b.Name, err))
		return
	}
	r.out.EndOfSupport = support.EndOfSupport
	if k := support.Kubernetes; k != (bundles.KubernetesRange{}) {
		r.out.SupportedKubernetes = &v1alpha1.KubernetesRange{Min: k.Min, Max: k.Max}
	}
}

// checkSize returns why a release does not fit on any cluster; empty if it fits.
func (r *requirementsReader) checkSize(release v1alpha1.Release) string {
	v, err := view.Build(view.Input{Package: r.pkg, Channel: release.Channel, Next: release.Bundle})
	if errors.Is(err, view.ErrBundleTooLarge) {
		return err.Error()
	}
	if err != nil { // the agents report the error
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

// readAddedPermissions records the permissions that the last bundle of a path has and the first bundle does not have.
// It records nothing if one of them cannot be read.
func (r *requirementsReader) readAddedPermissions(path []string) {
	newer, older := r.loadBundle(path[len(path)-1]), r.loadBundle(path[0])
	if older == nil || newer == nil {
		return
	}
	all := review.AddedPermissions(older, newer)
	if len(all) == 0 {
		return
	}
	added := v1alpha1.AddedPermissions{From: path[0], Omitted: int32(max(len(all)-maxRights, 0))}
	for _, right := range all[:min(len(all), maxRights)] {
		added.Rights = append(added.Rights, phrase.Truncate(right, maxRight))
	}
	r.out.AddedPermissions = append(r.out.AddedPermissions, added)
}

// readUpgrade checks each hop of a path, and records the first refused hop. It ends at a bundle that cannot be read.
func (r *requirementsReader) readUpgrade(path []string) {
	for i := 1; i < len(path); i++ {
		reason, isKnown := r.findRefusal(path[i-1], path[i])
		if !isKnown {
			return
		}
		if reason != "" {
			r.out.RefusedUpgrades = append(r.out.RefusedUpgrades, v1alpha1.RefusedUpgrade{From: path[0],
				Reason: phrase.Truncate(reason, maxRequirement)})
			return
		}
	}
}

// findRefusal returns why an upgrade from one bundle to the next is refused; empty if it is not. It returns false if
// a bundle cannot be read.
func (r *requirementsReader) findRefusal(from, to string) (string, bool) {
	hop := [2]string{from, to}
	if reason, isCached := r.refused[hop]; isCached {
		return reason, true
	}
	older := r.loadBundle(from)
	if older == nil {
		r.loadBundle(to) // records why that bundle cannot be read either
		return "", false
	}
	newer := r.loadBundle(to)
	if newer == nil {
		return "", false
	}
	r.refused[hop] = requirements.ExplainRefusedUpgrade(older, newer)
	return r.refused[hop], true
}
