// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/install/plan"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// The agent's permissions on its own cluster. It reads ConfigMaps, Services,
// volumes and the operators' own resources (through the role view) only to
// learn whether a namespace is empty.
//
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps;services;persistentvolumeclaims,verbs=list
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=operators.coreos.com,resources=operatorgroups;catalogsources;subscriptions,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=operators.coreos.com,resources=installplans,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=operators.coreos.com,resources=clusterserviceversions/status;installplans/status;subscriptions/status,verbs=patch
// +kubebuilder:rbac:groups=operators.coreos.com,resources=clusterserviceversions,verbs=get;list;watch;patch;delete

// LocalCache says what of the fleet cluster is kept in memory: no copied CSVs,
// no Deployment that OLM did not make, and no manifest that nobody reads.
func LocalCache() cache.Options {
	notCopied := labels.NewSelector().Add(*must(labels.NewRequirement(operatorsv1alpha1.CopiedLabelKey,
		selection.DoesNotExist, nil)))
	ofOLM := labels.NewSelector().Add(*must(labels.NewRequirement(labelOLMOwner, selection.Exists, nil)))
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&operatorsv1alpha1.ClusterServiceVersion{}: {Label: notCopied, Transform: stripCSV},
			&operatorsv1alpha1.InstallPlan{}:           {Transform: stripInstallPlan},
			&appsv1.Deployment{}:                       {Label: ofOLM},
		},
	}
}

// Mapper knows OLM's kinds even where the cluster does not serve them yet: the
// agent must be able to start there, and to say so.
func Mapper(c *rest.Config, http *http.Client) (meta.RESTMapper, error) {
	served, err := apiutil.NewDynamicRESTMapper(c, http)
	if err != nil {
		return nil, fmt.Errorf("make REST mapper: %w", err)
	}
	olm := meta.NewDefaultRESTMapper(nil)
	for version, kinds := range map[schema.GroupVersion][]string{
		operatorsv1.SchemeGroupVersion: {plan.KindOperatorGroup},
		operatorsv1alpha1.SchemeGroupVersion: {plan.KindCatalogSource, plan.KindSubscription, plan.KindInstallPlan,
			plan.KindCSV},
	} {
		for _, kind := range kinds {
			olm.Add(version.WithKind(kind), meta.RESTScopeNamespace)
		}
	}
	return meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{olm, served}}, nil
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// stripCSV keeps what observe and package vitals read. A CSV carries its operator's icon,
// description and Deployments, often hundreds of kilobytes.
func stripCSV(object any) (any, error) {
	csv, ok := object.(*operatorsv1alpha1.ClusterServiceVersion)
	if !ok {
		return object, nil
	}
	owned := csv.Spec.CustomResourceDefinitions.Owned
	kept := make([]operatorsv1alpha1.CRDDescription, len(owned))
	for i, crd := range owned {
		kept[i] = operatorsv1alpha1.CRDDescription{Name: crd.Name, Version: crd.Version, Kind: crd.Kind}
	}
	slim := &operatorsv1alpha1.ClusterServiceVersion{
		TypeMeta:   csv.TypeMeta,
		ObjectMeta: slimMeta(csv.ObjectMeta),
	}
	slim.Spec.Version, slim.Spec.Replaces = csv.Spec.Version, csv.Spec.Replaces
	slim.Spec.CustomResourceDefinitions.Owned = kept
	for _, w := range csv.Spec.WebhookDefinitions {
		slim.Spec.WebhookDefinitions = append(slim.Spec.WebhookDefinitions,
			operatorsv1alpha1.WebhookDescription{GenerateName: w.GenerateName, Type: w.Type})
	}
	slim.Status.Phase, slim.Status.Reason, slim.Status.Message = csv.Status.Phase, csv.Status.Reason, csv.Status.Message
	slim.Status.LastTransitionTime = csv.Status.LastTransitionTime
	for _, r := range csv.Status.RequirementStatus {
		if unmet(r) {
			slim.Status.RequirementStatus = append(slim.Status.RequirementStatus,
				operatorsv1alpha1.RequirementStatus{Kind: r.Kind, Name: r.Name, Status: r.Status, Message: r.Message})
		}
	}
	return slim, nil
}

// stripInstallPlan drops the manifests, which are most of it.
func stripInstallPlan(object any) (any, error) {
	p, ok := object.(*operatorsv1alpha1.InstallPlan)
	if !ok {
		return object, nil
	}
	revision, approved := p.Annotations[v1alpha1.AnnotationRevision]
	p.ObjectMeta = slimMeta(p.ObjectMeta)
	if approved {
		p.Annotations = map[string]string{v1alpha1.AnnotationRevision: revision}
	}
	for _, step := range p.Status.Plan {
		if step != nil {
			step.Resource.Manifest = ""
		}
	}
	return p, nil
}

func slimMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	m.ManagedFields, m.Annotations = nil, nil
	return m
}

