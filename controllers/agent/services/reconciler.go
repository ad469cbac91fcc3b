// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package services creates an EndpointProbe on the agent's cluster for each Service that an
// OperatorInstall names. It deletes its EndpointProbes that are not named, or whose
// OperatorInstall is deleted. It does not change EndpointProbes that it did not create, and runs
// no probes; see package probe.
package services

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/alerts/probes"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/engines"
)

// Reconciler creates, updates and deletes the EndpointProbes of an operator
// according to its OperatorInstall.
type Reconciler struct {
	// Hub reads OperatorInstalls, Local reads and writes EndpointProbes.
	Hub   client.Reader
	Local client.Client
	// HasStoredAdmission reports whether the cluster has a stored admission of an operator. The error wraps
	// engines.ErrNotReady if that is not known yet.
	HasStoredAdmission func(ctx context.Context, operator v1alpha1.OperatorReference) (bool, error)
	// Recorder emits Events about problems on the OperatorInstall.
	Recorder events.EventRecorder
}

// retryDelay is the delay before an operator is reconciled again whose namespace is missing, or
// whose stored admission is not known yet. The namespace is created with the operator.
const retryDelay = 5 * time.Second

// Reconcile implements reconcile.Reconciler. It updates the EndpointProbes of one OperatorInstall,
// which can be deleted already.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	install := &v1alpha1.OperatorInstall{}
	if err := r.Hub.Get(ctx, request.NamespacedName, install); err != nil {
		if !apierrors.IsNotFound(err) {
			return ctrl.Result{}, fmt.Errorf("read OperatorInstall: %w", err)
		}
		install = nil
	}
	isUnadmitted := install != nil && install.DeletionTimestamp.IsZero() && install.Spec.Admission == nil
	if install == nil || isUnadmitted {
		// The hub might have lost the install or its admission. If the cluster has a stored
		// admission, the probes stay.
		switch isKept, err := r.HasStoredAdmission(ctx, parseOperator(request)); {
		case errors.Is(err, engines.ErrNotReady):
			return ctrl.Result{RequeueAfter: retryDelay}, nil
		case isKept || err != nil:
			return ctrl.Result{}, err
		}
	}
	var existing v1alpha1.EndpointProbeList
	if err := r.Local.List(ctx, &existing, client.MatchingLabels(parseOperator(request).ManagedLabels())); err != nil {
		return ctrl.Result{}, fmt.Errorf("list EndpointProbes: %w", err)
	}
	var failed []error
	var recheck time.Duration
	for _, step := range probes.ServiceSteps(install, existing.Items) {
		err := r.applyStep(ctx, step)
		log.FromContext(ctx).V(1).Info("Acting", "verb", step.Verb, "probe", client.ObjectKeyFromObject(step.Probe),
			"outcome", fmt.Sprint(err))
		switch {
		case err == nil: // the step is done
		case step.Verb == probes.Create && apierrors.IsNotFound(err): // the namespace is missing
			recheck = retryDelay
		case step.Verb == probes.Create && apierrors.IsAlreadyExists(err):
			kit.Emit(r.Recorder, install, "ProbeNameTaken", "Probe",
				"another user created EndpointProbe %s/%s, so the Service %s is not probed: rename that EndpointProbe",
				step.Probe.Namespace, step.Probe.Name, step.Probe.Spec.Name)
		default:
			failed = append(failed, fmt.Errorf("%s EndpointProbe %s/%s: %w", step.Verb, step.Probe.Namespace,
				step.Probe.Name, err))
		}
	}
	return kit.NewResult(recheck, errors.Join(failed...))
}

// parseOperator returns the operator of a request from the name of its
// OperatorInstall, which might be deleted.
func parseOperator(request ctrl.Request) v1alpha1.OperatorReference {
	namespace, name, _ := strings.Cut(request.Name, ".")
	return v1alpha1.OperatorReference{Namespace: namespace, Name: name}
}

// applyStep creates, updates or deletes one EndpointProbe.
func (r *Reconciler) applyStep(ctx context.Context, step probes.ServiceStep) error {
	switch step.Verb {
	case probes.Create:
		return r.Local.Create(ctx, step.Probe)
	case probes.Update:
		return r.Local.Update(ctx, step.Probe)
	case probes.Delete:
		return client.IgnoreNotFound(r.Local.Delete(ctx, step.Probe))
	}
	return nil
}
