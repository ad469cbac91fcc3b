// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitor gives the agent's cluster the PodMonitors that
// spec.monitor of an OperatorInstall asks for, so that the cluster's Prometheus
// scrapes the operator. It needs the kind PodMonitor of prometheus-operator on
// the cluster, and says so in an Event where that is missing. It must not touch a
// PodMonitor that it did not make.
package monitor

import (
	"context"
	"fmt"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/controllers/monitor/plan"
	olmv0 "github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// What the agent does on its cluster for this.
//
// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=podmonitors,verbs=list;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch

const (
	// fieldOwner owns the fields that the agent sets on the fleet cluster.
	fieldOwner = client.FieldOwner("bellwether-agent")
	// lookAgain is when a cluster without the kind is asked for it again.
	lookAgain = 5 * time.Minute

	// reasonNoPodMonitors is the reason of the Event for such a cluster.
	reasonNoPodMonitors = "NoPodMonitors"
)

// Reconciler makes PodMonitors for OperatorInstalls.
type Reconciler struct {
	// Local reads the fleet cluster through a cache, and writes to it; Live reads
	// it directly.
	Local client.Client
	Live  client.Reader
	// Cluster is the FleetCluster's name.
	Cluster string
	// Labels are put on every PodMonitor.
	Labels   map[string]string
	Recorder events.EventRecorder
}

// Reconcile brings the PodMonitors of one operator to what its install asks.
// It leaves the install itself alone.
func (r *Reconciler) Reconcile(ctx context.Context, oi *v1alpha1.OperatorInstall) (ctrl.Result, error) {
	// A hub that recovers an install does not say at once what is to be monitored.
	if a := oi.Spec.Admission; a == nil || a.Recovered && oi.Spec.Monitor == nil {
		return ctrl.Result{}, nil
	}
	in, err := r.observe(ctx, oi)
	switch {
	case absent(err):
		return r.cannot(ctx, oi), nil
	case apierrors.IsForbidden(err) && !plan.Wanted(oi):
		return ctrl.Result{}, nil // then none was ever made
	case err != nil:
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.apply(ctx, oi, plan.Next(in))
}

// absent tells whether the cluster does not serve the kind.
func absent(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

// cannot tells that monitors are asked for where there can be none.
func (r *Reconciler) cannot(ctx context.Context, oi *v1alpha1.OperatorInstall) ctrl.Result {
	if !plan.Wanted(oi) {
		return ctrl.Result{}
	}
	log.FromContext(ctx).V(1).Info("The cluster has no kind PodMonitor; the operator is not scraped")
	kit.Emit(r.Recorder, oi, reasonNoPodMonitors, "Monitor",
		"spec.monitor asks for a PodMonitor, and the cluster has no such kind: install the CRDs of "+
			"prometheus-operator, or scrape the operator otherwise.")
	return ctrl.Result{RequeueAfter: lookAgain}
}

func (r *Reconciler) observe(ctx context.Context, oi *v1alpha1.OperatorInstall) (plan.Input, error) {
	in := plan.Input{Install: oi, Cluster: r.Cluster, Labels: r.Labels}
	namespace := client.InNamespace(oi.Spec.Admission.Release.TargetNamespace())
	existing := &metav1.PartialObjectMetadataList{}
	existing.SetGroupVersionKind(monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.PodMonitorsKind + "List"))
	if err := r.Live.List(ctx, existing, namespace,
		client.MatchingLabels(oi.Spec.Operator.ManagedLabels())); err != nil {
		return in, fmt.Errorf("list PodMonitors: %w", err)
	}
	for _, item := range existing.Items {
		in.Existing = append(in.Existing, item.Name)
	}
	var deployments appsv1.DeploymentList
	if err := r.Local.List(ctx, &deployments, namespace); err != nil {
		return in, fmt.Errorf("list Deployments: %w", err)
	}
	for _, d := range deployments.Items {
		in.Deployments = append(in.Deployments, plan.Deployment{Name: d.Name, UID: d.UID,
			CSV: d.Labels[olmv0.LabelOwner], Selector: d.Spec.Selector})
	}
	return in, nil
}

func (r *Reconciler) apply(ctx context.Context, oi *v1alpha1.OperatorInstall, d plan.Decision) error {
	for _, wanted := range d.Apply {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(wanted)
		if err != nil {
			return fmt.Errorf("encode PodMonitor: %w", err)
		}
		delete(content, "status")
		object := &unstructured.Unstructured{Object: content}
		if err := r.Local.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), fieldOwner,
			client.ForceOwnership); err != nil {
			return fmt.Errorf("apply PodMonitor %s: %w", wanted.Name, err)
		}
	}
	for _, name := range d.Delete {
		gone := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: oi.Spec.Admission.Release.TargetNamespace(), Name: name}}
		gone.SetGroupVersionKind(monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.PodMonitorsKind))
		if err := r.Local.Delete(ctx, gone); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete PodMonitor %s: %w", name, err)
		}
		log.FromContext(ctx).Info("Deleted the PodMonitor", "name", name, "namespace", gone.Namespace)
	}
	return nil
}
