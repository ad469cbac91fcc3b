// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operator is the sample operator's controller: it keeps a Deployment
// and a Service of small HTTP servers for each EchoServer. What they look like
// is in package render, what the status says in package plan.
package operator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	echov1alpha1 "github.com/bellwether-dev/bellwether/testbed/echo/api/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/echo/operator/plan"
	"github.com/bellwether-dev/bellwether/testbed/echo/operator/render"
)

const fieldOwner = client.FieldOwner("echo-operator")

// ErrFault is the error of the reconciles that the fault switch makes fail.
var ErrFault = errors.New("fault switch ECHO_FAULT=half is set: this reconcile fails on purpose")

// Reconciler reconciles EchoServers.
type Reconciler struct {
	Client  client.Client
	Version string
	Fault   plan.Fault
	// Resync is how often an unchanged EchoServer is looked at again, so that
	// the operator's error ratio is measurable while nothing changes.
	Resync time.Duration

	reconciles atomic.Uint64
}

// SetupWithManager registers the reconciler with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		For(&echov1alpha1.EchoServer{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("build echoserver controller: %w", err)
	}
	return nil
}

// Reconcile makes one EchoServer so.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if r.failsOnPurpose() {
		return ctrl.Result{}, ErrFault
	}
	in, err := r.observe(ctx, req.NamespacedName)
	if err != nil || in.Server == nil {
		return ctrl.Result{}, err
	}
	servers, err := r.apply(ctx, render.Objects(in))
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.report(ctx, in, servers); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: r.Resync}, nil
}

func (r *Reconciler) failsOnPurpose() bool {
	return r.Fault == plan.FaultHalf && r.reconciles.Add(1)%2 == 0
}

// observe reads the EchoServer; Input.Server is nil when it is gone or going.
func (r *Reconciler) observe(ctx context.Context, key client.ObjectKey) (plan.Input, error) {
	in := plan.Input{Version: r.Version, Fault: r.Fault}
	es := &echov1alpha1.EchoServer{}
	if err := r.Client.Get(ctx, key, es); err != nil {
		if apierrors.IsNotFound(err) {
			return in, nil
		}
		return in, fmt.Errorf("get echoserver: %w", err)
	}
	if es.DeletionTimestamp.IsZero() {
		in.Server = es
	}
	return in, nil
}

// apply writes what is wanted and returns the servers as the API server has
// them: the answer to an apply is the live object, so no cache can be behind.
func (r *Reconciler) apply(ctx context.Context, want render.Desired) (plan.Servers, error) {
	if err := r.Client.Apply(ctx, want.Service, fieldOwner, client.ForceOwnership); err != nil {
		return plan.Servers{}, fmt.Errorf("apply service: %w", err)
	}
	if err := r.Client.Apply(ctx, want.Deployment, fieldOwner, client.ForceOwnership); err != nil {
		return plan.Servers{}, fmt.Errorf("apply deployment: %w", err)
	}
	got := plan.Servers{Generation: ptr.Deref(want.Deployment.Generation, 0)}
	if st := want.Deployment.Status; st != nil {
		got.ObservedGeneration = ptr.Deref(st.ObservedGeneration, 0)
		got.Total = ptr.Deref(st.Replicas, 0)
		got.Updated = ptr.Deref(st.UpdatedReplicas, 0)
		got.Ready = ptr.Deref(st.ReadyReplicas, 0)
		got.Available = ptr.Deref(st.AvailableReplicas, 0)
	}
	return got, nil
}

func (r *Reconciler) report(ctx context.Context, in plan.Input, servers plan.Servers) error {
	status := plan.Status(in, servers)
	if equality.Semantic.DeepEqual(status, in.Server.Status) {
		return nil
	}
	next := in.Server.DeepCopy()
	next.Status = status
	err := r.Client.Status().Patch(ctx, next, client.MergeFrom(in.Server))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch echoserver status: %w", err)
	}
	return nil
}
