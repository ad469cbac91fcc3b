// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestHealthWithoutConditions(t *testing.T) {
	if got := Health([]metav1.Condition{}); got != (Cell{"Unknown", Warn}) {
		t.Errorf("an object that nobody has looked at is %v", got)
	}
}
