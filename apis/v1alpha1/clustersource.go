// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterSource is the last observed state of the object that spec.sourceRef of a FleetCluster names. Only the
// discovery controller writes it.
type ClusterSource struct {
	// State is the state of the source. Empty if the FleetCluster names no source.
	// +optional
	State SourceState `json:"state,omitempty"`

	// Message says what the state means for the cluster, or what a person must decide.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// PowerState says whether the machines of the cluster run, if the source reports it. Rollouts defer a cluster
	// that does not run, and its missing reports page no person. The condition Hibernating also says when the hub
	// stops relying on the source.
	// +optional
	PowerState ClusterPowerState `json:"powerState,omitempty"`

	// PowerStateSince is when the hub first observed that power state.
	// +optional
	PowerStateSince *metav1.Time `json:"powerStateSince,omitempty"`

	// Labels are the labels that were set from the source, without the labels that people set.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Clashes are other sources that would have the same name as this FleetCluster. They are not part of the fleet.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Clashes []SourceReference `json:"clashes,omitempty"`
}

// SourceState is the state of the source of a FleetCluster.
//
// +kubebuilder:validation:Enum=Present;Paused;Relocating;Moved;Missing;Taken
type SourceState string

const (
	// SourcePresent means that the FleetCluster follows the source.
	SourcePresent SourceState = "Present"
	// SourcePaused means that the owner of the source paused it. Nothing is changed because of the source, and
	// rollouts defer the cluster.
	SourcePaused SourceState = "Paused"
	// SourceRelocating means that the source is being moved to another management cluster. Nothing is changed because
	// of the source, and rollouts defer the cluster.
	SourceRelocating SourceState = "Relocating"
	// SourceMoved means that the source was paused or relocating when it disappeared. The FleetCluster is kept.
	SourceMoved SourceState = "Moved"
	// SourceMissing means that the source does not exist or is being deleted, and that the FleetCluster is kept.
	SourceMissing SourceState = "Missing"
	// SourceTaken means that an older FleetCluster names the same source and follows it.
	SourceTaken SourceState = "Taken"
)

// ClusterPowerState says whether the machines of a cluster run.
//
// +kubebuilder:validation:Enum=Running;Stopping;Hibernating;Resuming
type ClusterPowerState string

const (
	// PowerRunning means that the machines run.
	PowerRunning ClusterPowerState = "Running"
	// PowerStopping means that the machines are being stopped.
	PowerStopping ClusterPowerState = "Stopping"
	// PowerHibernating means that the machines are stopped.
	PowerHibernating ClusterPowerState = "Hibernating"
	// PowerResuming means that the machines are being started, or that the cluster has not settled after the start.
	PowerResuming ClusterPowerState = "Resuming"
)

// PowerTransitionLimit is how long the hub relies on a source that reports that a cluster is being stopped or
// started. The source may continue to report this although the machines have run for a long time, or could not
// be stopped.
const PowerTransitionLimit = 30 * time.Minute

// SaysStopped reports whether the source reports that the machines of the cluster are stopped, or are being stopped
// or started. FleetClusterStatus.IsHibernating reports whether the hub relies on this.
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

// PowerStateEnd returns when the hub stops relying on the report that the cluster is being stopped or started; nil
// for other power states.
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

// IsHibernating reports whether the cluster is treated as not running: its source reports that its machines are
// stopped, or are being stopped or started, and the hub relies on the report. The fleet controller decides this and
// writes it to the condition Hibernating.
func (s *FleetClusterStatus) IsHibernating() bool {
	if !s.Source.SaysStopped() {
		return false
	}
	if meta.FindStatusCondition(s.Conditions, ConditionHibernating) != nil {
		return meta.IsStatusConditionTrue(s.Conditions, ConditionHibernating)
	}
	// Hubs of earlier versions wrote only the reason.
	online := meta.FindStatusCondition(s.Conditions, ConditionOnline)
	return online != nil && online.Status == metav1.ConditionFalse && online.Reason == ReasonHibernating
}

// IsSourcePaused reports whether the owner of the source does not permit changes on the cluster.
func (s *FleetClusterStatus) IsSourcePaused() bool {
	return s.Source != nil && (s.Source.State == SourcePaused || s.Source.State == SourceRelocating)
}
