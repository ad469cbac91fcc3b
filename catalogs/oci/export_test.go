// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// ImageFiles reads the layers of an image without a registry.
func ImageFiles(img v1.Image, folder string, limit int64) catalogs.Files {
	return openImageFolder(img, folder, limit, catalogs.ErrNotCatalog)
}
