// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"maps"
	"os"
	"runtime"
	"slices"
	"testing"
)

// maxSizes are the maximum sizes of the programs in MB (1,000,000 bytes), as Local builds them for amd64: without cgo,
// symbols and debug information. Whoever raises one says in docs/decisions what the new dependency costs and gives.
var maxSizes = map[string]int64{Agent: 77, Hub: 82, Bellwether: 122}

// TestProgramsStayLight compares the sizes of the programs with maxSizes.
func TestProgramsStayLight(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skipf("the limits are for amd64, and this machine is %s", runtime.GOARCH)
	}
	t.Setenv("CGO_ENABLED", "0")
	paths, err := Local(t.Context(), t.Output(), t.TempDir(), slices.Collect(maps.Keys(maxSizes))...)
	if err != nil {
		t.Fatal(err)
	}
	for name, limit := range maxSizes {
		program, err := os.Stat(paths[name])
		if err != nil {
			t.Fatal(err)
		}
		if program.Size() > limit*1_000_000 {
			t.Errorf("%s has %d bytes, and may have %d MB", name, program.Size(), limit)
		}
	}
}
