// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package registryv1_test

import (
	"errors"
	"testing"

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/untrusted/untrustedtest"
)

func FuzzParseSupport(f *testing.F) {
	f.Add([]byte(`{"endOfSupport":"2027-06-30","kubernetes":{"min":"1.30","max":"1.34"}}`))
	f.Add([]byte(`{"kubernetes":{"min":"1.99"}}{}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		untrustedtest.Bound(t, len(value), 1<<20, 1000, func() {
			s, err := registryv1.ParseSupport(value)
			if err != nil {
				if !errors.Is(err, registryv1.ErrSupport) {
					t.Errorf("an error of no kind: %v", err)
				}
				return
			}
			if s == (registryv1.Support{}) {
				t.Errorf("%q says nothing, and is valid", value)
			}
		})
	})
}
