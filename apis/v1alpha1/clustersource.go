// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	// Rollouts defer a cluster that does not run, and nobody is paged because it is silent:
	// see the condition Hibernating, which also says when the hub stops believing the source.
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

// PowerTransitionLimit is how long a source is believed that says that a cluster is being stopped or started. It may
// keep saying so although the machines have long been running, or could not be stopped.
const PowerTransitionLimit = 30 * time.Minute

// SaysStopped tells whether the source says that the machines of the cluster are stopped, or are being stopped or
// started. Whether the hub believes it is what FleetClusterStatus.IsHibernating tells.
func (s *ClusterSource) SaysStopped() bool {
	if s == nil {
		return false
	}
	switch s.PowerState {
	case PowerStopping, PowerHibernating, PowerResuming:
		return true
	case PowerRunning:
	}
	return false
}

// PowerStateEnd is when the hub stops believing the source that the cluster is being stopped or started; nil for other
// power states.
func (s *ClusterSource) PowerStateEnd() *metav1.Time {
	if !s.SaysStopped() || s.PowerState == PowerHibernating {
		return nil
	}
	end := metav1.NewTime(time.Time{})
	if s.PowerStateSince != nil {
		end = metav1.NewTime(s.PowerStateSince.Add(PowerTransitionLimit))
	}
	return &end
}

// IsHibernating tells whether the cluster is taken not to run: its source says that its machines are stopped, or are
// being stopped or started, and the hub believes it. The fleet controller decides that, and writes it to the condition
// Hibernating.
func (s *FleetClusterStatus) IsHibernating() bool {
	if !s.Source.SaysStopped() {
		return false
	}
	if meta.FindStatusCondition(s.Conditions, ConditionHibernating) != nil {
		return meta.IsStatusConditionTrue(s.Conditions, ConditionHibernating)
	}
	// A hub of an earlier version wrote the reason only.
	online := meta.FindStatusCondition(s.Conditions, ConditionOnline)
	return online != nil && online.Status == metav1.ConditionFalse && online.Reason == ReasonHibernating
}

// IsSourcePaused tells whether the owner of the source wants the cluster left alone.
func (s *FleetClusterStatus) IsSourcePaused() bool {
	return s.Source != nil && (s.Source.State == SourcePaused || s.Source.State == SourceRelocating)
}
