// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conventions contains the conventions of this program, one folder for each.
package conventions

import "embed"

// Files contains a folder for each convention.
//
//go:embed ci-github docs go operator
var Files embed.FS
