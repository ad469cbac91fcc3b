// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package services makes an EndpointProbe for each Service that an
// OperatorInstall names, on its agent's cluster, and removes those that it no
// longer names, or whose OperatorInstall is gone. It touches no EndpointProbe
// that it did not make, and runs none: that is package probe.
package services

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/services/plan"
)

// Reconciler brings an operator's EndpointProbes to what its OperatorInstall says.
type Reconciler struct {
	// Hub reads OperatorInstalls, Local reads and writes EndpointProbes.
	Hub   client.Reader
	Local client.Client
}

// Reconcile implements reconcile.Reconciler, also for an OperatorInstall that is
// gone.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	install := &v1alpha1.OperatorInstall{}
	if err := r.Hub.Get(ctx, request.NamespacedName, install); err != nil {
		if !apierrors.IsNotFound(err) {
			return ctrl.Result{}, fmt.Errorf("read OperatorInstall: %w", err)
		}
		install = nil
	}
	var made v1alpha1.EndpointProbeList
	if err := r.Local.List(ctx, &made, client.MatchingLabels(plan.LabelsOf(operatorOf(request)))); err != nil {
		return ctrl.Result{}, fmt.Errorf("list EndpointProbes: %w", err)
	}
	var failed []error
	for _, step := range plan.Steps(install, made.Items) {
		if err := r.apply(ctx, step); err != nil {
			failed = append(failed, fmt.Errorf("%s EndpointProbe %s/%s: %w", step.Verb, step.Probe.Namespace, step.Probe.Name, err))
		}
	}
	return ctrl.Result{}, errors.Join(failed...)
}

// operatorOf reads the operator out of its OperatorInstall's name, which outlives
// the object.
func operatorOf(request ctrl.Request) v1alpha1.OperatorReference {
	namespace, name, _ := strings.Cut(request.Name, ".")
	return v1alpha1.OperatorReference{Namespace: namespace, Name: name}
}

func (r *Reconciler) apply(ctx context.Context, step plan.Step) error {
	switch step.Verb {
	case plan.Create:
		// One of that name that somebody else made is left alone; and a namespace
		// that is not there yet comes with the operator.
		return client.IgnoreAlreadyExists(r.Local.Create(ctx, step.Probe))
	case plan.Update:
		return r.Local.Update(ctx, step.Probe)
	case plan.Delete:
		return client.IgnoreNotFound(r.Local.Delete(ctx, step.Probe))
	}
	return nil
}
