// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

const (
	// namePrefix is that of every Job that an agent makes.
	namePrefix = "bellwether-"
	// labelJob has the name of the request.
	labelJob = "bellwether.dev/job"

	// timeToLive is how long a Job stays after its end, for people to look at.
	timeToLive = time.Hour
	maxBackoff = 5
	maxMessage = 512
)

// JobName is the name of the Job for a request.
func JobName(request string) string { return namePrefix + request }

// NewJob returns the Job that a request asks for, as an agent runs it. Nothing in it
// but the command, its variables and its bounds is the hub's choice.
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
					Containers: []corev1.Container{container(install, r)},
				},
			},
		},
	}
}

func container(install *v1alpha1.OperatorInstall, r v1alpha1.RequestedJob) corev1.Container {
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

// IsOwn tells whether a Job was made for a request of an install.
func IsOwn(install *v1alpha1.OperatorInstall, request string, job *batchv1.Job) bool {
	for name, value := range install.Spec.Operator.ManagedLabels() {
		if job.Labels[name] != value {
			return false
		}
	}
	return job.Labels[labelJob] == request
}

// IsFinal tells whether a result does not change any more.
func IsFinal(r v1alpha1.JobResult) bool {
	return r.State == v1alpha1.JobSucceeded || r.State == v1alpha1.JobFailed
}

// Refused is the result of a Job that is not run.
func Refused(name, why string) v1alpha1.JobResult {
	return v1alpha1.JobResult{Name: name, State: v1alpha1.JobRefused, Message: phrase.Truncate(why, maxMessage)}
}

// Lost is the result of a Job that was there and is gone.
func Lost(before v1alpha1.JobResult) v1alpha1.JobResult {
	before.State, before.Message = v1alpha1.JobFailed, "the Job was deleted before its result was seen"
	return before
}

// ResultOf reads a Job. output is the last that a failed pod said; empty where that is
// not known.
func ResultOf(request string, job *batchv1.Job, output string) v1alpha1.JobResult {
	r := v1alpha1.JobResult{Name: request, State: v1alpha1.JobRunning, Namespace: job.Namespace,
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
			if said := phrase.OneLine(output); said != "" {
				r.Message += ": " + said
			}
		default:
			continue
		}
		r.EndedAt = ptr.To(c.LastTransitionTime)
	}
	r.Message = phrase.Truncate(r.Message, maxMessage)
	return r
}

// Output is what the newest failed pod of a Job said last.
func Output(pods []corev1.Pod) string {
	text, at := "", time.Time{}
	for i := range pods {
		for _, s := range pods[i].Status.ContainerStatuses {
			t := s.State.Terminated
			if t != nil && t.ExitCode != 0 && !t.FinishedAt.Time.Before(at) {
				text, at = t.Message, t.FinishedAt.Time
			}
		}
	}
	return text
}
