// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VersionUpdates defines which newer versions are rolled out without an approval. The kind of an update depends on
// the numbers of the version that was rolled out last and of the newer version: 1.2.3 to 1.2.4 is a patch, to 1.3.0
// minor, to 2.0.0 major. From 0.1.0 to 0.2.0 is minor.
type VersionUpdates struct {
	// Patch defines whether an update of the third number, of a pre-release or of a rebuild is rolled out without
	// an approval.
	// +kubebuilder:default=Automatic
	// +optional
	Patch UpdatePolicy `json:"patch,omitempty"`
	// Minor defines whether an update of the second number is rolled out without an approval.
	// +kubebuilder:default=Automatic
	// +optional
	Minor UpdatePolicy `json:"minor,omitempty"`
	// Major defines whether an update of the first number is rolled out without an approval.
	// +kubebuilder:default=Automatic
	// +optional
	Major UpdatePolicy `json:"major,omitempty"`

	// Approved is the version that a person approved last. A user who sets it needs the verb approve on the
	// ManagedOperator. The approval is for this version only; once the version is rolled out, it has no effect.
	// +optional
	Approved *VersionApproval `json:"approved,omitempty"`
}

// Policy returns the policy for updates of a kind. A nil VersionUpdates is Automatic for each kind.
func (u *VersionUpdates) Policy(kind UpdateKind) UpdatePolicy {
	if u == nil {
		return UpdateAutomatic
	}
	policy := map[UpdateKind]UpdatePolicy{UpdatePatch: u.Patch, UpdateMinor: u.Minor, UpdateMajor: u.Major}[kind]
	return cmp.Or(policy, UpdateAutomatic)
}

// UpdatePolicy defines whether newer versions are rolled out without an approval.
//
// +kubebuilder:validation:Enum=Automatic;Approval
type UpdatePolicy string

const (
	// UpdateAutomatic rolls newer versions out without an approval.
	UpdateAutomatic UpdatePolicy = "Automatic"
	// UpdateApproval waits until a person approves the version.
	UpdateApproval UpdatePolicy = "Approval"
)

// UpdateKind is the kind of the difference between a version and the version before.
//
// +kubebuilder:validation:Enum=Patch;Minor;Major
type UpdateKind string

const (
	// UpdatePatch changes the third number, the pre-release or the rebuild.
	UpdatePatch UpdateKind = "Patch"
	// UpdateMinor changes the second number.
	UpdateMinor UpdateKind = "Minor"
	// UpdateMajor changes the first number.
	UpdateMajor UpdateKind = "Major"
)

// VersionApproval is a person's approval of one version.
type VersionApproval struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version"`
	// By is the user name of the person who approved, as the API server authenticated it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason"`
	// +optional
	At metav1.Time `json:"at,omitempty"`
}

// AvailableVersion is a version that could be rolled out and waits for an approval.
type AvailableVersion struct {
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version"`
	// Update is the kind of the update from the version that was rolled out last.
	Update UpdateKind `json:"update"`
	// Since is when the hub first observed that the version waits.
	Since metav1.Time `json:"since"`
	// Reason is why the version needs an approval.
	// +kubebuilder:validation:MaxLength=512
	Reason string `json:"reason"`
}
