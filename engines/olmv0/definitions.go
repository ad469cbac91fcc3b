// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"context"
	"fmt"
	"maps"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles/rollback"
)

// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch

const (
	kindDefinition = "CustomResourceDefinition"
	kindService    = "Service"
)

// definitionMeta is a CustomResourceDefinition of which only the metadata is read and cached: a cluster has hundreds
// of them.
func definitionMeta() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind(kindDefinition))
	return object
}

// readUndefined looks for definitions that the installed CSV owns and that are not there. One that the cache does not
// have is looked up on the API server: the caches of different kinds run ahead of each other.
func (r *reader) readUndefined(ctx context.Context) error {
	csv, ok := r.observation.Cluster.Installed()
	if !ok {
		return nil
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(r.observation.owned[csv.Name]))) {
		key := client.ObjectKey{Name: name}
		err := r.local.Get(ctx, key, definitionMeta())
		if apierrors.IsNotFound(err) {
			err = r.live.Get(ctx, key, definitionMeta())
		}
		switch {
		case apierrors.IsNotFound(err):
			r.observation.Cluster.Undefined = append(r.observation.Cluster.Undefined, name)
		case err != nil:
			return fmt.Errorf("get CustomResourceDefinition %s: %w", name, err)
		}
	}
	return nil
}

// readUnserved looks for Services that came with the installed CSV and that are not there: OLM does not look at them
// again. While its plan is carried out, they may not be there yet.
func (r *reader) readUnserved(ctx context.Context) error {
	csv, ok := r.observation.Cluster.Installed()
	p := r.observation.Cluster.CarriedOut(csv.Name)
	if !ok || p == nil || p.Phase != string(operatorsv1alpha1.InstallPlanPhaseComplete) {
		return nil
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(p.Services[csv.Name]))) {
		key := client.ObjectKey{Namespace: r.data.Namespace, Name: name}
		err := r.local.Get(ctx, key, &corev1.Service{})
		if apierrors.IsNotFound(err) {
			err = r.live.Get(ctx, key, &corev1.Service{})
		}
		switch {
		case apierrors.IsNotFound(err):
			r.observation.Cluster.Unserved = append(r.observation.Cluster.Unserved, name)
		case err != nil:
			return fmt.Errorf("get Service %s: %w", name, err)
		}
	}
	return nil
}

// OwnedDefinitions returns the CustomResourceDefinitions that a ClusterServiceVersion
// owns, as the cluster has them; one that the cluster does not have is left out. The
// error is a NotFound where there is no such ClusterServiceVersion.
func OwnedDefinitions(ctx context.Context, live client.Reader, namespace, csvName string) (
	[]apiextensionsv1.CustomResourceDefinition, error) {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: csvName}, csv); err != nil {
		return nil, fmt.Errorf("get ClusterServiceVersion %s/%s: %w", namespace, csvName, err)
	}
	var definitions []apiextensionsv1.CustomResourceDefinition
	seen := map[string]bool{} // a CSV names a definition once for each version
	for _, owned := range csv.Spec.CustomResourceDefinitions.Owned {
		if seen[owned.Name] {
			continue
		}
		seen[owned.Name] = true
		definition, err := Definition(ctx, live, owned.Name)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, err
		default:
			definitions = append(definitions, *definition)
		}
	}
	return definitions, nil
}

// Definition returns a CustomResourceDefinition as the cluster has it.
func Definition(ctx context.Context, live client.Reader, name string) (*apiextensionsv1.CustomResourceDefinition,
	error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind(kindDefinition))
	if err := live.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return nil, fmt.Errorf("get CustomResourceDefinition %s: %w", name, err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, definition); err != nil {
		return nil, fmt.Errorf("decode CustomResourceDefinition %s: %w", name, err)
	}
	return definition, nil
}

// readStored returns what the objects of an operator may be stored as, while it goes
// back to an older version: the cluster may have run versions that are not between
// the two. It is nil where nothing goes back.
func (e *Engine) readStored(ctx context.Context, o *Observation, install *v1alpha1.OperatorInstall) (rollback.Stored,
	error) {
	admission := install.Spec.Admission
	if admission.Rollback == nil || install.Status.SucceededHash == admission.Hash {
		return nil, nil
	}
	stored := rollback.Stored{}
	for _, name := range slices.Concat(slices.Collect(maps.Values(o.owned))...) {
		if _, known := stored[name]; known {
			continue
		}
		definition, err := Definition(ctx, e.Live, name)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err == nil {
			stored[name] = definition.Status.StoredVersions
		}
	}
	return stored, nil
}
