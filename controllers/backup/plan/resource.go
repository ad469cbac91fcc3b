// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bellwether-dev/bellwether/backups/archive"
)

// Resource returns the custom resource of a definition in the version in which it
// is saved: the storage version, or the first that is served if that one is not.
// It returns false if none is served.
func Resource(definition *apiextensionsv1.CustomResourceDefinition) (archive.Resource, bool) {
	version := ""
	for _, v := range definition.Spec.Versions {
		if v.Served && (v.Storage || version == "") {
			version = v.Name
		}
	}
	return archive.Resource{
		Group: definition.Spec.Group, Version: version, Plural: definition.Spec.Names.Plural,
		Kind: definition.Spec.Names.Kind, StoredVersions: definition.Status.StoredVersions,
	}, version != ""
}
