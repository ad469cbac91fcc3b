// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// StorageMigrationPolicy says who has the custom resources of an operator stored
// anew after a release changed their storage version.
//
// +kubebuilder:validation:Enum=Manual;Automatic
type StorageMigrationPolicy string

const (
	// StorageMigrationManual leaves it to people. The default.
	StorageMigrationManual StorageMigrationPolicy = "Manual"
	// StorageMigrationAutomatic has the agent of each cluster do it once the rollout
	// of the release has succeeded.
	StorageMigrationAutomatic StorageMigrationPolicy = "Automatic"
)

// StorageMigration asks an agent to have custom resources stored anew, in the
// storage version of their definition, and to remove the other versions from
// status.storedVersions of the definition.
type StorageMigration struct {
	// ReleaseHash identifies the newest release whose rollout has succeeded. The agent
	// begins while exactly that release is installed. Without it the agent only says
	// what has to be migrated and which permission it lacks.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ReleaseHash string `json:"releaseHash,omitempty"`
}

// StorageMigrationProgress is what the agent did with the custom resources of one
// definition last.
type StorageMigrationProgress struct {
	// Resource is the name of the definition, as plural.group.
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource"`
	// From are the versions that objects may have been stored as.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=atomic
	// +optional
	From []string `json:"from,omitempty"`
	// To is the storage version.
	// +kubebuilder:validation:MaxLength=63
	To string `json:"to"`
	// DefinitionGeneration is that of the definition. The migration begins again if
	// the definition changes before it is complete.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	DefinitionGeneration int64 `json:"definitionGeneration,omitempty"`
	// Objects that were stored anew.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	Objects int64 `json:"objects,omitempty"`
	// Failed is how many objects could not be stored anew.
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
	// Continue is where the list of objects goes on. It is for the agent only.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Continue string `json:"continue,omitempty"`
	// StartTime is when the agent began.
	StartTime metav1.Time `json:"startTime"`
	// EndTime is when the agent had gone through all objects.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
}
