// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conventions has the conventions of this program, a folder each.
package conventions

import "embed"

// Files has a folder for each convention.
//
//go:embed ci-github docs go operator
var Files embed.FS
