// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FleetFreeze stops all changes by Bellwether on clusters while it exists: no cluster is admitted to a release, not
// even to a rollback; no operator is uninstalled, corrected or taken over, and no InstallPlan is approved. Installed
// operators continue to run, and are observed, probed and alerted about.
//
// Agents read it themselves, so it is also in force while the hub's controllers do not run. Only a person can
// delete it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=fleetfreezes,shortName=ff,categories=bellwether
// +kubebuilder:printcolumn:name="Clusters",type=string,JSONPath=`.spec.clusters`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type FleetFreeze struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec FleetFreezeSpec `json:"spec"`
}

// FleetFreezeSpec defines which clusters are frozen, and why.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a freeze is not changed: make another one, and end this one with bellwether fleet unfreeze"
type FleetFreezeSpec struct {
	// Clusters are names of FleetClusters, or patterns of Go's path.Match: * matches any text, and * alone matches
	// the whole fleet.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[-a-z0-9*?]+$`
	Clusters []string `json:"clusters"`

	// Reason is shown for everything that waits for the end of the freeze.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason"`
}

// FleetFreezeList is a list of FleetFreezes.
//
// +kubebuilder:object:root=true
type FleetFreezeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FleetFreeze `json:"items"`
}
