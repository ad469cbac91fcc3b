// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reasons names what can be wrong with a catalog in the terms of the API. It is the one table from errors to
// condition reasons: hub and agents must call the same thing by the same name. What to do about it depends on who is
// told, and is said there.
package reasons

import (
	"errors"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/view"
)

// known is in order of precedence: an error may wrap several.
var known = []struct {
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

// For names an error. One that is not known came from between here and the registry, and may pass: its reason is
// CatalogUnreachable.
func For(err error) string {
	for _, k := range known {
		if errors.Is(err, k.err) {
			return k.reason
		}
	}
	return v1alpha1.ReasonCatalogUnreachable
}
