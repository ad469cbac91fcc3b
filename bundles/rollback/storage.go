// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bellwether-dev/bellwether/bundles/crd"
)

// Stored are the versions that the objects of a cluster may be stored as (status.storedVersions), by the name of
// the definition.
type Stored map[string][]string

// storedVersion is a version that objects may be stored as, other than the storage version of the older definition.
type storedVersion struct {
	version string
	// reason says which bundle or cluster stores objects as this version.
	reason string
	// definition is a definition in which the version is, or was, the storage version.
	definition *apiextensionsv1.CustomResourceDefinition
}

// listStoredVersions returns the versions, other than the storage version of the older definition, that objects may be
// stored as. It omits versions that the newer definition does not have: the API server refuses a definition without a
// version in status.storedVersions, so if the newer bundle is installed, no object is stored as such a version.
func (e transition) listStoredVersions() []storedVersion {
	found := e.listReportedVersions()
	for _, b := range e.installed {
		if d := crd.Definition(b, e.older.Name); d != nil && e.isOtherVersion(crd.StorageVersion(d)) {
			found = append(found, storedVersion{version: crd.StorageVersion(d), definition: d,
				reason: fmt.Sprintf("%s stores %s as %s", b.Name, d.Name, crd.StorageVersion(d))})
		}
	}
	return found
}

// listReportedVersions returns the stored versions that the cluster reports, other than the storage version of the
// older definition. Versions that the newer definition does not have are omitted.
func (e transition) listReportedVersions() []storedVersion {
	var found []storedVersion
	for _, version := range e.stored {
		if e.isOtherVersion(version) {
			found = append(found, storedVersion{version: version, definition: e.newer,
				reason: fmt.Sprintf("objects of %s may be stored as %s", e.newer.Name, version)})
		}
	}
	return found
}

// isOtherVersion reports whether a version exists in the newer definition and is not the older storage version.
func (e transition) isOtherVersion(version string) bool {
	return version != "" && version != crd.StorageVersion(e.older) && slices.Contains(crd.Versions(e.newer), version)
}

// findUnknownVersion returns a version that objects may be stored as and that the older definition does not have; the
// zero value if there is none. In this case the API server refuses the older definition. If the cluster reports its
// stored versions, only these count, because objects may have been migrated.
func (e transition) findUnknownVersion() storedVersion {
	all := e.listReportedVersions()
	if len(e.stored) == 0 {
		all = e.listStoredVersions()
	}
	for _, s := range all {
		if !slices.Contains(crd.Versions(e.older), s.version) {
			return s
		}
	}
	return storedVersion{}
}

// classifyUnknownVersion returns the verdict for a definition that cannot be put back because the older definition
// lacks a stored version. The newer definition can stay if the versions of the older operator are unchanged in it, and
// conversion between its versions loses no data.
func (e transition) classifyUnknownVersion(s storedVersion, forward, backward []crd.Change) verdict {
	_, isHarm := findFirst(forward, append([]crd.Kind{crd.RemovedField, crd.RemovedVersion, crd.Unserved},
		refusalKinds...)...)
	_, isRefused := findFirst(backward, refusalKinds...)
	isConverted := e.isConverted() || crd.IsConverted(e.from, e.older)
	if isHarm || isRefused || isConverted || len(crd.ListDivergences(e.newer)) > 0 {
		return newOneWay("%s, which %s does not know", s.reason, e.from.Name)
	}
	result := newInPlace("%s stays as in %s: %s, and its versions have the same fields, so that the older operator "+
		"can use those that it knows", e.newer.Name, e.to.Name, s.reason)
	result.keep = true
	return result
}

// classifyMovedStorage returns a verdict with a reason if a changed storage version loses data; the zero value
// otherwise. Without a conversion webhook, the API server drops fields that the other version does not have when an
// object is written.
func (e transition) classifyMovedStorage() verdict {
	if crd.IsConverted(e.from, e.older) || crd.IsConverted(e.to, e.newer) {
		return verdict{}
	}
	oldVersion := crd.StorageVersion(e.older)
	for _, s := range e.listStoredVersions() {
		if fields := crd.ListLostFields(s.definition, oldVersion, s.version); len(fields) > 0 {
			return newNeedsBackup("%s, which does not have field %s of %s: its content is dropped when an object is "+
				"written", s.reason, fields[0], oldVersion)
		}
		if fields := crd.ListLostFields(e.older, s.version, oldVersion); len(fields) > 0 {
			return newNeedsBackup("%s stores %s as %s, which does not have field %s of %s: its content is dropped "+
				"when an object is written", e.from.Name, e.older.Name, oldVersion, fields[0], s.version)
		}
	}
	return verdict{}
}

// isConverted reports whether a webhook of the newer bundle converts objects.
func (e transition) isConverted() bool {
	return crd.IsConverted(e.to, e.newer) && len(e.newer.Spec.Versions) > 1
}
