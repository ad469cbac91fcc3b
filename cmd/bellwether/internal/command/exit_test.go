// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestExplainKnowsInterrupts(t *testing.T) {
	a := NewEnv("bellwether", genericiooptions.IOStreams{})
	if message, _ := a.explain(errors.Join(errors.New("x"), context.Canceled)); message != "interrupted" {
		t.Errorf("an interrupt is explained as %q", message)
	}
}
