// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

const (
	// namePrefix is the prefix of the name of every Job that an agent creates.
	namePrefix = "bellwether-"
	// labelJob is the label with the name of the request.
	labelJob = "bellwether.dev/job"

	// timeToLive is how long a Job is kept after its end, so that people can look at it.
	timeToLive = time.Hour
	maxBackoff = 5
	maxMessage = 512
)

// JobName returns the name of the Job for a request.
func JobName(requestName string) string { return namePrefix + requestName }

// NewJob returns the Job for a request. The hub determines only the namespace, the image, the command with its
// variables, and the limits within the maximums of this package.
func NewJob(install *v1alpha1.OperatorInstall, r v1alpha1.RequestedJob, serviceAccount string) *batchv1.Job {
	t := r.Template
	labels := install.Spec.Operator.ManagedLabels()
	labels[labelJob] = r.Name
	timeout := rollouts.DefaultJobTimeout
	if t.Timeout != nil && t.Timeout.Duration > 0 {
		timeout = min(t.Timeout.Duration, rollouts.MaxJobTimeout)
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: JobName(r.Name), Labels: labels},
		Spec: batchv1.JobSpec{
			BackoffLimit:            ptr.To(min(max(t.BackoffLimit, 0), maxBackoff)),
			ActiveDeadlineSeconds:   ptr.To(max(int64(timeout.Seconds()), 1)),
			TTLSecondsAfterFinished: ptr.To(int32(timeToLive.Seconds())),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{labelJob: r.Name}},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: serviceAccount,
					EnableServiceLinks: ptr.To(false),
					SecurityContext: &corev1.PodSecurityContext{
						SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
					Containers: []corev1.Container{buildContainer(install, r)},
				},
			},
		},
	}
}

// buildContainer returns the container of the Job for a request. Its limits are also its requests, and it has no
// capabilities. The agent's variables come last, so they replace variables with the same names.
func buildContainer(install *v1alpha1.OperatorInstall, r v1alpha1.RequestedJob) corev1.Container {
	t := r.Template
	resources := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"),
		corev1.ResourceMemory: resource.MustParse("128Mi")}
	if t.CPU != nil {
		resources[corev1.ResourceCPU] = *t.CPU
	}
	if t.Memory != nil {
		resources[corev1.ResourceMemory] = *t.Memory
	}
	c := corev1.Container{
		Name: "job", Image: t.Image, Command: t.Command, Args: t.Args,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		Resources:                corev1.ResourceRequirements{Requests: resources, Limits: resources},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), Privileged: ptr.To(false),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	for _, v := range t.Env {
		c.Env = append(c.Env, corev1.EnvVar{Name: v.Name, Value: v.Value})
	}
	operator := install.Spec.Operator
	c.Env = append(c.Env, corev1.EnvVar{Name: "BELLWETHER_CLUSTER", Value: install.Spec.Cluster},
		corev1.EnvVar{Name: "BELLWETHER_OPERATOR", Value: operator.Name},
		corev1.EnvVar{Name: "BELLWETHER_OPERATOR_NAMESPACE", Value: operator.Namespace},
		corev1.EnvVar{Name: "BELLWETHER_VERSION", Value: r.Version})
	return c
}

// IsOwn reports whether a Job was created for a request of an install.
func IsOwn(install *v1alpha1.OperatorInstall, requestName string, job *batchv1.Job) bool {
	for name, value := range install.Spec.Operator.ManagedLabels() {
		if job.Labels[name] != value {
			return false
		}
	}
	return job.Labels[labelJob] == requestName
}

// IsFinal reports whether a result cannot change: the Job has succeeded or failed.
func IsFinal(r v1alpha1.JobResult) bool {
	return r.State == v1alpha1.JobSucceeded || r.State == v1alpha1.JobFailed
}

// NewRefusedResult returns the result of a Job that is not run.
func NewRefusedResult(name, reason string) v1alpha1.JobResult {
	return v1alpha1.JobResult{Name: name, State: v1alpha1.JobRefused, Message: phrase.Truncate(reason, maxMessage)}
}

// NewLostResult returns the result of a Job that was deleted before its end: a failure. lastResult is the last result
// that was reported.
func NewLostResult(lastResult v1alpha1.JobResult) v1alpha1.JobResult {
	lastResult.State, lastResult.Message = v1alpha1.JobFailed, "the Job was deleted before its result was seen"
	return lastResult
}

// ReadResult returns the result of the Job for a request. Its state is Running until the Job has a final condition.
// output is the last output of a failed pod, which is appended to the message of a failure; empty if it is not known.
func ReadResult(requestName string, job *batchv1.Job, output string) v1alpha1.JobResult {
	r := v1alpha1.JobResult{Name: requestName, State: v1alpha1.JobRunning, Namespace: job.Namespace,
		StartedAt: job.Status.StartTime}
	for _, c := range job.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete:
			r.State = v1alpha1.JobSucceeded
		case batchv1.JobFailed:
			r.State, r.Message = v1alpha1.JobFailed, c.Message
			if oneLine := phrase.OneLine(output); oneLine != "" {
				r.Message += ": " + oneLine
			}
		default:
			continue
		}
		r.EndedAt = ptr.To(c.LastTransitionTime)
	}
	r.Message = phrase.Truncate(r.Message, maxMessage)
	return r
}

// ReadFailureOutput returns the last output of the Job's newest failed pod. It returns "" if no pod failed.
func ReadFailureOutput(pods []corev1.Pod) string {
	text, newest := "", time.Time{}
	for i := range pods {
		for _, s := range pods[i].Status.ContainerStatuses {
			t := s.State.Terminated
			if t != nil && t.ExitCode != 0 && !t.FinishedAt.Time.Before(newest) {
				text, newest = t.Message, t.FinishedAt.Time
			}
		}
	}
	return text
}
