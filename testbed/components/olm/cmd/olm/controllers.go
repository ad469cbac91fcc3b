// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/install"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/operators"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/feature"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// setup is what every controller-runtime reconciler of OLM offers.
type setup interface {
	SetupWithManager(ctrl.Manager) error
}

// newManager wires the controllers of OLM that run on controller-runtime, with upstream's feature gates.
func newManager(config *rest.Config) (ctrl.Manager, error) {
	log := zap.New()
	ctrl.SetLogger(log)
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register meta types: %w", err)
	}
	if err := operators.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register OLM types: %w", err)
	}
	byObject, err := cachedObjects()
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   cache.Options{ByObject: byObject},
	})
	if err != nil {
		return nil, fmt.Errorf("create controller manager: %w", err)
	}

	var add []func() (setup, error)
	c, logger := mgr.GetClient(), log.WithName("controllers")
	add = append(add,
		func() (setup, error) { return operators.NewOperatorConditionReconciler(c, logger, scheme) },
		func() (setup, error) { return operators.NewOperatorConditionGeneratorReconciler(c, logger, scheme) },
	)
	if feature.Gate.Enabled(feature.OperatorLifecycleManagerV1) {
		add = append(add,
			func() (setup, error) { return operators.NewOperatorReconciler(c, logger, scheme) },
			func() (setup, error) { return operators.NewAdoptionReconciler(c, logger, scheme) },
		)
	}
	for _, create := range add {
		reconciler, err := create()
		if err != nil {
			return nil, fmt.Errorf("create reconciler: %w", err)
		}
		if err := reconciler.SetupWithManager(mgr); err != nil {
			return nil, fmt.Errorf("set up %T: %w", reconciler, err)
		}
	}
	return mgr, nil
}

// cachedObjects narrows the cache as upstream does: of everyday kinds only what OLM made, and no copied CSV.
func cachedObjects() (map[client.Object]cache.ByObject, error) {
	notCopied, err := labels.NewRequirement(operatorsv1alpha1.CopiedLabelKey, selection.DoesNotExist, nil)
	if err != nil {
		return nil, fmt.Errorf("build selector: %w", err)
	}
	byObject := map[client.Object]cache.ByObject{
		&operatorsv1alpha1.ClusterServiceVersion{}: {Label: labels.NewSelector().Add(*notCopied)},
	}
	managed := labels.SelectorFromSet(labels.Set{install.OLMManagedLabelKey: install.OLMManagedLabelValue})
	for _, object := range []client.Object{
		&appsv1.Deployment{},
		&corev1.Service{}, &corev1.ConfigMap{}, &corev1.ServiceAccount{},
		&rbacv1.Role{}, &rbacv1.RoleBinding{}, &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{},
		&apiextensionsv1.CustomResourceDefinition{},
		&apiregistrationv1.APIService{},
		&admissionregistrationv1.MutatingWebhookConfiguration{},
		&admissionregistrationv1.ValidatingWebhookConfiguration{},
	} {
		byObject[object] = cache.ByObject{Label: managed}
	}
	return byObject, nil
}
