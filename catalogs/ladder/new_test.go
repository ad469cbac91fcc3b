// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package ladder_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs/ladder"
)

func TestNewCommented(t *testing.T) {
	file, err := ladder.NewCommented("echo.yaml", "echo", ladder.DefaultChannels())
	if err != nil {
		t.Fatal(err)
	}
	if l := file.Ladder; l.Package != "echo" || len(l.Bundles) != 0 {
		t.Errorf("ladder %+v", l)
	}
	if diff := cmp.Diff(ladder.DefaultChannels(), file.Ladder.ListChannels()); diff != "" {
		t.Errorf("channels (-want +got):\n%s", diff)
	}
	text, err := file.Format()
	if err != nil || !strings.HasPrefix(string(text), "# The versions of echo, and how far each has come.") {
		t.Errorf("%v:\n%s", err, text)
	}
	if _, err := ladder.NewCommented("echo.yaml", "", nil); !errors.Is(err, ladder.ErrInvalid) {
		t.Errorf("without a package: %v", err)
	}
}
