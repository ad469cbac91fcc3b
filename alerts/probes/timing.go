// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Defaults of the API, for values that no API server filled in.
const (
	DefaultInterval = 30 * time.Second
	DefaultTimeout  = 5 * time.Second
)

// applyDefault returns a copy of the given duration, or the default if it is nil.
func applyDefault(given *metav1.Duration, otherwise time.Duration) *metav1.Duration {
	if given != nil {
		return &metav1.Duration{Duration: given.Duration}
	}
	return &metav1.Duration{Duration: otherwise}
}

// DurationOr returns a duration of a spec, or a default if the spec does not set it.
func DurationOr(given *metav1.Duration, otherwise time.Duration) time.Duration {
	return applyDefault(given, otherwise).Duration
}
