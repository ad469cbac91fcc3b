// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// InstalledVersion returns the version that an install reports, or the bundle's name if it reports no version; empty if
// nothing is installed.
func InstalledVersion(in *v1alpha1.OperatorInstall) string {
	if in.Status.Installed == nil {
		return ""
	}
	return cmp.Or(in.Status.Installed.Version, in.Status.Installed.Bundle)
}
