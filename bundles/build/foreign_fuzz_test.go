// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"errors"
	"testing"
	"testing/fstest"

	"github.com/bellwether-dev/bellwether/bundles/build"
	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
)

func FuzzReadPackageManifests(f *testing.F) {
	f.Add("packageName: demo\nchannels:\n- {name: stable, currentCSV: demo.v1.0.0}\n",
		"kind: ClusterServiceVersion\nmetadata: {name: demo.v1.0.0}\nspec: {version: 1.0.0}\n")
	f.Add("packageName: &a [b]\nchannels: [*a, *a]\n", "")
	f.Add(untrustedtest.AliasBomb("channels"), untrustedtest.AliasBomb("spec"))
	f.Fuzz(func(t *testing.T, head, csv string) {
		files := fstest.MapFS{"demo.package.yaml": {Data: []byte(head)}, "1.0.0/csv.yaml": {Data: []byte(csv)}}
		untrustedtest.Bound(t, len(head)+len(csv), 16<<20, 8<<10, func() {
			p, err := build.ReadPackageManifests(files)
			if err != nil {
				if !errors.Is(err, build.ErrNotPackageManifests) && !errors.Is(err, build.ErrInput) {
					t.Errorf("an error of no kind: %v", err)
				}
				return
			}
			if p.Package == "" {
				t.Error("a package without a name")
			}
		})
	})
}
