// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/jobs"
)

func ownersWord() *corev1.ConfigMap {
	return &corev1.ConfigMap{Data: map[string]string{
		"images":          "registry.example.com/checks/* docker.io/library/busybox:1.37",
		"namespaces":      "checks,\n  more-checks",
		"serviceAccounts": "checker other",
	}}
}

// TestRefusal: nothing runs that the cluster's owner does not allow.
func TestRefusal(t *testing.T) {
	allowed := v1alpha1.JobTemplate{Image: "registry.example.com/checks/disk:1", Namespace: "checks"}
	tests := map[string]struct {
		change func(*v1alpha1.JobTemplate)
		word   func(*corev1.ConfigMap)
		want   string // empty: it runs
	}{
		"allowed":           {},
		"the other image":   {change: func(t *v1alpha1.JobTemplate) { t.Image = "docker.io/library/busybox:1.37" }},
		"another namespace": {change: func(t *v1alpha1.JobTemplate) { t.Namespace = "more-checks" }},
		"another account":   {change: func(t *v1alpha1.JobTemplate) { t.ServiceAccountName = "other" }},
		"an unknown account": {change: func(t *v1alpha1.JobTemplate) { t.ServiceAccountName = "admin" },
			want: `ServiceAccount "admin" is not allowed by key serviceAccounts`},
		"an unknown image": {change: func(t *v1alpha1.JobTemplate) { t.Image = "evil.example.com/checks/disk:1" },
			want: "image evil.example.com/checks/disk:1 is not allowed by key images of ConfigMap bellwether-jobs in " +
				"namespace agents"},
		"an image that only begins like one": {
			change: func(t *v1alpha1.JobTemplate) { t.Image = "docker.io/library/busybox:1.37-evil" },
			want:   "is not allowed by key images"},
		"an unknown namespace": {change: func(t *v1alpha1.JobTemplate) { t.Namespace = "kube-system" },
			want: "namespace kube-system is not allowed by key namespaces"},
		"the agent's namespace, even if it is allowed": {
			change: func(t *v1alpha1.JobTemplate) { t.Namespace = "agents" },
			word:   func(c *corev1.ConfigMap) { c.Data["namespaces"] = "agents" },
			want:   "a Job must not run in the agent's namespace agents"},
		"no image is allowed": {word: func(c *corev1.ConfigMap) { delete(c.Data, "images") }, want: "key images"},
		"no account is allowed": {word: func(c *corev1.ConfigMap) { delete(c.Data, "serviceAccounts") },
			want: `ServiceAccount "" is not allowed`},
		"a ConfigMap that OLM installed": {
			word: func(c *corev1.ConfigMap) { c.Labels = map[string]string{"olm.managed": "true"} },
			want: "the owner of the cluster has not allowed Jobs"},
		"a ConfigMap with an owner": {
			word: func(c *corev1.ConfigMap) { c.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} },
			want: "the owner of the cluster has not allowed Jobs: there is no ConfigMap bellwether-jobs in namespace " +
				"agents of the cluster"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			template, word := allowed, ownersWord()
			if test.change != nil {
				test.change(&template)
			}
			if test.word != nil {
				test.word(word)
			}
			got := jobs.ReadPolicy(word, "agents").Refusal(template)
			if got == "" && test.want != "" || !strings.Contains(got, test.want) || test.want == "" && got != "" {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
	if got := jobs.ReadPolicy(nil, "agents").Refusal(allowed); got == "" {
		t.Error("without a ConfigMap a Job runs")
	}
	if got := jobs.ReadPolicy(ownersWord(), "").Refusal(allowed); !strings.Contains(got, "--own-namespace") {
		t.Errorf("without a namespace: %q", got)
	}
}

// TestJobIsBounded: the hub's request decides on nothing but the command.
func TestJobIsBounded(t *testing.T) {
	install := &v1alpha1.OperatorInstall{Spec: v1alpha1.OperatorInstallSpec{Cluster: "prod-eu",
		Operator: v1alpha1.OperatorReference{Namespace: "ops", Name: "echo"}}}
	request := v1alpha1.RequestedJob{Name: "gate-1", Version: "1.2.0", Template: v1alpha1.JobTemplate{
		Image: "checks/disk:1", Namespace: "checks", Command: []string{"check"}, BackoffLimit: 99,
		Timeout: &metav1.Duration{Duration: 1000 * time.Hour}, Env: []v1alpha1.JobVariable{{Name: "A", Value: "b"}}}}
	job := jobs.NewJob(install, request, "checker")
	if job.Name != "bellwether-gate-1" || job.Namespace != "checks" || *job.Spec.BackoffLimit != 5 ||
		*job.Spec.ActiveDeadlineSeconds != 24*60*60 || *job.Spec.TTLSecondsAfterFinished != 60*60 {
		t.Errorf("%+v", job)
	}
	pod := job.Spec.Template.Spec
	c := pod.Containers[0]
	if pod.ServiceAccountName != "checker" || pod.RestartPolicy != corev1.RestartPolicyNever || len(pod.Volumes) > 0 ||
		pod.HostNetwork || *c.SecurityContext.AllowPrivilegeEscalation || *c.SecurityContext.Privileged ||
		c.Resources.Limits.Memory().String() != "128Mi" {
		t.Errorf("pod %+v", pod)
	}
	want := []corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "BELLWETHER_CLUSTER", Value: "prod-eu"},
		{Name: "BELLWETHER_OPERATOR", Value: "echo"}, {Name: "BELLWETHER_OPERATOR_NAMESPACE", Value: "ops"},
		{Name: "BELLWETHER_VERSION", Value: "1.2.0"}}
	if diff := cmp.Diff(want, c.Env); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	if !jobs.IsOwn(install, "gate-1", job) || jobs.IsOwn(install, "gate-2", job) {
		t.Error("the Job is not known again")
	}
	job.Labels = nil
	if jobs.IsOwn(install, "gate-1", job) {
		t.Error("somebody else's Job is taken for the agent's")
	}
}

func TestResults(t *testing.T) {
	began, ended := metav1.Unix(100, 0), metav1.Unix(200, 0)
	job := func(conditions ...batchv1.JobCondition) *batchv1.Job {
		j := &batchv1.Job{Status: batchv1.JobStatus{StartTime: &began, Conditions: conditions}}
		j.Namespace = "checks"
		return j
	}
	condition := func(kind batchv1.JobConditionType, message string) batchv1.JobCondition {
		return batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Message: message,
			LastTransitionTime: ended}
	}
	result := func(state v1alpha1.JobState, message string, end *metav1.Time) v1alpha1.JobResult {
		return v1alpha1.JobResult{Name: "a", State: state, Message: message, Namespace: "checks", StartedAt: &began,
			EndedAt: end}
	}
	tests := map[string]struct {
		job    *batchv1.Job
		output string
		want   v1alpha1.JobResult
	}{
		"runs":     {job: job(), want: result(v1alpha1.JobRunning, "", nil)},
		"complete": {job: job(condition(batchv1.JobComplete, "")), want: result(v1alpha1.JobSucceeded, "", &ended)},
		"is about to fail": {job: job(condition(batchv1.JobFailureTarget, "soon")),
			want: result(v1alpha1.JobRunning, "", nil)},
		"failed": {job: job(condition(batchv1.JobFailed, "reached the limit")), output: "disk\nfull\n",
			want: result(v1alpha1.JobFailed, "reached the limit: disk full", &ended)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, jobs.ReadResult("a", test.job, test.output)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}
