// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package paging decides who is notified of an alert. It makes Alertmanager's configuration
// from PagingPolicies and the operators that they select. For a configuration it computes, with
// Alertmanager's own code, which receivers an alert reaches and which incident it belongs to.
//
// Next decides which PagingPolicies are in force, what is written for Alertmanager, which policies
// are tested, and each policy's status. An invalid policy changes nothing: the spec that was applied
// last stays in force. For this reason the specs in force are part of the written data (Written).
//
// For people it checks policies before they are applied (PolicySet), shows the incident that an alert would
// open (PreviewIncidents), and groups the alerts of an Alertmanager by incident (OpenIncidents).
//
// The package is pure: it reads no cluster, sends nothing and has no clock.
// It copies the values of Secrets, but never writes them into a message.
package paging
