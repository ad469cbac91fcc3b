// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

const (
	checks   = "checks"
	passes   = "example.com/checks/passes"
	fails    = "example.com/checks/fails"
	stranger = "example.com/stranger"
)

// TestJobs has the hub ask for Jobs. Nothing runs before the cluster's owner allows it,
// by the ConfigMap and by RBAC; then they run as processes, and are reported. The agent
// has the chart's permissions and no more.
func TestJobs(t *testing.T) {
	t.Parallel()
	images := map[string]cluster.Image{}
	for image, program := range map[string]string{passes: "true", fails: "false", stranger: "true"} {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Fatal(err)
		}
		images[image] = cluster.Image{Path: path}
	}
	c := testenv.Cluster(t, cluster.Options{Pods: true, Images: images})
	testenv.InstallCRDs(t, c)
	const user, own = "jobs-agent", "agents"
	k := clientOf(t, c)
	permit(t, k, user)
	kubeconfig, err := c.WriteKubeconfig(user, user)
	if err != nil {
		t.Fatal(err)
	}
	h := start(t, c, "jobs", "--kubeconfig", kubeconfig, "--own-namespace", own)
	for _, name := range []string{own, checks} {
		h.must(h.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	h.must(h.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: checks,
		Name: "checker"}}))
	h.must(h.Create(t.Context(), &v1alpha1.OperatorInstall{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.key().Namespace, Name: h.key().Name},
		Spec: v1alpha1.OperatorInstallSpec{Cluster: "jobs",
			Operator: v1alpha1.OperatorReference{Namespace: "fleet", Name: h.operator}},
	}))

	h.requests(request("a", passes))
	h.jobIs("a", v1alpha1.JobRefused, "the owner of the cluster has not allowed Jobs")
	word := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "bellwether-jobs"},
		Data: map[string]string{"images": "example.com/checks/*", "namespaces": checks, "serviceAccounts": "checker"}}
	h.must(h.Create(t.Context(), word))
	h.requests(request("a", passes), request("b", stranger))
	h.jobIs("a", v1alpha1.JobRefused, "the agent may not run Jobs in namespace checks")
	h.jobIs("b", v1alpha1.JobRefused, "image example.com/stranger is not allowed")

	h.grantJobs(user)
	elsewhere, another, hung := request("c", passes), request("d", passes), request("f", fails)
	elsewhere.Template.Namespace, another.Template.ServiceAccountName = "kube-system", "default"
	hung.Template.Image = "example.com/checks/stub" // a stub never ends
	hung.Template.Timeout = &metav1.Duration{Duration: 5 * time.Second}
	h.requests(request("a", passes), request("b", stranger), elsewhere, another, request("e", fails), hung)
	done := h.jobIs("a", v1alpha1.JobSucceeded, "")
	if done.StartedAt == nil || done.EndedAt == nil || done.Namespace != checks {
		t.Errorf("result %+v", done)
	}
	h.jobIs("b", v1alpha1.JobRefused, "image example.com/stranger is not allowed")
	h.jobIs("c", v1alpha1.JobRefused, "namespace kube-system is not allowed")
	h.jobIs("d", v1alpha1.JobRefused, `ServiceAccount "default" is not allowed`)
	h.jobIs("e", v1alpha1.JobFailed, "Job has reached the specified backoff limit")
	h.jobIs("f", v1alpha1.JobFailed, "Job was active longer than specified deadline")
	h.onlyJobs("bellwether-a", "bellwether-e", "bellwether-f")

	// What the hub does not ask for any more is removed, and nothing else.
	foreign := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: checks, Name: "bellwether-g"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "x", Image: passes}}}}}}
	h.must(h.Create(t.Context(), foreign))
	h.requests(request("g", passes))
	h.jobIs("g", v1alpha1.JobRefused, "that the agent did not make")
	h.onlyJobs("bellwether-g")
}

func request(name, image string) v1alpha1.RequestedJob {
	return v1alpha1.RequestedJob{Name: name, RolloutUID: "test", Version: "1.1.0",
		RequestedAt: metav1.NewTime(time.Unix(1700000000, 0)),
		Template:    v1alpha1.JobTemplate{Image: image, Namespace: checks}}
}

// requests plays the hub.
func (h *harness) requests(jobs ...v1alpha1.RequestedJob) {
	h.t.Helper()
	oi := &v1alpha1.OperatorInstall{}
	h.must(h.Get(h.t.Context(), h.key(), oi))
	before := oi.DeepCopy()
	oi.Spec.Jobs = jobs
	h.must(h.Patch(h.t.Context(), oi, client.MergeFrom(before)))
}

// jobIs waits for the result of a request.
func (h *harness) jobIs(name string, state v1alpha1.JobState, says string) v1alpha1.JobResult {
	h.t.Helper()
	var last v1alpha1.JobResult
	h.eventually("Job "+name+" is "+string(state)+" "+says, func() bool {
		oi := &v1alpha1.OperatorInstall{}
		if err := h.Get(h.t.Context(), h.key(), oi); err != nil {
			return false
		}
		for _, result := range oi.Status.Jobs {
			if result.Name == name {
				last = result
			}
		}
		return last.State == state && strings.Contains(last.Message, says)
	})
	return last
}

// onlyJobs waits until these Jobs are there, and no others in any namespace.
func (h *harness) onlyJobs(want ...string) {
	h.t.Helper()
	h.eventually("only Jobs "+strings.Join(want, ", "), func() bool {
		var all batchv1.JobList
		h.must(h.List(h.t.Context(), &all))
		var names []string
		for i := range all.Items {
			names = append(names, all.Items[i].Name)
		}
		return strings.Join(names, " ") == strings.Join(want, " ")
	})
}

// grantJobs grants what the chart does with agent.jobs.namespaces.
func (h *harness) grantJobs(user string) {
	h.t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: checks, Name: user},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"batch"}, Resources: []string{"jobs"},
			Verbs: []string{"get", "create", "delete"}}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: checks, Name: user},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}}
	h.must(h.Create(h.t.Context(), role))
	h.must(h.Create(h.t.Context(), binding))
}
