// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package generate makes the parts of runbooks that follow from the rules: what an
// alert means, when it fires and ends, its labels, the sections about SLIs, and the
// index. What people write is kept. The input is the rules of package slo and the text
// of the pages; the output is text. It is pure: reading and writing files is left to
// its test, which go generate runs.
package generate
