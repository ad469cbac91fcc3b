// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// StorageMigrationPolicy defines who writes the custom resources of an operator again after a release changed their
// storage version.
//
// +kubebuilder:validation:Enum=Manual;Automatic
type StorageMigrationPolicy string

const (
	// StorageMigrationManual leaves the migration to people. The default.
	StorageMigrationManual StorageMigrationPolicy = "Manual"
	// StorageMigrationAutomatic makes the agent of each cluster migrate once the rollout of the release
	// has succeeded.
	StorageMigrationAutomatic StorageMigrationPolicy = "Automatic"
)

// StorageMigration makes an agent write custom resources again, in the storage version of their definition, and
// remove the other versions from status.storedVersions of the definition.
type StorageMigration struct {
	// ReleaseHash identifies the newest release whose rollout has succeeded. The agent begins only while this release
	// is installed. If it is empty, the agent only reports what must be migrated and which permission it lacks.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ReleaseHash string `json:"releaseHash,omitempty"`
}

// StorageMigrationProgress is the progress of the agent's last migration of the custom resources of one definition.
type StorageMigrationProgress struct {
	// Resource is the name of the definition, as plural.group.
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource"`
	// From are the versions that objects may have been stored in.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=atomic
	// +optional
	From []string `json:"from,omitempty"`
	// To is the storage version.
	// +kubebuilder:validation:MaxLength=63
	To string `json:"to"`
	// DefinitionGeneration is the generation of the definition. The migration begins again if the definition changes
	// before it is complete.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	DefinitionGeneration int64 `json:"definitionGeneration,omitempty"`
	// Objects is how many objects were written again.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	Objects int64 `json:"objects,omitempty"`
	// Failed is how many objects could not be written again.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	Failed int64 `json:"failed,omitempty"`
	// Failures name the first three of them, with the error.
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:MaxLength=600
	// +listType=atomic
	// +optional
	Failures []string `json:"failures,omitempty"`
	// Continue is the token from which the list of objects continues. Only the agent uses it.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Continue string `json:"continue,omitempty"`
	// StartTime is when the agent began.
	StartTime metav1.Time `json:"startTime"`
	// EndTime is when the agent had processed all objects.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
}
