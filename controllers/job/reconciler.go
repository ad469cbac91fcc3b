// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package job runs the Jobs that spec.jobs of an OperatorInstall asks for on the
// agent's cluster, as far as the cluster's owner allows them, and reports what became
// of them in status.jobs. It touches no Job that it did not make, and decides nothing
// of what follows from a result.
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
	"github.com/bellwether-dev/bellwether/controllers/job/plan"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// The right to make Jobs is no part of the agent's role: the chart grants it in the
// namespaces that the cluster's owner names (agent.jobs.namespaces).
//
// +kubebuilder:rbac:groups="",resources=configmaps;pods,verbs=list

const (
	// whileRunning is how often a Job that runs is looked at.
	whileRunning = 3 * time.Second
	// whileRefused is how often a refused one is tried again: the owner may allow it.
	whileRefused = 30 * time.Second
)

// Reconciler runs Jobs for OperatorInstalls.
type Reconciler struct {
	Hub client.Client
	// Live reads the fleet cluster past the cache, and Local writes to it.
	Live  client.Reader
	Local client.Client
	// OwnNamespace is the agent's.
	OwnNamespace string
	// Frozen tells whether a FleetFreeze, or that none is known of, stops making and deleting Jobs.
	Frozen func(ctx context.Context) bool
}

// Reconcile brings the Jobs of one install a step further.
func (r *Reconciler) Reconcile(ctx context.Context, install *v1alpha1.OperatorInstall) (ctrl.Result, error) {
	if install.DeletionTimestamp != nil || len(install.Spec.Jobs) == 0 && len(install.Status.Jobs) == 0 {
		return ctrl.Result{}, nil
	}
	policy, err := r.policy(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	before := install.DeepCopy()
	run, results := r.run, []v1alpha1.JobResult(nil)
	if r.Frozen(ctx) {
		run, results = r.runFrozen, others(install)
	} else if err := r.removeOthers(ctx, install); err != nil {
		return ctrl.Result{}, err
	}
	var recheck time.Duration
	for _, request := range install.Spec.Jobs {
		result, err := run(ctx, install, request, policy)
		switch {
		case err != nil:
			return ctrl.Result{}, err
		case result.State == "": // it is made when the freeze ends
			recheck = cmp.Or(recheck, whileRefused)
			continue
		case result.State == v1alpha1.JobRunning:
			recheck = whileRunning
		case result.State == v1alpha1.JobRefused:
			recheck = cmp.Or(recheck, whileRefused)
		}
		results = append(results, result)
	}
	install.Status.Jobs = results
	return ctrl.Result{RequeueAfter: recheck}, r.report(ctx, before, install)
}

// others are the results of Jobs that the hub does not ask for any more.
func others(install *v1alpha1.OperatorInstall) []v1alpha1.JobResult {
	return slices.DeleteFunc(slices.Clone(install.Status.Jobs), func(old v1alpha1.JobResult) bool {
		return slices.ContainsFunc(install.Spec.Jobs, func(j v1alpha1.RequestedJob) bool { return j.Name == old.Name })
	})
}

// removeOthers removes the Jobs that the hub does not ask for any more.
func (r *Reconciler) removeOthers(ctx context.Context, install *v1alpha1.OperatorInstall) error {
	for _, old := range others(install) {
		if err := r.remove(ctx, install, old); err != nil {
			return err
		}
	}
	return nil
}

// report writes status.jobs, which nobody else does.
func (r *Reconciler) report(ctx context.Context, before, after *v1alpha1.OperatorInstall) error {
	if equality.Semantic.DeepEqual(before.Status.Jobs, after.Status.Jobs) {
		return nil
	}
	err := r.Hub.Status().Patch(ctx, after, client.MergeFrom(before))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("report Jobs: %w", err)
	}
	return nil
}

// policy reads the word of the cluster's owner past the cache.
func (r *Reconciler) policy(ctx context.Context) (plan.Policy, error) {
	found, err := kit.FindConfigMap(ctx, r.Live, r.OwnNamespace, plan.ConfigMap)
	if err != nil {
		return plan.Policy{}, err
	}
	return plan.ReadPolicy(found, r.OwnNamespace), nil
}

func resultOf(install *v1alpha1.OperatorInstall, name string) v1alpha1.JobResult {
	for _, result := range install.Status.Jobs {
		if result.Name == name {
			return result
		}
	}
	return v1alpha1.JobResult{Name: name}
}

