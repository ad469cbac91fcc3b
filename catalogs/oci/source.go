// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import "github.com/bellwether-dev/bellwether/apis/v1alpha1"

// NewSource returns the source that an API object names.
func NewSource(s v1alpha1.CatalogSource) Source {
	return Source{Image: s.Image, Directory: s.Directory, Access: Access{Insecure: s.Insecure}}
}
