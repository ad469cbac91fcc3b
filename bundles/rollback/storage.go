// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bellwether-dev/bellwether/bundles/crd"
)

// Stored are the versions that the objects of a cluster may be stored as, by the
// names of the definitions: their status.storedVersions.
type Stored map[string][]string

// storage is another version than the older definition's that objects may be
// stored as.
type storage struct {
	version string
	// by says what stores them so.
	by string
	// definition has the version as the storage version, or did once.
	definition *apiextensionsv1.CustomResourceDefinition
}

// storages are the versions, other than that of the older definition, that objects
// may be stored as. A version that the newer definition does not have is not among
// them: the API server refuses a definition without a version in
// status.storedVersions, so that none is stored any more where the newer bundle is
// installed.
func (e edge) storages() []storage {
	found := e.live()
	for _, b := range e.passed {
		if d := crd.Definition(b, e.older.Name); d != nil && e.isOther(crd.StorageVersion(d)) {
			found = append(found, storage{version: crd.StorageVersion(d), definition: d,
				by: fmt.Sprintf("%s stores %s as %s", b.Name, d.Name, crd.StorageVersion(d))})
		}
	}
	return found
}

// live are those that the cluster knows of.
func (e edge) live() []storage {
	var found []storage
	for _, version := range e.stored {
		if e.isOther(version) {
			found = append(found, storage{version: version, definition: e.newer,
				by: fmt.Sprintf("objects of %s may be stored as %s", e.newer.Name, version)})
		}
	}
	return found
}

func (e edge) isOther(version string) bool {
	return version != "" && version != crd.StorageVersion(e.older) && slices.Contains(crd.Versions(e.newer), version)
}

// unknown returns a version that objects may be stored as and that the older
// definition does not have; the zero value if there is none. The API server
// refuses to put such a definition back. What the cluster says counts alone, since
// its objects may have been migrated.
func (e edge) unknown() storage {
	all := e.live()
	if len(e.stored) == 0 {
		all = e.storages()
	}
	for _, s := range all {
		if !slices.Contains(crd.Versions(e.older), s.version) {
			return s
		}
	}
	return storage{}
}

// keepUnknown judges a definition that cannot be put back because of what objects
// are stored as. It can stay if the older operator finds its versions there as they
// were, and conversion between them loses nothing.
func (e edge) keepUnknown(s storage, there, back []crd.Change) verdict {
	_, isHarm := first(there, append([]crd.Kind{crd.RemovedField, crd.RemovedVersion, crd.Unserved}, refusals...)...)
	_, isRefused := first(back, refusals...)
	isConverted := e.isConverted() || crd.Converted(e.from, e.older)
	if isHarm || isRefused || isConverted || len(crd.Divergences(e.newer)) > 0 {
		return oneWay("%s, which %s does not know", s.by, e.from.Name)
	}
	stays := inPlace("%s stays as in %s: %s, and its versions have the same fields, so that the older operator can "+
		"use those that it knows", e.newer.Name, e.to.Name, s.by)
	stays.keep = true
	return stays
}

// moved judges another storage version without a conversion webhook: the API server
// drops fields that the other version does not have when an object is written.
func (e edge) moved() verdict {
	if crd.Converted(e.from, e.older) || crd.Converted(e.to, e.newer) {
		return verdict{}
	}
	was := crd.StorageVersion(e.older)
	for _, s := range e.storages() {
		if fields := crd.Lost(s.definition, was, s.version); len(fields) > 0 {
			return needsBackup("%s, which does not have field %s of %s: its content is dropped when an object is "+
				"written", s.by, fields[0], was)
		}
		if fields := crd.Lost(e.older, s.version, was); len(fields) > 0 {
			return needsBackup("%s stores %s as %s, which does not have field %s of %s: its content is dropped when "+
				"an object is written", e.from.Name, e.older.Name, was, fields[0], s.version)
		}
	}
	return verdict{}
}

// isConverted tells whether a webhook of the newer bundle converts objects.
func (e edge) isConverted() bool {
	return crd.Converted(e.to, e.newer) && len(e.newer.Spec.Versions) > 1
}
