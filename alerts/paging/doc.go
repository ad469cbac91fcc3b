// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package paging decides who is notified of an alert. Of PagingPolicies and the
// operators that they select it makes Alertmanager's configuration, and of a
// configuration it says, with Alertmanager's own code, which receivers an alert
// reaches and which incident it belongs to.
//
// It is pure: it reads no cluster and sends nothing. It never sees the value of a
// Secret.
package paging
