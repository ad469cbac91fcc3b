// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import "errors"

// Every error about the content of a catalog wraps one of these errors. The error texts name what exists instead of
// what was requested, so that they can be shown to the user.
var (
	// ErrNotCatalog means that the input is not a file-based catalog: it is empty, broken, or of another kind.
	ErrNotCatalog = errors.New("not a file-based catalog")
	// ErrInvalidPackage means that a package breaks a rule of file-based catalogs, for instance because a channel has
	// two heads.
	ErrInvalidPackage = errors.New("invalid package")
	// ErrNoPackage means that the catalog does not have the requested package.
	ErrNoPackage = errors.New("no such package")
	// ErrNoChannel means that the package does not have the requested channel.
	ErrNoChannel = errors.New("no such channel")
	// ErrNoVersion means that the channel does not offer the requested version or bundle.
	ErrNoVersion = errors.New("no such version")
	// ErrNoPath means that the upgrade graph has no path from the installed bundle to the requested bundle.
	ErrNoPath = errors.New("no upgrade path")
	// ErrBlocked means that the requested version is blocked.
	ErrBlocked = errors.New("blocked")
)
