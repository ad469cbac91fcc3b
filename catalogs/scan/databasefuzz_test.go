// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scan_test

import (
	"errors"
	"testing"
	"testing/fstest"

	"github.com/bellwether-dev/bellwether/catalogs/scan"
	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
)

func FuzzReadDatabase(f *testing.F) {
	f.Add([]byte(`{"id":"GO-2026-1","affected":[{"package":{"ecosystem":"Go","name":"a"},"ranges":[{"type":"SEMVER",`+
		`"events":[{"introduced":"0"},{"fixed":"1.2.3"}]}]}]}`), false)
	f.Add([]byte(`{"id":1}`), false)
	f.Add([]byte("PK\x05\x06"), true)
	f.Fuzz(func(t *testing.T, content []byte, isArchive bool) {
		name := "a.json"
		if isArchive {
			name = "all.zip"
		}
		untrustedtest.Bound(t, len(content), 8<<20, 2000, func() {
			d, err := scan.ReadDatabase(fstest.MapFS{name: {Data: content}}, []scan.Target{{Ecosystem: "Go",
				Name: "a"}})
			if err == nil && d.Records == 0 {
				t.Error("a database without a record")
			}
			if err != nil && !isArchive && !errors.Is(err, scan.ErrNoDatabase) {
				t.Errorf("an error of no kind: %v", err)
			}
		})
	})
}