// run returns the result of a request. The policy is asked each time, also while the
// Job runs: one that is not allowed any more is deleted.
func (r *Reconciler) run(ctx context.Context, install *v1alpha1.OperatorInstall, request v1alpha1.RequestedJob,
	policy plan.Policy) (v1alpha1.JobResult, error) {
	was := resultOf(install, request.Name)
	if plan.IsFinal(was) {
		return was, nil
	}
	if refusal := policy.Refusal(request.Template); refusal != "" {
		return plan.Refused(request.Name, refusal), r.remove(ctx, install, was)
	}
	result, err := r.observe(ctx, install, request, was)
	if apierrors.IsNotFound(err) {
		return r.create(ctx, install, request, policy)
	}
	return result, err
}

// runFrozen returns the result of a request as it is; without a state if its Job was not made yet.
func (r *Reconciler) runFrozen(ctx context.Context, install *v1alpha1.OperatorInstall, request v1alpha1.RequestedJob,
	_ plan.Policy) (v1alpha1.JobResult, error) {
	was := resultOf(install, request.Name)
	if plan.IsFinal(was) {
		return was, nil
	}
	result, err := r.observe(ctx, install, request, was)
	return result, client.IgnoreNotFound(err)
}

// observe reads the Job of a request. An error that there is none comes with its last result.
func (r *Reconciler) observe(ctx context.Context, install *v1alpha1.OperatorInstall, request v1alpha1.RequestedJob,
	was v1alpha1.JobResult) (v1alpha1.JobResult, error) {
	var job batchv1.Job
	key := client.ObjectKey{Namespace: request.Template.Namespace, Name: plan.JobName(request.Name)}
	err := r.Live.Get(ctx, key, &job)
	switch {
	case apierrors.IsForbidden(err):
		return plan.Refused(request.Name, forbidden(key.Namespace)), nil
	case apierrors.IsNotFound(err) && was.State == v1alpha1.JobRunning:
		return plan.Lost(was), nil
	case err != nil:
		return was, fmt.Errorf("get Job %s: %w", key, err)
	case !plan.IsOwn(install, request.Name, &job):
		return plan.Refused(request.Name, fmt.Sprintf("there is a Job %s that the agent did not make", key)), nil
	}
	return plan.ResultOf(request.Name, &job, r.output(ctx, &job)), nil
}

func forbidden(namespace string) string {
	return fmt.Sprintf("the agent may not run Jobs in namespace %s: have the owner of the cluster add it to "+
		"agent.jobs.namespaces of the chart", namespace)
}

func (r *Reconciler) create(ctx context.Context, install *v1alpha1.OperatorInstall, request v1alpha1.RequestedJob,
	policy plan.Policy) (v1alpha1.JobResult, error) {
	job := plan.NewJob(install, request, policy.ServiceAccount(request.Template))
	switch err := r.Local.Create(ctx, job); {
	case apierrors.IsForbidden(err):
		return plan.Refused(request.Name, fmt.Sprintf("%s (%v)", forbidden(job.Namespace), err)), nil
	case apierrors.IsNotFound(err), apierrors.IsInvalid(err):
		return plan.Refused(request.Name, err.Error()), nil
	case err != nil:
		return resultOf(install, request.Name), fmt.Errorf("create Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	log.FromContext(ctx).Info("Job created", "namespace", job.Namespace, "job", job.Name, "image",
		request.Template.Image)
	return plan.ResultOf(request.Name, job, ""), nil
}

// output is what a failed pod of the Job said; empty where it cannot be read.
func (r *Reconciler) output(ctx context.Context, job *batchv1.Job) string {
	if job.Status.Failed == 0 {
		return ""
	}
	var pods corev1.PodList
	err := r.Live.List(ctx, &pods, client.InNamespace(job.Namespace),
		client.MatchingLabels{batchv1.JobNameLabel: job.Name})
	if err != nil {
		return ""
	}
	return plan.Output(pods.Items)
}

// remove deletes the Job of a result, if the agent made it. That it may not is no
// error: Jobs end by their deadline, and are deleted an hour later.
func (r *Reconciler) remove(ctx context.Context, install *v1alpha1.OperatorInstall, result v1alpha1.JobResult) error {
	if result.Namespace == "" {
		return nil
	}
	var job batchv1.Job
	key := client.ObjectKey{Namespace: result.Namespace, Name: plan.JobName(result.Name)}
	err := r.Live.Get(ctx, key, &job)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return fmt.Errorf("get Job %s: %w", key, err)
	case !plan.IsOwn(install, result.Name, &job):
		return nil
	}
	err = r.Local.Delete(ctx, &job, client.Preconditions{UID: &job.UID},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("delete Job %s: %w", key, err)
	}
	return nil
}
