// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ReleaseRequirements are what a release needs from a cluster. The hub reads them from the bundles once, when it
// creates the rollout. A cluster that does not meet them is not admitted.
type ReleaseRequirements struct {
	// MinKubeVersion is the oldest version of Kubernetes that the bundle supports, according to
	// its ClusterServiceVersion.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	MinKubeVersion string `json:"minKubeVersion,omitempty"`

	// SupportedKubernetes are the versions of Kubernetes that the release supports, according to its catalog. Absent
	// if the catalog does not have them.
	// +optional
	SupportedKubernetes *KubernetesRange `json:"supportedKubernetes,omitempty"`

	// EndOfSupport is the last day on which the release is supported, according to its catalog; empty if the catalog
	// does not have it. A rollout after that day gives a warning.
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`
	// +kubebuilder:validation:MaxLength=10
	// +optional
	EndOfSupport string `json:"endOfSupport,omitempty"`

	// RemovedAPIs are the objects of the bundle whose API was removed in newer versions of Kubernetes: the
	// first twenty.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +optional
	RemovedAPIs []RemovedAPI `json:"removedAPIs,omitempty"`

	// RefusedUpgrades are the installed bundles from which the API server refuses the
	// upgrade, because of a change of a CustomResourceDefinition.
	// +listType=map
	// +listMapKey=from
	// +kubebuilder:validation:MaxItems=20
	// +optional
	RefusedUpgrades []RefusedUpgrade `json:"refusedUpgrades,omitempty"`

	// AddedPermissions are permissions that the release requests and that the bundles that clusters run do not have.
	// A first installation adds none.
	// +listType=map
	// +listMapKey=from
	// +kubebuilder:validation:MaxItems=20
	// +optional
	AddedPermissions []AddedPermissions `json:"addedPermissions,omitempty"`

	// TooLarge is why the bundle is too large for any cluster; empty if it is not.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	TooLarge string `json:"tooLarge,omitempty"`

	// NotRead is what could not be read from the bundles and is therefore not checked; empty if everything was read.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	NotRead string `json:"notRead,omitempty"`
}

// KubernetesRange is a range of versions of Kubernetes, such as 1.32. It includes both ends, with all patch releases;
// an empty end is open.
type KubernetesRange struct {
	// +kubebuilder:validation:MaxLength=16
	// +optional
	Min string `json:"min,omitempty"`
	// +kubebuilder:validation:MaxLength=16
	// +optional
	Max string `json:"max,omitempty"`
}

// RemovedAPI is an object of a bundle whose API Kubernetes removed.
type RemovedAPI struct {
	// +kubebuilder:validation:MaxLength=128
	APIVersion string `json:"apiVersion"`
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// RemovedIn is the first version of Kubernetes without the API, such as 1.25.
	// +kubebuilder:validation:MaxLength=16
	RemovedIn string `json:"removedIn"`
}

// AddedPermissions are permissions that an upgrade adds.
type AddedPermissions struct {
	// From is the name of the installed bundle.
	// +kubebuilder:validation:MaxLength=253
	From string `json:"from"`
	// Rights are the permissions that the installed bundle does not have: the first ten.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=256
	Rights []string `json:"rights"`
	// Omitted is the number of further permissions.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`
}

// RefusedUpgrade is an upgrade that the API server refuses.
type RefusedUpgrade struct {
	// From is the name of the installed bundle.
	// +kubebuilder:validation:MaxLength=253
	From string `json:"from"`
	// Reason names the definition and what changes in it.
	// +kubebuilder:validation:MaxLength=512
	Reason string `json:"reason"`
}
