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

// The agent creates EndpointProbes and reads the objects that the probes refer to. The
// permissions that hub and agent share are in package probe.
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

// Add adds the controller to an agent's manager. hub is a manager for the hub whose cache is
// restricted to the cluster's namespace. The controller waits if the fleet cluster does not
// serve EndpointProbes yet. keeps is Reconciler.Keeps.
func Add(hub ctrl.Manager, local cluster.Cluster, namespace string,
	keeps func(ctx context.Context, operator v1alpha1.OperatorReference) (bool, error)) error {
	mapProbeToInstall := func(_ context.Context, probe *v1alpha1.EndpointProbe) []reconcile.Request {
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
			handler.TypedEnqueueRequestsFromMapFunc(mapProbeToInstall))).
		Complete(&Reconciler{Hub: hub.GetClient(), Local: local.GetClient(), HasStoredAdmission: keeps,
			Recorder: hub.GetEventRecorder("bellwether-agent")})
	if err != nil {
		return fmt.Errorf("build services controller: %w", err)
	}
	return nil
}
