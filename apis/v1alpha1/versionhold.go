// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VersionHold keeps an operator from a version that was rolled back, or from settings
// that were rolled back at a version.
type VersionHold struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version"`
	// Settings is the hash of the install settings that are held, where the rollback
	// changed settings and not the version: the version is held with these settings only. It is the
	// same in every channel, catalog and bundle.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Settings string `json:"settings,omitempty"`
	// Changes are what the rollout had changed in the settings, for people to read,
	// without the values of environment variables.
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=atomic
	// +optional
	Changes []string `json:"changes,omitempty"`
	// Release is the hash of the release that was rolled back, where the version itself
	// is not held. Hubs and agents of earlier versions compare it. Where settings is empty,
	// exactly this release is held.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Release string `json:"release,omitempty"`
	// Rollout that was rolled back; empty where a person made the hold.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Rollout string `json:"rollout,omitempty"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Reason string `json:"reason"`
	// +optional
	Since metav1.Time `json:"since,omitempty"`
}

// IsOfSettings tells whether the version is held with certain settings only.
func (h VersionHold) IsOfSettings() bool { return h.Settings != "" }

// IsOfVersion tells whether the version is held whatever its settings and its channel are.
func (h VersionHold) IsOfVersion() bool { return h.Settings == "" && h.Release == "" }

// IsByPerson tells whether a person made the hold, and no rollback.
func (h VersionHold) IsByPerson() bool { return h.Rollout == "" }

// Covers tells whether a release is held.
func (h VersionHold) Covers(r Release) bool {
	switch {
	case h.Version != r.Version:
		return false
	case h.Settings != "":
		return h.Settings == r.SettingsHash()
	case h.Release != "":
		return h.Release == r.Hash()
	}
	return true
}

// Keys identify what is held. Two holds are of the same where they have a key in common: a hold that an agent of an
// earlier version keeps has lost the hash of the settings.
func (h VersionHold) Keys() []string {
	if h.IsOfVersion() {
		return []string{h.Version}
	}
	var keys []string
	for _, hash := range []string{h.Settings, h.Release} {
		if hash != "" {
			keys = append(keys, h.Version+" "+hash)
		}
	}
	return keys
}

// Subject is what is held: a version, the settings of one, or one release of it.
func (h VersionHold) Subject() string {
	switch {
	case h.IsOfVersion():
		return "version " + h.Version
	case h.IsOfSettings():
		return "settings of version " + h.Version
	}
	return "one release of version " + h.Version
}

// String says that it is held, without why.
func (h VersionHold) String() string {
	if h.IsOfSettings() {
		return fmt.Sprintf("%s are held", h.Subject())
	}
	return fmt.Sprintf("%s is held", h.Subject())
}
