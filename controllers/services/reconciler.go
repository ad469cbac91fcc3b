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
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/controllers/services/plan"
	"github.com/bellwether-dev/bellwether/engines"
)

// Reconciler brings an operator's EndpointProbes to what its OperatorInstall says.
type Reconciler struct {
	// Hub reads OperatorInstalls, Local reads and writes EndpointProbes.
	Hub   client.Reader
	Local client.Client
	// Keeps tells whether the cluster keeps an admission of an operator. It wraps
	// engines.ErrNotReady where that is not known yet.
	Keeps func(ctx context.Context, operator v1alpha1.OperatorReference) (bool, error)
	// Recorder tells people of what is in the way, on the OperatorInstall.
	Recorder events.EventRecorder
}

// whenNamespace is when an operator's namespace that was not there is looked for
// again: it comes with the operator.
const whenNamespace = 5 * time.Second

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
	if install == nil || install.DeletionTimestamp.IsZero() && install.Spec.Admission == nil {
		// The hub may have lost the install, or what it was admitted to.
		switch keeps, err := r.Keeps(ctx, operatorOf(request)); {
		case errors.Is(err, engines.ErrNotReady):
			return ctrl.Result{RequeueAfter: whenNamespace}, nil
		case keeps || err != nil:
			return ctrl.Result{}, err
		}
	}
	var made v1alpha1.EndpointProbeList
	if err := r.Local.List(ctx, &made, client.MatchingLabels(operatorOf(request).ManagedLabels())); err != nil {
		return ctrl.Result{}, fmt.Errorf("list EndpointProbes: %w", err)
	}
	var failed []error
	var recheck time.Duration
	for _, step := range plan.Steps(install, made.Items) {
		err := r.apply(ctx, step)
		log.FromContext(ctx).V(1).Info("Acting", "verb", step.Verb, "probe", client.ObjectKeyFromObject(step.Probe),
			"outcome", fmt.Sprint(err))
		switch {
		case err == nil:
		case step.Verb == plan.Create && apierrors.IsNotFound(err):
			recheck = whenNamespace
		case step.Verb == plan.Create && apierrors.IsAlreadyExists(err):
			kit.Emit(r.Recorder, install, "ProbeNameTaken", "Probe",
				"EndpointProbe %s/%s is somebody else's, so the Service %s is not probed: rename that one",
				step.Probe.Namespace, step.Probe.Name, step.Probe.Spec.Name)
		default:
			failed = append(failed, fmt.Errorf("%s EndpointProbe %s/%s: %w", step.Verb, step.Probe.Namespace,
				step.Probe.Name, err))
		}
	}
	return kit.Result(recheck, errors.Join(failed...))
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
		return r.Local.Create(ctx, step.Probe)
	case plan.Update:
		return r.Local.Update(ctx, step.Probe)
	case plan.Delete:
		return client.IgnoreNotFound(r.Local.Delete(ctx, step.Probe))
	}
	return nil
}
