// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ReleaseRequirements are what a release needs of a cluster. The hub reads them in the
// bundles once, when it makes the rollout. A cluster that does not meet them is not
// admitted.
type ReleaseRequirements struct {
	// MinKubeVersion is the oldest version of Kubernetes that the bundle supports, as
	// its ClusterServiceVersion says.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	MinKubeVersion string `json:"minKubeVersion,omitempty"`

	// SupportedKubernetes are the versions of Kubernetes that the release is supported
	// on, as its catalog says. Absent where it does not.
	// +optional
	SupportedKubernetes *KubernetesRange `json:"supportedKubernetes,omitempty"`

	// EndOfSupport is the last day on which the release is supported, as its catalog
	// says; empty where it does not. A rollout after that day gives a warning.
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`
	// +kubebuilder:validation:MaxLength=10
	// +optional
	EndOfSupport string `json:"endOfSupport,omitempty"`

	// RemovedAPIs are the objects of the bundle whose API newer versions of Kubernetes
	// do not have: the first twenty.
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

	// AddedPermissions are rights that the release asks for, and that bundles which
	// clusters run do not have. A first installation adds none.
	// +listType=map
	// +listMapKey=from
	// +kubebuilder:validation:MaxItems=20
	// +optional
	AddedPermissions []AddedPermissions `json:"addedPermissions,omitempty"`

	// TooLarge is why the bundle fits on no cluster; empty where it does.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	TooLarge string `json:"tooLarge,omitempty"`

	// NotRead is what could not be read of the bundles, and is not checked therefore;
	// empty where everything was read.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	NotRead string `json:"notRead,omitempty"`
}

// KubernetesRange is a range of versions of Kubernetes, such as 1.32. Both ends are in
// it, with all patch releases; an empty end is open.
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

// AddedPermissions are rights that an upgrade adds.
type AddedPermissions struct {
	// From is the name of the installed bundle.
	// +kubebuilder:validation:MaxLength=253
	From string `json:"from"`
	// Rights that it does not have: the first ten.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=256
	Rights []string `json:"rights"`
	// Omitted is how many there are besides.
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
