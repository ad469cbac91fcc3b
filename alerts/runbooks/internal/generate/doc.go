// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package generate makes the parts of runbooks that depend on the rules: the meaning of an
// alert, when it fires and ends, its labels, the sections about SLIs, and the index. It keeps
// the text that people write. Its inputs are the rules of package slo and the text of the pages;
// its output is text. It is pure: its test, which go generate runs, reads and writes the files.
package generate
