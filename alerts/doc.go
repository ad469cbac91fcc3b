// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package alerts will hold the maths of SLOs and error budgets, and what is
// made of them: recording and alerting rules for the whole fleet, and the
// Alertmanager configuration that pages once for each incident. It takes
// objectives and gives typed rules; it queries nothing and has no Kubernetes
// client.
//
// It is empty until SLOs are built.
package alerts
