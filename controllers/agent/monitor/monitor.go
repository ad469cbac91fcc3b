// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitor creates the PodMonitors on the agent's cluster that spec.monitor of an
// OperatorInstall requests, so that the cluster's Prometheus scrapes the operator. The cluster
// must serve the kind PodMonitor of prometheus-operator; an Event reports if the kind is
// missing. The package must not change a PodMonitor that it did not create.
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

	"github.com/bellwether-dev/bellwether/alerts/monitors"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// The agent's permissions on its cluster for this package.
//
// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=podmonitors,verbs=list;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch

const (
	// fieldOwner owns the fields that the agent sets on the fleet cluster.
	fieldOwner = client.FieldOwner("bellwether-agent")
	// missingKindRecheck is the delay before a cluster without the kind is checked again.
	missingKindRecheck = 5 * time.Minute

	// reasonNoPodMonitors is the reason of the Event about the missing kind.
	reasonNoPodMonitors = "NoPodMonitors"
)

// Reconciler creates and deletes the PodMonitors of OperatorInstalls.
type Reconciler struct {
	// Local reads the fleet cluster through a cache, and writes to it.
	// Live reads without the cache.
	Local client.Client
	Live  client.Reader
	// Cluster is the FleetCluster's name.
	Cluster string
	// Labels are put on every PodMonitor.
	Labels   map[string]string
	Recorder events.EventRecorder
	// BundleOf returns the bundle that an object was created for; empty if the object was not
	// created for a bundle of the engine.
	BundleOf func(metav1.Object) string
}

// Reconcile creates, updates and deletes the PodMonitors of one operator according to its
// install. It does not change the install. Without an admission, it does nothing.
func (r *Reconciler) Reconcile(ctx context.Context, oi *v1alpha1.OperatorInstall) (ctrl.Result, error) {
	a := oi.Spec.Admission
	// A hub that recovers an install writes spec.monitor later than the admission.
	isIncomplete := a != nil && a.Recovered && oi.Spec.Monitor == nil
	if a == nil || isIncomplete {
		return ctrl.Result{}, nil
	}
	in, err := r.observe(ctx, oi)
	switch {
	case isKindMissing(err):
		return r.reportMissingKind(ctx, oi), nil
	case apierrors.IsForbidden(err) && !monitors.IsWanted(oi):
		return ctrl.Result{}, nil // without the permission, no PodMonitor was ever created
	case err != nil:
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.apply(ctx, oi, monitors.Next(in))
}

// isKindMissing reports whether an error means that the cluster does not serve the kind.
func isKindMissing(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

// reportMissingKind emits an Event if the install requests PodMonitors, because the
// cluster does not serve the kind.
func (r *Reconciler) reportMissingKind(ctx context.Context, oi *v1alpha1.OperatorInstall) ctrl.Result {
	if !monitors.IsWanted(oi) {
		return ctrl.Result{}
	}
	log.FromContext(ctx).V(1).Info("The cluster has no kind PodMonitor; the operator is not scraped")
	kit.Emit(r.Recorder, oi, reasonNoPodMonitors, "Monitor",
		"spec.monitor requests a PodMonitor, and the cluster does not serve this kind: install the CRDs of "+
			"prometheus-operator, or scrape the operator in another way.")
	return ctrl.Result{RequeueAfter: missingKindRecheck}
}

// observe gathers the input of monitors.Next: the existing PodMonitors and the Deployments of
// the operator's namespace.
func (r *Reconciler) observe(ctx context.Context, oi *v1alpha1.OperatorInstall) (monitors.Input, error) {
	in := monitors.Input{Install: oi, Cluster: r.Cluster, Labels: r.Labels}
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
		in.Deployments = append(in.Deployments, monitors.Deployment{Name: d.Name, UID: d.UID,
			CSV: r.BundleOf(&d), Selector: d.Spec.Selector})
	}
	return in, nil
}

// apply applies and deletes PodMonitors as decided.
func (r *Reconciler) apply(ctx context.Context, oi *v1alpha1.OperatorInstall, d monitors.Decision) error {
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
		podMonitor := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: oi.Spec.Admission.Release.TargetNamespace(), Name: name}}
		podMonitor.SetGroupVersionKind(monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.PodMonitorsKind))
		if err := r.Local.Delete(ctx, podMonitor); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete PodMonitor %s: %w", name, err)
		}
		log.FromContext(ctx).Info("Deleted the PodMonitor", "name", name, "namespace", podMonitor.Namespace)
	}
	return nil
}
