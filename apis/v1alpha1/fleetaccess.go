// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FleetAccess says which namespaces of the hub may bring which operators to which
// clusters. Without any FleetAccess every namespace may bring anything to every cluster.
// As soon as there is one, nothing is admitted that no FleetAccess permits. One of them
// has to permit an admission as a whole: namespace, catalog, keys, target namespace and
// cluster.
//
// What runs already is left alone; the condition OutsideAccess of its ManagedOperator
// names the clusters.
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

// FleetAccessSpec says what is permitted, and to whom. Patterns are those of Go's
// path.Match: * is any text.
type FleetAccessSpec struct {
	// Reason is shown to whoever reads the object.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Reason string `json:"reason,omitempty"`

	// Namespaces of the hub in which the ManagedOperators are: names or patterns.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[-a-z0-9*?]+$`
	Namespaces []string `json:"namespaces"`

	// ClusterSelector selects FleetClusters by their labels. {} selects all.
	ClusterSelector metav1.LabelSelector `json:"clusterSelector"`

	// Registries of catalogs: a host, such as registry.example.com, or a host with the
	// beginning of a repository's name, such as registry.example.com/team. * is any
	// catalog, also one in a directory.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.all(r, r == '*' || !r.contains('*') && !r.contains('@') && !r.contains('://'))",message="a registry is a host, a host with the beginning of a repository's name, or *"
	Registries []string `json:"registries"`

	// PublicKeys, in PEM: the OperatorCatalog must require a signature, and by none but
	// these keys. Empty: none is required.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=2048
	// +kubebuilder:validation:items:Pattern=`^\s*-----BEGIN PUBLIC KEY-----`
	// +optional
	PublicKeys []string `json:"publicKeys,omitempty"`

	// TargetNamespaces that operators are installed into on the clusters: names or
	// patterns.
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
