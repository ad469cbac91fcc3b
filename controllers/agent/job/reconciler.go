// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package job runs on the agent's cluster the Jobs that spec.jobs of an OperatorInstall
// requests, if the policy of the cluster's owner allows them. It reports the results in
// status.jobs. It does not change Jobs that it did not create, and makes no decision
// that depends on a result.
package job

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/rollouts/jobs"
)

// The agent's role has no permission to create Jobs: the chart grants the permission in the
// namespaces that the cluster's owner names (agent.jobs.namespaces).
//
// +kubebuilder:rbac:groups="",resources=configmaps;pods,verbs=list

const (
	// runningRecheck is how often a running Job is read.
	runningRecheck = 3 * time.Second
	// refusedRecheck is how often a refused Job is tried again, because the
	// owner can change the policy.
	refusedRecheck = 30 * time.Second
)

// Reconciler runs Jobs for OperatorInstalls.
type Reconciler struct {
	Hub client.Client
	// Live reads the fleet cluster without the cache, and Local writes to it.
	Live  client.Reader
	Local client.Client
	// OwnNamespace is the namespace of the agent.
	OwnNamespace string
	// Frozen reports whether Jobs must not be created or deleted: because of a FleetFreeze, or
	// because it is not known whether one exists.
	Frozen func(ctx context.Context) bool
}

// Reconcile creates, observes and deletes the Jobs of one install, and reports their results.
// While changes are frozen, it only observes, and keeps the results of obsolete Jobs.
func (r *Reconciler) Reconcile(ctx context.Context, install *v1alpha1.OperatorInstall) (ctrl.Result, error) {
	hasJobs := len(install.Spec.Jobs)+len(install.Status.Jobs) > 0
	if install.DeletionTimestamp != nil || !hasJobs {
		return ctrl.Result{}, nil
	}
	policy, err := r.readPolicy(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	original := install.DeepCopy()
	run, results := r.runRequest, []v1alpha1.JobResult(nil)
	if r.Frozen(ctx) {
		run, results = r.observeWhileFrozen, listObsoleteResults(install)
	} else if err := r.deleteObsoleteJobs(ctx, install); err != nil {
		return ctrl.Result{}, err
	}
	var recheck time.Duration
	for _, request := range install.Spec.Jobs {
		result, err := run(ctx, install, request, policy)
		switch {
		case err != nil:
			return ctrl.Result{}, err
		case result.State == "": // the Job is created when the freeze ends
			recheck = cmp.Or(recheck, refusedRecheck)
			continue
		case result.State == v1alpha1.JobRunning:
			recheck = runningRecheck
		case result.State == v1alpha1.JobRefused:
			recheck = cmp.Or(recheck, refusedRecheck)
		}
		results = append(results, result)
	}
	install.Status.Jobs = results
	return ctrl.Result{RequeueAfter: recheck}, r.writeStatus(ctx, original, install)
}

// listObsoleteResults returns the results of Jobs that the hub does not request.
func listObsoleteResults(install *v1alpha1.OperatorInstall) []v1alpha1.JobResult {
	return slices.DeleteFunc(slices.Clone(install.Status.Jobs), func(old v1alpha1.JobResult) bool {
		return slices.ContainsFunc(install.Spec.Jobs, func(j v1alpha1.RequestedJob) bool { return j.Name == old.Name })
	})
}

// deleteObsoleteJobs deletes the Jobs that the hub does not request.
func (r *Reconciler) deleteObsoleteJobs(ctx context.Context, install *v1alpha1.OperatorInstall) error {
	for _, old := range listObsoleteResults(install) {
		if err := r.deleteJob(ctx, install, old); err != nil {
			return err
		}
	}
	return nil
}

// writeStatus writes status.jobs if it changed. No other controller writes this field.
func (r *Reconciler) writeStatus(ctx context.Context, before, after *v1alpha1.OperatorInstall) error {
	if equality.Semantic.DeepEqual(before.Status.Jobs, after.Status.Jobs) {
		return nil
	}
	err := r.Hub.Status().Patch(ctx, after, client.MergeFrom(before))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("report Jobs: %w", err)
	}
	return nil
}

// readPolicy reads the policy of the cluster's owner, without the cache.
func (r *Reconciler) readPolicy(ctx context.Context) (jobs.Policy, error) {
	found, err := kit.FindConfigMap(ctx, r.Live, r.OwnNamespace, jobs.ConfigMap)
	if err != nil {
		return jobs.Policy{}, err
	}
	return jobs.ReadPolicy(found, r.OwnNamespace), nil
}

// findResult returns the reported result of a Job; without a state if there is none.
func findResult(install *v1alpha1.OperatorInstall, name string) v1alpha1.JobResult {
	for _, result := range install.Status.Jobs {
		if result.Name == name {
			return result
		}
	}
	return v1alpha1.JobResult{Name: name}
}

