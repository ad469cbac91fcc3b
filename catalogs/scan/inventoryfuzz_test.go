// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scan_test

import (
	"errors"
	"testing"

	"github.com/bellwether-dev/bellwether/catalogs/scan"
	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
)

func FuzzReadInventory(f *testing.F) {
	f.Add([]byte(`{"bomFormat":"CycloneDX","specVersion":"1.6","components":[{"name":"a","purl":"pkg:golang/a@v1"}]}`))
	f.Add([]byte(`{"spdxVersion":"SPDX-2.3","packages":[{"name":"a","versionInfo":"1"}]}`))
	f.Add([]byte(`{"predicate":{"predicate":{"predicate":{"predicate":{"predicate":{}}}}}}`))
	f.Add([]byte(`{"payload":"e30=","dsseEnvelope":{"payload":"e30="}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		untrustedtest.Bound(t, len(content), 4<<20, 1000, func() {
			if _, err := scan.ReadInventory(content); err != nil && !errors.Is(err, scan.ErrNotSBOM) {
				t.Errorf("an error of no kind: %v", err)
			}
		})
	})
}
