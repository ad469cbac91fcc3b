// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Defaults of the API, for objects that no API server has seen.
const (
	DefaultInterval = 30 * time.Second
	DefaultTimeout  = 5 * time.Second
)

func orDefault(given *metav1.Duration, otherwise time.Duration) *metav1.Duration {
	if given != nil {
		return &metav1.Duration{Duration: given.Duration}
	}
	return &metav1.Duration{Duration: otherwise}
}

// DurationOr returns a duration of a spec, or a default if the spec does not
// set it.
func DurationOr(given *metav1.Duration, otherwise time.Duration) time.Duration {
	return orDefault(given, otherwise).Duration
}
