// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OperatorCatalog is a published file-based catalog.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=oc,categories=bellwether
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Packages",type=integer,JSONPath=`.status.packageCount`
// +kubebuilder:printcolumn:name="Digest",type=string,JSONPath=`.status.digest`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.source.image`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OperatorCatalog struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec OperatorCatalogSpec `json:"spec"`
	// +optional
	Status OperatorCatalogStatus `json:"status,omitempty"`
}

// OperatorCatalogSpec says where the catalog is.
type OperatorCatalogSpec struct {
	Source CatalogSource `json:"source"`

	// PollInterval is how often a tag or a directory is looked at again. A
	// reference by digest is read once. At least 5s; default 1m.
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5s')",message="pollInterval must be at least 5s"
	// +optional
	PollInterval *metav1.Duration `json:"pollInterval,omitempty"`
}

// CatalogSource is where a file-based catalog is read from: exactly one of an
// OCI image and a directory.
//
// +kubebuilder:validation:XValidation:rule="has(self.image) != has(self.directory)",message="set exactly one of image and directory"
type CatalogSource struct {
	// Image is an OCI reference, by tag or by digest.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.contains('://')",message="image is an OCI reference without a scheme, such as registry.example.com/catalogs/main:latest"
	// +optional
	Image string `json:"image,omitempty"`

	// Directory is an absolute path that the hub and every agent can read. For
	// tests and for agents hosted beside the hub.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/')",message="directory must be an absolute path"
	// +optional
	Directory string `json:"directory,omitempty"`

	// Insecure allows plain HTTP to the registry.
	// +optional
	Insecure bool `json:"insecure,omitempty"`
}

// OperatorCatalogStatus is what the hub read.
type OperatorCatalogStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready, Reconciling, Stalled.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Digest of the catalog that is in use, "sha256:" and hex. A catalog that
	// cannot be read or contradicts itself never replaces a good one.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Digest string `json:"digest,omitempty"`

	// Source is where Digest was read from: the spec's source, unless that was
	// changed to one that is not good.
	// +optional
	Source *CatalogSource `json:"source,omitempty"`

	// LastReadTime is when Digest was first read.
	// +optional
	LastReadTime *metav1.Time `json:"lastReadTime,omitempty"`

	// +optional
	PackageCount int32 `json:"packageCount"`

	// Packages in name order; the first 500 of them.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=500
	// +optional
	Packages []CatalogPackage `json:"packages,omitempty"`
}

// CatalogPackage sums up one package of a catalog.
type CatalogPackage struct {
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +kubebuilder:validation:MaxLength=253
	// +optional
	DefaultChannel string `json:"defaultChannel,omitempty"`
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Channels []CatalogChannel `json:"channels,omitempty"`
}

// CatalogChannel sums up one channel of a package.
type CatalogChannel struct {
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Head is the version at the head of the channel.
	// +kubebuilder:validation:MaxLength=128
	Head string `json:"head"`
	// Versions is the number of versions in the channel.
	Versions int32 `json:"versions"`
}

// OperatorCatalogList is a list of OperatorCatalogs.
//
// +kubebuilder:object:root=true
type OperatorCatalogList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OperatorCatalog `json:"items"`
}
