// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// The agent makes EndpointProbes and reads what they are aimed at. What hub and
// agent both may do with them is in package probe.
//
// +kubebuilder:rbac:groups=bellwether.dev,resources=endpointprobes,verbs=create;update;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,verbs=get;list;watch
// +kubebuilder:rbac:groups=route.openshift.io,resources=routes,verbs=get;list;watch
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes;gateways,verbs=get;list;watch
//
// CAs of webhooks:
//
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations;mutatingwebhookconfigurations,verbs=get;list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch

// Add adds the controller to an agent's manager, which is the hub's, its cache
// restricted to the cluster's namespace. A fleet cluster that does not serve
// EndpointProbes yet is waited for.
// What the cluster keeps of an operator that the hub does not know is left alone; see
// Reconciler.Keeps.
func Add(hub ctrl.Manager, local cluster.Cluster, namespace string,
	keeps func(ctx context.Context, operator v1alpha1.OperatorReference) (bool, error)) error {
	toInstall := func(_ context.Context, probe *v1alpha1.EndpointProbe) []reconcile.Request {
		if probe.Labels[v1alpha1.LabelManaged] == "" {
			return nil
		}
		operator := v1alpha1.OperatorReference{Namespace: probe.Labels[v1alpha1.LabelOperatorNamespace],
			Name: probe.Labels[v1alpha1.LabelOperator]}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: namespace,
			Name: operator.InstallName()}}}
	}
	err := ctrl.NewControllerManagedBy(hub).
		Named("services").
		For(&v1alpha1.OperatorInstall{}).
		WatchesRawSource(source.Kind(local.GetCache(), &v1alpha1.EndpointProbe{},
			handler.TypedEnqueueRequestsFromMapFunc(toInstall))).
		Complete(&Reconciler{Hub: hub.GetClient(), Local: local.GetClient(), Keeps: keeps,
			Recorder: hub.GetEventRecorder("bellwether-agent")})
	if err != nil {
		return fmt.Errorf("build services controller: %w", err)
	}
	return nil
}
