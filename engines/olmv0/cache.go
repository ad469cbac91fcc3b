// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// The agent's permissions on its own cluster. It reads ConfigMaps, Services,
// volumes and the operators' own resources (through the role view) only to check
// whether a namespace is empty.
//
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps;services;persistentvolumeclaims,verbs=list
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=operators.coreos.com,resources=operatorgroups;catalogsources;subscriptions,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=operators.coreos.com,resources=installplans,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=operators.coreos.com,resources=clusterserviceversions/status;installplans/status;subscriptions/status,verbs=patch
// +kubebuilder:rbac:groups=operators.coreos.com,resources=clusterserviceversions,verbs=get;list;watch;patch;delete

// LocalCache returns which objects of the fleet cluster are kept in memory: no copied CSVs, no Deployments that OLM
// did not create, and no manifests that no code reads.
func LocalCache() cache.Options {
	notCopied := labels.NewSelector().Add(*mustSucceed(labels.NewRequirement(operatorsv1alpha1.CopiedLabelKey,
		selection.DoesNotExist, nil)))
	ownedByOLM := labels.NewSelector().Add(*mustSucceed(labels.NewRequirement(plan.LabelOwner, selection.Exists, nil)))
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&operatorsv1alpha1.ClusterServiceVersion{}: {Label: notCopied, Transform: stripCSV},
			&operatorsv1alpha1.InstallPlan{}:           {Transform: stripInstallPlan},
			&operatorsv1alpha1.Subscription{}:          {Transform: stripSubscription},
			&appsv1.Deployment{}:                       {Label: ownedByOLM},
		},
	}
}

// Mapper returns a REST mapper that has OLM's kinds even if the cluster does not serve them yet, so that the agent
// can start there and report it.
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

// mustSucceed returns v, and panics if err is not nil.
func mustSucceed[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// stripCSV keeps the fields that Observe, Finder and package vitals read. A CSV has its operator's icon, description
// and Deployments, often hundreds of kilobytes.
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
	stripped := &operatorsv1alpha1.ClusterServiceVersion{
		TypeMeta:   csv.TypeMeta,
		ObjectMeta: stripMeta(csv.ObjectMeta),
	}
	stripped.ManagedFields = listSpecWriters(csv.ManagedFields)
	stripped.Spec.Version, stripped.Spec.Replaces = csv.Spec.Version, csv.Spec.Replaces
	stripped.Spec.CustomResourceDefinitions.Owned = kept
	for _, crd := range csv.Spec.CustomResourceDefinitions.Required {
		stripped.Spec.CustomResourceDefinitions.Required = append(stripped.Spec.CustomResourceDefinitions.Required,
			operatorsv1alpha1.CRDDescription{Name: crd.Name})
	}
	deployments := &stripped.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	for _, d := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		stripped := operatorsv1alpha1.StrategyDeploymentSpec{Name: d.Name}
		stripped.Spec.Replicas = d.Spec.Replicas
		*deployments = append(*deployments, stripped)
	}
	for _, w := range csv.Spec.WebhookDefinitions {
		stripped.Spec.WebhookDefinitions = append(stripped.Spec.WebhookDefinitions,
			operatorsv1alpha1.WebhookDescription{GenerateName: w.GenerateName, Type: w.Type})
	}
	stripped.Status.Phase, stripped.Status.Reason, stripped.Status.Message =
		csv.Status.Phase, csv.Status.Reason, csv.Status.Message
	stripped.Status.LastTransitionTime = csv.Status.LastTransitionTime
	for _, r := range csv.Status.RequirementStatus {
		if plan.IsUnmet(r) {
			stripped.Status.RequirementStatus = append(stripped.Status.RequirementStatus,
				operatorsv1alpha1.RequirementStatus{Kind: r.Kind, Name: r.Name, Status: r.Status, Message: r.Message})
		}
	}
	return stripped, nil
}

// stripInstallPlan removes the manifests, which are most of an InstallPlan, and all annotations except for the revision
// of the approval.
func stripInstallPlan(object any) (any, error) {
	p, ok := object.(*operatorsv1alpha1.InstallPlan)
	if !ok {
		return object, nil
	}
	revision, approved := p.Annotations[v1alpha1.AnnotationRevision]
	p.ObjectMeta = stripMeta(p.ObjectMeta)
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

// stripSubscription keeps only the field managers that own fields of the spec.
func stripSubscription(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetManagedFields(listSpecWriters(o.GetManagedFields()))
	}
	return object, nil
}

// listSpecWriters returns an entry for each field manager that owns fields of the spec. An entry has only the name of
// the field manager. The function is idempotent: informers may transform an object more than once (TransformFunc of
// client-go).
func listSpecWriters(fields []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var out []metav1.ManagedFieldsEntry
	for _, f := range fields {
		if f.Subresource == "" && f.FieldsV1 != nil && strings.Contains(f.FieldsV1.GetRawString(), `"f:spec"`) &&
			!slices.ContainsFunc(out, func(o metav1.ManagedFieldsEntry) bool { return o.Manager == f.Manager }) {
			out = append(out, metav1.ManagedFieldsEntry{Manager: f.Manager, FieldsV1: specFields})
		}
	}
	return out
}

// specFields records that fields of the spec are owned, without the names of the fields.
var specFields = metav1.NewFieldsV1(`{"f:spec":{}}`)

// stripMeta returns metadata without managed fields and annotations.
func stripMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	m.ManagedFields, m.Annotations = nil, nil
	return m
}
