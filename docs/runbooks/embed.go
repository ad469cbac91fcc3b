// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pages carries the runbooks inside the binary, so that they can be shown
// where the network is part of the problem. It reads nothing of them: that is the job
// of package runbooks.
package pages

import "embed"

// Files are the pages, README.md and slis.md included.
//
//go:embed *.md
var Files embed.FS
