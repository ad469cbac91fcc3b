// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import "errors"

// Every error about the content of a catalog wraps one of these. Their text names what exists instead of what was
// requested, so that it can be shown to the user.
var (
	// ErrNotCatalog says that what was read is no file-based catalog: empty, broken, or of another kind.
	ErrNotCatalog = errors.New("not a file-based catalog")
	// ErrInvalidPackage says that a package breaks a rule of file-based catalogs, for instance by two channel heads.
	ErrInvalidPackage = errors.New("invalid package")
	// ErrNoPackage says that the catalog has no such package.
	ErrNoPackage = errors.New("no such package")
	// ErrNoChannel says that the package has no such channel.
	ErrNoChannel = errors.New("no such channel")
	// ErrNoVersion says that the channel offers no such version or bundle.
	ErrNoVersion = errors.New("no such version")
	// ErrNoPath says that the upgrade graph has no path from the installed bundle to the wanted one.
	ErrNoPath = errors.New("no upgrade path")
	// ErrBlocked says that the wanted version is blocked.
	ErrBlocked = errors.New("blocked")
)