// runRequest returns the result of a requested Job, and creates the Job if it does not
// exist. It checks the policy each time, also while the Job runs: a Job that the policy
// does not allow is deleted.
func (r *Reconciler) runRequest(ctx context.Context, install *v1alpha1.OperatorInstall, request v1alpha1.RequestedJob,
	policy jobs.Policy) (v1alpha1.JobResult, error) {
	previous := findResult(install, request.Name)
	if jobs.IsFinal(previous) {
		return previous, nil
	}
	if refusal := policy.Refusal(request.Template); refusal != "" {
		return jobs.NewRefusedResult(request.Name, refusal), r.deleteJob(ctx, install, previous)
	}
	result, err := r.observeJob(ctx, install, request, previous)
	if apierrors.IsNotFound(err) {
		return r.createJob(ctx, install, request, policy)
	}
	return result, err
}

// observeWhileFrozen returns the result of a requested Job without a change on the cluster. The
// result has no state if the Job does not exist.
func (r *Reconciler) observeWhileFrozen(ctx context.Context, install *v1alpha1.OperatorInstall,
	request v1alpha1.RequestedJob,
	_ jobs.Policy) (v1alpha1.JobResult, error) {
	previous := findResult(install, request.Name)
	if jobs.IsFinal(previous) {
		return previous, nil
	}
	result, err := r.observeJob(ctx, install, request, previous)
	return result, client.IgnoreNotFound(err)
}

// observeJob reads the Job of a request and returns its result. If the Job does not exist, it
// returns the previous result and a NotFound error. A Job that was running and is missing is
// lost, which is not an error.
func (r *Reconciler) observeJob(ctx context.Context, install *v1alpha1.OperatorInstall, request v1alpha1.RequestedJob,
	previous v1alpha1.JobResult) (v1alpha1.JobResult, error) {
	var job batchv1.Job
	key := client.ObjectKey{Namespace: request.Template.Namespace, Name: jobs.JobName(request.Name)}
	err := r.Live.Get(ctx, key, &job)
	switch {
	case apierrors.IsForbidden(err):
		return jobs.NewRefusedResult(request.Name, describeForbidden(key.Namespace)), nil
	case apierrors.IsNotFound(err) && previous.State == v1alpha1.JobRunning:
		return jobs.NewLostResult(previous), nil
	case err != nil:
		return previous, fmt.Errorf("get Job %s: %w", key, err)
	case !jobs.IsOwn(install, request.Name, &job):
		return jobs.NewRefusedResult(request.Name,
			fmt.Sprintf("there is a Job %s that the agent did not make", key)), nil
	}
	return jobs.ReadResult(request.Name, &job, r.readOutput(ctx, &job)), nil
}

// describeForbidden returns the message for a namespace in which the agent may not run Jobs.
func describeForbidden(namespace string) string {
	return fmt.Sprintf("the agent may not run Jobs in namespace %s: have the owner of the cluster add it to "+
		"agent.jobs.namespaces of the chart", namespace)
}

// createJob creates the Job of a request. If the API server refuses the Job, that is
// its result and not an error.
func (r *Reconciler) createJob(ctx context.Context, install *v1alpha1.OperatorInstall, request v1alpha1.RequestedJob,
	policy jobs.Policy) (v1alpha1.JobResult, error) {
	job := jobs.NewJob(install, request, policy.ServiceAccount(request.Template))
	switch err := r.Local.Create(ctx, job); {
	case apierrors.IsForbidden(err):
		return jobs.NewRefusedResult(request.Name, fmt.Sprintf("%s (%v)", describeForbidden(job.Namespace), err)), nil
	case apierrors.IsNotFound(err), apierrors.IsInvalid(err): // no such namespace, or an invalid Job
		return jobs.NewRefusedResult(request.Name, err.Error()), nil
	case err != nil:
		return findResult(install, request.Name), fmt.Errorf("create Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	log.FromContext(ctx).Info("Job created", "namespace", job.Namespace, "job", job.Name, "image",
		request.Template.Image)
	return jobs.ReadResult(request.Name, job, ""), nil
}

// readOutput returns the output of a failed pod of the Job; empty if there is
// none or it cannot be read.
func (r *Reconciler) readOutput(ctx context.Context, job *batchv1.Job) string {
	if job.Status.Failed == 0 {
		return ""
	}
	var pods corev1.PodList
	err := r.Live.List(ctx, &pods, client.InNamespace(job.Namespace),
		client.MatchingLabels{batchv1.JobNameLabel: job.Name})
	if err != nil {
		return ""
	}
	return jobs.ReadFailureOutput(pods.Items)
}

// deleteJob deletes the Job of a result, if the agent created it. A missing permission is not an
// error: Jobs end by their deadline, and are deleted an hour later.
func (r *Reconciler) deleteJob(ctx context.Context, install *v1alpha1.OperatorInstall,
	result v1alpha1.JobResult) error {
	if result.Namespace == "" {
		return nil
	}
	var job batchv1.Job
	key := client.ObjectKey{Namespace: result.Namespace, Name: jobs.JobName(result.Name)}
	err := r.Live.Get(ctx, key, &job)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return fmt.Errorf("get Job %s: %w", key, err)
	case !jobs.IsOwn(install, result.Name, &job):
		return nil
	}
	err = r.Local.Delete(ctx, &job, client.Preconditions{UID: &job.UID},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("delete Job %s: %w", key, err)
	}
	return nil
}
