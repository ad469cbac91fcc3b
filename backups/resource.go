// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package backups

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bellwether-dev/bellwether/backups/archive"
)

// FindResource returns the custom resource of a definition in the version in which its objects are saved: the storage
// version, or the first served version if the storage version is not served. It returns false if no version is served.
func FindResource(definition *apiextensionsv1.CustomResourceDefinition) (archive.Resource, bool) {
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