// Setup wires the reconciler: its own kind on the hub, and OLM's kinds on the
// fleet cluster, which are watched from the moment that OLM is there.
type Setup struct {
	Manager    ctrl.Manager
	Local      cluster.Cluster
	Reconciler *Reconciler
	Recorder   events.EventRecorder
	// CheckOLM is how often the cluster is asked for OLM's API; default 10s.
	CheckOLM time.Duration

	controller controller.Controller
	// known says that the cluster was asked for OLM's API, and present what it
	// answered last.
	known, present atomic.Bool
	watching       bool
	poke           chan event.TypedGenericEvent[*v1alpha1.OperatorInstall]
}

// Add adds the controller to the manager.
func (s *Setup) Add() error {
	if s.CheckOLM == 0 {
		s.CheckOLM = 10 * time.Second
	}
	s.poke = make(chan event.TypedGenericEvent[*v1alpha1.OperatorInstall])
	s.Reconciler.OLM = s.olm
	c, err := ctrl.NewControllerManagedBy(s.Manager).
		Named("install").
		For(&v1alpha1.OperatorInstall{}).
		WatchesRawSource(source.Channel(s.poke, &handler.TypedEnqueueRequestForObject[*v1alpha1.OperatorInstall]{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 2}).
		Build(kit.Shell(s.Manager.GetClient(), s.Recorder, s.Reconciler))
	if err != nil {
		return fmt.Errorf("build install controller: %w", err)
	}
	s.controller = c
	return s.Manager.Add(s)
}

// olm is what the Reconciler asks.
func (s *Setup) olm() (served, known bool) { return s.present.Load(), s.known.Load() }

// Start looks for OLM until ctx ends, at first until it has an answer. It is a
// manager.Runnable.
func (s *Setup) Start(ctx context.Context) error {
	for {
		if err := s.look(ctx); err != nil {
			log.FromContext(ctx).Error(err, "Cannot look for OLM")
		}
		wait := s.CheckOLM
		if !s.known.Load() {
			wait = time.Second
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// look asks for OLM's API; when OLM came or went, every install is looked at
// again.
func (s *Setup) look(ctx context.Context) error {
	present, err := servesOLM(s.Local)
	if err != nil {
		return err
	}
	if present && !s.watching {
		if err := s.watchOLM(); err != nil {
			return err
		}
		s.watching = true
	}
	was := s.present.Swap(present)
	if s.known.Swap(true) && was == present {
		return nil
	}
	log.FromContext(ctx).Info("OLM's API", "served", present)
	var installs v1alpha1.OperatorInstallList
	if err := s.Manager.GetClient().List(ctx, &installs); err != nil {
		return fmt.Errorf("list OperatorInstalls: %w", err)
	}
	for i := range installs.Items {
		select {
		case s.poke <- event.TypedGenericEvent[*v1alpha1.OperatorInstall]{Object: &installs.Items[i]}:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// servesOLM asks the API itself: a REST mapper would remember a CRD that is gone.
func servesOLM(c cluster.Cluster) (bool, error) {
	gone := &operatorsv1alpha1.SubscriptionList{}
	err := c.GetAPIReader().List(context.Background(), gone, client.Limit(1))
	switch {
	case err == nil:
		return true, nil
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return false, nil
	}
	return false, fmt.Errorf("look for OLM: %w", err)
}

// watchOLM watches everything that a decision about a namespace rests on.
func (s *Setup) watchOLM() error {
	toInstalls := handler.TypedEnqueueRequestsFromMapFunc(s.installsIn)
	objects := []client.Object{
		&operatorsv1alpha1.InstallPlan{}, &operatorsv1alpha1.ClusterServiceVersion{}, &appsv1.Deployment{},
		kind(operatorsv1.SchemeGroupVersion, plan.KindOperatorGroup),
		kind(operatorsv1alpha1.SchemeGroupVersion, plan.KindCatalogSource),
		kind(operatorsv1alpha1.SchemeGroupVersion, plan.KindSubscription),
	}
	for _, object := range objects {
		if err := s.controller.Watch(source.Kind(s.Local.GetCache(), object, toInstalls)); err != nil {
			return fmt.Errorf("watch %T: %w", object, err)
		}
	}
	return nil
}

func kind(version schema.GroupVersion, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(version.WithKind(name))
	return object
}

// installsIn maps an object to the installs whose operator lives in its
// namespace.
func (s *Setup) installsIn(ctx context.Context, object client.Object) []reconcile.Request {
	var installs v1alpha1.OperatorInstallList
	if err := s.Manager.GetClient().List(ctx, &installs); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list OperatorInstalls")
		return nil
	}
	var requests []reconcile.Request
	for _, oi := range installs.Items {
		if oi.Spec.Admission != nil && oi.Spec.Admission.Release.TargetNamespace() == object.GetNamespace() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&oi)})
		}
	}
	return requests
}
