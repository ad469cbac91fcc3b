// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VersionHold prevents the rollout of a version that was rolled back, or of settings that were rolled back at
// a version.
type VersionHold struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version"`
	// Settings is the hash of the held install settings, if the rollback changed settings and not the version: the
	// version is held with these settings only. The hash is the same in every channel, catalog and bundle.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Settings string `json:"settings,omitempty"`
	// Changes are the changes of the rollout to the settings, in a form for people, without the values of
	// environment variables.
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=atomic
	// +optional
	Changes []string `json:"changes,omitempty"`
	// Release is the hash of the release that was rolled back, if the version itself is not held. Hubs and agents of
	// earlier versions compare it. If settings is empty, exactly this release is held.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Release string `json:"release,omitempty"`
	// Rollout that was rolled back; empty if a person created the hold.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Rollout string `json:"rollout,omitempty"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Reason string `json:"reason"`
	// +optional
	Since metav1.Time `json:"since,omitempty"`
}

// IsOfSettings reports whether the version is held with certain settings only.
func (h VersionHold) IsOfSettings() bool { return h.Settings != "" }

// IsOfVersion reports whether the version is held with any settings and channel.
func (h VersionHold) IsOfVersion() bool { return h.Settings == "" && h.Release == "" }

// IsByPerson reports whether a person created the hold, and not a rollback.
func (h VersionHold) IsByPerson() bool { return h.Rollout == "" }

// Covers reports whether a release is held.
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

// Keys returns the keys of what is held. Two holds hold the same if they have a key in common, because a hold that an
// agent of an earlier version keeps has lost the hash of the settings.
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

// Subject returns what is held: a version, the settings of a version, or one release of a version.
func (h VersionHold) Subject() string {
	switch {
	case h.IsOfVersion():
		return "version " + h.Version
	case h.IsOfSettings():
		return "settings of version " + h.Version
	}
	return "one release of version " + h.Version
}

// String returns the subject as a sentence without a full stop and without the reason.
func (h VersionHold) String() string {
	if h.IsOfSettings() {
		return fmt.Sprintf("%s are held", h.Subject())
	}
	return fmt.Sprintf("%s is held", h.Subject())
}
