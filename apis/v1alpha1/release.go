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

// Hash identifies what a release comes to on a cluster: package, channel,
// version, bundle and install settings. The catalog that the bundle was found
// in is left out, so a republished catalog is not another release.
func (r Release) Hash() string {
	r.Catalog = CatalogPin{}
	text, err := json.Marshal(r)
	if err != nil { // plain data always marshals
		panic(fmt.Sprintf("marshal release: %v", err))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// AsInstalledText stands for the version of a release that takes over what is installed.
const AsInstalledText = "as installed"

// VersionText is what the release brings, where people read a version: its version, or AsInstalledText.
func (r Release) VersionText() string {
	if r.AsInstalled {
		return AsInstalledText
	}
	return r.Version
}

// Purpose continues a sentence about a rollout of the release: "to 1.2.0".
func (r Release) Purpose() string {
	if r.AsInstalled {
		return "to take over the installed versions"
	}
	return "to " + r.Version
}

// TargetNamespace is the namespace that the operator is installed into.
func (r Release) TargetNamespace() string {
	if r.Install.Namespace != "" {
		return r.Install.Namespace
	}
	return r.Package
}

// Previous returns the release as a PreviousRelease, with its install settings.
func (r Release) Previous() *PreviousRelease {
	return &PreviousRelease{Channel: r.Channel, Version: r.Version, Bundle: r.Bundle, Install: r.Install.DeepCopy()}
}

// Before returns the release that ran before this one, in the catalog of this
// one: that has both.
func (r Release) Before(previous PreviousRelease) Release {
	r.Channel, r.Version, r.Bundle = previous.Channel, previous.Version, previous.Bundle
	r.AsInstalled = false
	if previous.Install != nil {
		r.Install = *previous.Install.DeepCopy()
	}
	return r
}

// SetPrevious sets what ran before the admission's release, which is set already. Install
// settings that are those of the release are left out: an OperatorInstall is kept for
// each operator on each cluster.
func (a *Admission) SetPrevious(previous *PreviousRelease) {
	a.Previous = previous.DeepCopy()
	if previous != nil && previous.Install != nil && equality.Semantic.DeepEqual(*previous.Install, a.Release.Install) {
		a.Previous.Install = nil
	}
}

// PreviousRelease returns what ran before, with its install settings: nil where that was
// nothing. It shares its memory with the admission.
func (a *Admission) PreviousRelease() *PreviousRelease {
	if a.Previous == nil || a.Previous.Install != nil {
		return a.Previous
	}
	previous := *a.Previous
	previous.Install = &a.Release.Install
	return &previous
}

// Covers tells whether an admission is the other one, or newer: nil covers none.
func (a *Admission) Covers(other Admission) bool {
	return a != nil && (a.Revision > other.Revision ||
		a.Revision == other.Revision && a.RolloutUID == other.RolloutUID)
}
