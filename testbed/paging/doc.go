// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package paging tests who is paged: with the configuration that the hub makes of PagingPolicies, on a real
// Alertmanager, against a strict local Events API that keeps a ledger. It has tests only.
package paging
