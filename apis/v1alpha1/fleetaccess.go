// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FleetAccess defines which namespaces of the hub may install which operators on which clusters. If there is no
// FleetAccess, every namespace may install any operator on every cluster. As soon as there is a FleetAccess, each
// admission must be permitted by a FleetAccess. One FleetAccess must permit the whole admission: namespace, catalog,
// keys, target namespace and cluster.
//
// Operators that already run are not changed; the condition OutsideAccess of their ManagedOperator names
// the clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=fleetaccesses,shortName=fa,categories=bellwether
// +kubebuilder:printcolumn:name="Namespaces",type=string,JSONPath=`.spec.namespaces`
// +kubebuilder:printcolumn:name="Registries",type=string,JSONPath=`.spec.registries`
// +kubebuilder:printcolumn:name="Target namespaces",type=string,JSONPath=`.spec.targetNamespaces`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type FleetAccess struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec FleetAccessSpec `json:"spec"`
}

// FleetAccessSpec defines what is permitted, and to whom. Patterns are patterns of Go's path.Match: * matches
// any text.
type FleetAccessSpec struct {
	// Reason is shown to users who read the object.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Reason string `json:"reason,omitempty"`

	// Namespaces of the hub that have the ManagedOperators: names or patterns.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[-a-z0-9*?]+$`
	Namespaces []string `json:"namespaces"`

	// ClusterSelector selects FleetClusters by their labels. {} selects all FleetClusters.
	ClusterSelector metav1.LabelSelector `json:"clusterSelector"`

	// Registries of catalogs: a host, such as registry.example.com, or a host with the beginning of a repository's
	// name, such as registry.example.com/team. * permits any catalog, including a catalog in a directory.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.all(r, r == '*' || !r.contains('*') && !r.contains('@') && !r.contains('://'))",message="a registry is a host, a host with the beginning of a repository's name, or *"
	Registries []string `json:"registries"`

	// PublicKeys, in PEM: the OperatorCatalog must require a signature, and only by these keys. Empty means that no
	// signature is required.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=2048
	// +kubebuilder:validation:items:Pattern=`^\s*-----BEGIN PUBLIC KEY-----`
	// +optional
	PublicKeys []string `json:"publicKeys,omitempty"`

	// TargetNamespaces are the namespaces on the clusters that operators may be installed into: names or patterns.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[-a-z0-9*?]+$`
	TargetNamespaces []string `json:"targetNamespaces"`
}

// FleetAccessList is a list of FleetAccess objects.
//
// +kubebuilder:object:root=true
type FleetAccessList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FleetAccess `json:"items"`
}
