// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// TestMissingCommit has the error say what to do in a clone without the whole history.
func TestMissingCommit(t *testing.T) {
	_, err := Release(t.Context(), io.Discard, strings.Repeat("0", 40), "0.0.1")
	if !errors.Is(err, ErrNoCommit) || !strings.Contains(err.Error(), "git fetch --unshallow") {
		t.Errorf("Release: %v, want %v and what to do", err, ErrNoCommit)
	}
}
