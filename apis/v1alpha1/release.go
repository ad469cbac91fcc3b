// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
)

// Hash returns the identity of a release on a cluster: a hash of all fields except for the catalog that the bundle
// was found in, so that a republished catalog is not another release.
func (r Release) Hash() string {
	r.Catalog = CatalogPin{}
	text, err := json.Marshal(r)
	if err != nil { // plain data always marshals
		panic(fmt.Sprintf("marshal release: %v", err))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// AsInstalledText is shown instead of the version for a release that takes over installed operators.
const AsInstalledText = "as installed"

// VersionText returns the version of the release for people, or AsInstalledText.
func (r Release) VersionText() string {
	if r.AsInstalled {
		return AsInstalledText
	}
	return r.Version
}

// Purpose returns the continuation of a sentence about a rollout of the release: "to 1.2.0".
func (r Release) Purpose() string {
	if r.AsInstalled {
		return "to take over the installed versions"
	}
	return "to " + r.Version
}

// TargetNamespace returns the namespace that the operator is installed into.
func (r Release) TargetNamespace() string {
	if r.Install.Namespace != "" {
		return r.Install.Namespace
	}
	return r.Package
}

// ToPrevious returns the release as a PreviousRelease, with its install settings.
func (r Release) ToPrevious() *PreviousRelease {
	return &PreviousRelease{Channel: r.Channel, Version: r.Version, Bundle: r.Bundle, Install: r.Install.DeepCopy()}
}

// WithPrevious returns the release that ran before this release, in the catalog of this release, which has both.
func (r Release) WithPrevious(previous PreviousRelease) Release {
	r.Channel, r.Version, r.Bundle = previous.Channel, previous.Version, previous.Bundle
	r.AsInstalled = false
	if previous.Install != nil {
		r.Install = *previous.Install.DeepCopy()
	}
	return r
}

// SetPrevious sets the release that ran before the admission's release, which must be set already. It leaves out
// install settings that are equal to the release's settings, to save memory: there is an OperatorInstall for each
// operator on each cluster.
func (a *Admission) SetPrevious(previous *PreviousRelease) {
	a.Previous = previous.DeepCopy()
	if previous != nil && previous.Install != nil && equality.Semantic.DeepEqual(*previous.Install, a.Release.Install) {
		a.Previous.Install = nil
	}
}

// PreviousRelease returns the release that ran before, with its install settings; nil if there was none. It shares
// its memory with the admission.
func (a *Admission) PreviousRelease() *PreviousRelease {
	if a.Previous == nil || a.Previous.Install != nil {
		return a.Previous
	}
	previous := *a.Previous
	previous.Install = &a.Release.Install
	return &previous
}

// Covers reports whether an admission is the other admission, or newer. A nil admission covers none.
func (a *Admission) Covers(other Admission) bool {
	return a != nil && (a.Revision > other.Revision ||
		a.Revision == other.Revision && a.RolloutUID == other.RolloutUID)
}
