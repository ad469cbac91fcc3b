// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles_test

import (
	"errors"
	"testing"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
)

func FuzzParseSupport(f *testing.F) {
	f.Add([]byte(`{"endOfSupport":"2027-06-30","kubernetes":{"min":"1.30","max":"1.34"}}`))
	f.Add([]byte(`{"kubernetes":{"min":"1.99"}}{}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		untrustedtest.Bound(t, len(value), 1<<20, 1000, func() {
			s, err := bundles.ParseSupport(value)
			if err != nil {
				if !errors.Is(err, bundles.ErrSupport) {
					t.Errorf("an error of no kind: %v", err)
				}
				return
			}
			if s == (bundles.Support{}) {
				t.Errorf("%q says nothing, and is valid", value)
			}
		})
	})
}
