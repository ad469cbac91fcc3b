// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/view"
)

// reasonTable is in order of precedence, because an error can wrap several of these errors.
var reasonTable = []struct {
	err    error
	reason string
}{
	{oci.ErrUnsigned, v1alpha1.ReasonSignatureMissing},
	{oci.ErrBadSignature, v1alpha1.ReasonSignatureInvalid},
	{oci.ErrDigestMismatch, v1alpha1.ReasonDigestMismatch},
	{oci.ErrReadInterrupted, v1alpha1.ReasonCatalogReadInterrupted},
	{oci.ErrTooLarge, v1alpha1.ReasonCatalogTooLarge},
	{oci.ErrBadSource, v1alpha1.ReasonInvalidSpec},
	{oci.ErrDenied, v1alpha1.ReasonAccessDenied},
	{oci.ErrNotFound, v1alpha1.ReasonSourceNotFound},
	{oci.ErrUnreachable, v1alpha1.ReasonCatalogUnreachable},
	{oci.ErrUntrusted, v1alpha1.ReasonCatalogUnreachable},
	{oci.ErrFailed, v1alpha1.ReasonCatalogUnreachable},
	{catalogs.ErrBlocked, v1alpha1.ReasonVersionBlocked},
	{catalogs.ErrNotCatalog, v1alpha1.ReasonNotACatalog},
	{catalogs.ErrInvalidPackage, v1alpha1.ReasonCatalogInvalid},
	{catalogs.ErrNoPackage, v1alpha1.ReasonUnknownPackage},
	{catalogs.ErrNoChannel, v1alpha1.ReasonUnknownChannel},
	{catalogs.ErrNoVersion, v1alpha1.ReasonUnknownVersion},
	{catalogs.ErrNoPath, v1alpha1.ReasonNoUpgradePath},
	{view.ErrBundleTooLarge, v1alpha1.ReasonBundleTooLarge},
	{view.ErrNoContent, v1alpha1.ReasonCatalogInvalid},
	{view.ErrWrongCSV, v1alpha1.ReasonCatalogInvalid},
}

// ReasonFor returns the condition reason of the API for an error about a catalog. The hub and the agents both
// use it, so that they use the same reasons. The advice to users depends on the reader, so it is not part of
// this table. Other errors occurred between this process and the registry and can be temporary: their reason
// is CatalogUnreachable.
func ReasonFor(err error) string {
	for _, k := range reasonTable {
		if errors.Is(err, k.err) {
			return k.reason
		}
	}
	return v1alpha1.ReasonCatalogUnreachable
}
