// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runbooks finds the page of an alert, and checks that the alerts of a rule set link to existing
// pages. Its inputs are the pages of docs/runbooks, which are in the binary, and rules of package slo. It is
// pure: it follows no link over a network. It does not write pages, which is the job of internal/generate.
package runbooks
