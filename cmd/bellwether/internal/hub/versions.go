// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// InstalledVersion returns the version that an install reports; empty if there is
// none.
func InstalledVersion(in *v1alpha1.OperatorInstall) string {
	if in.Status.Installed == nil {
		return ""
	}
	return cmp.Or(in.Status.Installed.Version, in.Status.Installed.Bundle)
}
