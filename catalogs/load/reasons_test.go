// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/load"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
)

func TestReason(t *testing.T) {
	tests := map[string]struct {
		err  error
		want string
	}{
		"of a registry":   {fmt.Errorf("resolve: %w", oci.ErrNotFound), v1alpha1.ReasonSourceNotFound},
		"of credentials":  {fmt.Errorf("resolve: %w", oci.ErrDenied), v1alpha1.ReasonAccessDenied},
		"read and killed": {fmt.Errorf("read: %w", oci.ErrReadInterrupted), v1alpha1.ReasonCatalogReadInterrupted},
		"of a size":       {fmt.Errorf("read: %w", oci.ErrTooLarge), v1alpha1.ReasonCatalogTooLarge},
		"of a graph":      {fmt.Errorf("path: %w", catalogs.ErrNoPath), v1alpha1.ReasonNoUpgradePath},
		"of a block":      {fmt.Errorf("path: %w", catalogs.ErrBlocked), v1alpha1.ReasonVersionBlocked},
		"the content comes first": {fmt.Errorf("%w: %w", oci.ErrUnreachable, oci.ErrDigestMismatch),
			v1alpha1.ReasonDigestMismatch},
		"of something else entirely": {errors.New("connection reset"), v1alpha1.ReasonCatalogUnreachable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := load.ReasonFor(test.err); got != test.want {
				t.Errorf("reason = %s, want %s", got, test.want)
			}
		})
	}
}
