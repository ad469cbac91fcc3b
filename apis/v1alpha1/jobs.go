// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JobTemplate is a Job that agents run on their clusters. An agent runs it only if the cluster's owner allows its
// image, its namespace and its ServiceAccount, in the ConfigMap bellwether-jobs in the agent's namespace. The pod has
// one container, which gets no volumes, no privileges, and the environment variables BELLWETHER_CLUSTER,
// BELLWETHER_OPERATOR, BELLWETHER_OPERATOR_NAMESPACE and BELLWETHER_VERSION.
type JobTemplate struct {
	// Image of the container.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^\S+$`
	Image string `json:"image"`

	// Command replaces the image's entry point, and Args are its arguments.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=512
	// +optional
	Command []string `json:"command,omitempty"`
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=512
	// +optional
	Args []string `json:"args,omitempty"`

	// Env are additional environment variables.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Env []JobVariable `json:"env,omitempty"`

	// Namespace that the Job runs in. It must exist on the clusters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// ServiceAccountName of the pod. Default: the first ServiceAccount that the cluster's owner allows.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// Timeout is how long the Job may run: 1s to 24h. Default 5m.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// BackoffLimit is how many pods may fail before the Job fails. Default 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5
	// +optional
	BackoffLimit int32 `json:"backoffLimit,omitempty"`

	// CPU and Memory are the requests and limits of the container. Default 100m and 128Mi.
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// JobVariable is an environment variable.
type JobVariable struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	Name string `json:"name"`
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Value string `json:"value,omitempty"`
}

// Preflight are checks of a cluster before it is admitted, in addition to the checks of every release. A cluster that
// does not pass is deferred.
type Preflight struct {
	// Job must succeed on each cluster before the cluster is admitted. It runs once for each rollout, and again when
	// the rollout is retried.
	// +optional
	Job *JobTemplate `json:"job,omitempty"`
}

// JobGate runs a Job on clusters of the wave after they were updated. It passes if the
// Job succeeds on all of them.
type JobGate struct {
	JobTemplate `json:",inline"`

	// Clusters is how many clusters of the wave run the Job. Default: all.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Clusters *int32 `json:"clusters,omitempty"`
}

// RequestedJob is a Job that the cluster's agent must run.
type RequestedJob struct {
	// Name identifies the request.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// RolloutUID is the UID of the OperatorRollout that the Job is for, and Version the version that it rolls out.
	// +kubebuilder:validation:MaxLength=63
	RolloutUID string `json:"rolloutUID"`
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version"`
	// RequestedAt is the time of the request by the hub's clock.
	RequestedAt metav1.Time `json:"requestedAt"`

	Template JobTemplate `json:"template"`
}

// JobState is the state of a requested Job.
//
// +kubebuilder:validation:Enum=Running;Succeeded;Failed;Refused
type JobState string

const (
	// JobRunning means that the Job was created and has not ended.
	JobRunning JobState = "Running"
	// JobSucceeded means that the Job has ended with success.
	JobSucceeded JobState = "Succeeded"
	// JobFailed means that the Job has ended without success.
	JobFailed JobState = "Failed"
	// JobRefused means that the Job was not created, because the cluster's owner does not allow it, or the agent
	// lacks the permission. It is created once that has changed.
	JobRefused JobState = "Refused"
)

// JobResult is what the agent observed of a requested Job.
type JobResult struct {
	// +kubebuilder:validation:MaxLength=40
	Name  string   `json:"name"`
	State JobState `json:"state"`
	// Message says why the Job failed or was refused.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
	// Namespace of the Job; empty if it was not created.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// StartedAt and EndedAt are times by the cluster's clock.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
}
