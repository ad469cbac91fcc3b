// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// RolloutPolicy sets minimum requirements for the rollouts of the operators and clusters that it selects. A
// ManagedOperator can be stricter, but cannot weaken them. If several policies select a rollout, the strictest
// requirement of each kind counts. A rollback ignores all policies.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=rpol,categories=bellwether
// +kubebuilder:printcolumn:name="Min waves",type=integer,JSONPath=`.spec.minWaves`
// +kubebuilder:printcolumn:name="Min soak",type=string,JSONPath=`.spec.minSoak`
// +kubebuilder:printcolumn:name="Max concurrency",type=string,JSONPath=`.spec.maxConcurrency`
// +kubebuilder:printcolumn:name="Gates",type=string,JSONPath=`.spec.gates[*].name`
// +kubebuilder:printcolumn:name="Windows",type=string,JSONPath=`.spec.windows`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 30",message="a RolloutPolicy's name becomes a part of the names of gates: at most 30 characters"
// +kubebuilder:validation:XValidation:rule="self.metadata.name != 'bellwether' || !has(self.spec.gates) || !self.spec.gates.exists(g, g.name == 'observation')",message="bellwether/observation is the name of a gate that Bellwether adds itself: give the policy or the gate another name"
type RolloutPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RolloutPolicySpec `json:"spec"`
}

// RolloutPolicySpec defines the requirements, and the operators and clusters that they apply to.
//
// +kubebuilder:validation:XValidation:rule="has(self.minWaves) || has(self.minSoak) || has(self.maxConcurrency) || has(self.gates) || has(self.windows)",message="a RolloutPolicy must ask for something: set minWaves, minSoak, maxConcurrency, gates or windows"
type RolloutPolicySpec struct {
	// Reason is shown to users whose rollouts the policy blocks.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Reason string `json:"reason,omitempty"`

	// Namespaces are the namespaces of the ManagedOperators that the policy applies to. Empty means all.
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`

	// OperatorSelector selects ManagedOperators by their labels. Empty means all. A user who may write a
	// ManagedOperator may change its labels: use namespaces if a policy must also be enforced against its owner.
	// +optional
	OperatorSelector *metav1.LabelSelector `json:"operatorSelector,omitempty"`

	// ClusterSelector selects FleetClusters by their labels. Empty means all. A wave is bound if one of its clusters
	// is selected.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// MinWaves is the minimum number of waves with clusters in a rollout. A rollout with fewer clusters needs a wave
	// for each cluster. If a rollout has fewer waves, no cluster is admitted.
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=20
	// +optional
	MinWaves *int32 `json:"minWaves,omitempty"`

	// MinSoak is the shortest soak of a wave.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('720h')",message="minSoak must be between 1s and 720h (30 days)"
	// +optional
	MinSoak *metav1.Duration `json:"minSoak,omitempty"`

	// MaxConcurrency is the maximum number of clusters of a wave that are changed at a time: a number or a percentage
	// of the wave (rounded down, at least 1).
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : true",message="must be a number of at least 1, or a percentage such as 10%"
	// +kubebuilder:validation:Pattern=`^(100|[1-9][0-9]?)%$`
	// +optional
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`

	// Gates are added to each wave, with the policy's name and a slash before their names. A gate of the kind
	// baseline is not added to a wave that takes all remaining clusters, where it could never pass; a rollout without
	// any other wave admits no cluster.
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:XValidation:rule="self.all(g, size(g.name) <= 32)",message="names of a RolloutPolicy's gates have at most 32 characters"
	// +listType=map
	// +listMapKey=name
	// +optional
	Gates []Gate `json:"gates,omitempty"`

	// Windows are names of ChangeWindows that apply to the operators and clusters that this policy selects, whatever
	// the windows themselves select. A window that does not exist closes these clusters.
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	Windows []string `json:"windows,omitempty"`
}

// AppliedPolicy is a RolloutPolicy that binds a rollout.
type AppliedPolicy struct {
	// +kubebuilder:validation:MaxLength=30
	Name string `json:"name"`
	// Generation of the policy that binds the rollout. Until the policy is changed, it continues to bind the operator
	// and these waves, even if labels of the ManagedOperator or of clusters change.
	Generation int64 `json:"generation"`
	// Waves that are bound.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=21
	// +kubebuilder:validation:items:MaxLength=40
	// +optional
	Waves []string `json:"waves,omitempty"`
	// Added are the requirements that the strategy does not have itself, or not as strictly. The first 30.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=30
	// +kubebuilder:validation:items:MaxLength=256
	// +optional
	Added []string `json:"added,omitempty"`
}

// RolloutPolicyList is a list of RolloutPolicies.
//
// +kubebuilder:object:root=true
type RolloutPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RolloutPolicy `json:"items"`
}
