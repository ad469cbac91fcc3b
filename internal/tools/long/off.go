// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !long

package long

const enabled = false
