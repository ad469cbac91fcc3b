// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterSource is what the hub last saw of the object that spec.sourceRef of a
// FleetCluster names. It is written by the discovery controller only.
type ClusterSource struct {
	// State of the source. Empty where the FleetCluster names none.
	// +optional
	State SourceState `json:"state,omitempty"`

	// Message says what the state means for the cluster, or what a person has to decide.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// PowerState is whether the machines of the cluster run, where the source knows it.
	// Rollouts defer a cluster that does not run, and nobody is paged because it is silent.
	// +optional
	PowerState ClusterPowerState `json:"powerState,omitempty"`

	// PowerStateSince is when the hub first saw that power state.
	// +optional
	PowerStateSince *metav1.Time `json:"powerStateSince,omitempty"`

	// Labels that were set from the source. Those that people set are not among them.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Clashes are other sources that would have the name of this FleetCluster. They are
	// not part of the fleet.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Clashes []SourceReference `json:"clashes,omitempty"`
}

// SourceState is how the source of a FleetCluster is.
//
// +kubebuilder:validation:Enum=Present;Paused;Relocating;Moved;Missing;Taken
type SourceState string

const (
	// SourcePresent is a source that is followed.
	SourcePresent SourceState = "Present"
	// SourcePaused is a source whose owner paused it. Nothing is changed because of it, and
	// rollouts defer the cluster.
	SourcePaused SourceState = "Paused"
	// SourceRelocating is a source that is being moved to another management cluster.
	// Nothing is changed because of it, and rollouts defer the cluster.
	SourceRelocating SourceState = "Relocating"
	// SourceMoved is a source that was paused or relocating when it vanished. The
	// FleetCluster is kept.
	SourceMoved SourceState = "Moved"
	// SourceMissing is a source that is not there, or is being deleted, and whose
	// FleetCluster is kept.
	SourceMissing SourceState = "Missing"
	// SourceTaken is a source that an older FleetCluster names too, and which is followed
	// there.
	SourceTaken SourceState = "Taken"
)

// ClusterPowerState is whether the machines of a cluster run.
//
// +kubebuilder:validation:Enum=Running;Stopping;Hibernating;Resuming
type ClusterPowerState string

const (
	// PowerRunning is a cluster whose machines run.
	PowerRunning ClusterPowerState = "Running"
	// PowerStopping is a cluster whose machines are being stopped.
	PowerStopping ClusterPowerState = "Stopping"
	// PowerHibernating is a cluster whose machines are stopped.
	PowerHibernating ClusterPowerState = "Hibernating"
	// PowerResuming is a cluster whose machines are being started, or which has not settled
	// since.
	PowerResuming ClusterPowerState = "Resuming"
)

// IsHibernating tells whether the machines of the cluster are stopped, or on their way
// there or back.
func (s *FleetClusterStatus) IsHibernating() bool {
	if s.Source == nil {
		return false
	}
	switch s.Source.PowerState {
	case PowerStopping, PowerHibernating, PowerResuming:
		return true
	}
	return false
}

// IsSourcePaused tells whether the owner of the source wants the cluster left alone.
func (s *FleetClusterStatus) IsSourcePaused() bool {
	return s.Source != nil && (s.Source.State == SourcePaused || s.Source.State == SourceRelocating)
}
