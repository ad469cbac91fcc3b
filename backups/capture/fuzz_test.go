// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
)

// FuzzDecodePage decodes answers of a cluster's API server, which contain untrusted custom resources.
func FuzzDecodePage(f *testing.F) {
	f.Add([]byte(`{"kind":"List","metadata":{"continue":"x"},"items":[{"a":1},{"b":[]}]}`))
	f.Add([]byte(`{"items":[1,"x",null]}`))
	f.Add([]byte(`{"items":{}}`))
	f.Fuzz(func(t *testing.T, page []byte) {
		untrustedtest.Bound(t, len(page), 4<<20, 1000, func() {
			_, _ = decodePage(bytes.NewReader(page), func(raw []byte) error {
				if !json.Valid(raw) {
					t.Errorf("%q is no object", raw)
				}
				return nil
			})
		})
	})
}
