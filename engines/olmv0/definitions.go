// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"context"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch

// newDefinitionMeta returns an empty object for the metadata of a CustomResourceDefinition. Only the metadata is read
// and cached, because a cluster has hundreds of definitions.
func newDefinitionMeta() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind(plan.KindDefinition))
	return object
}

// Definitions reads the CustomResourceDefinitions of installed bundles from the API server.
type Definitions struct{ Live client.Reader }

// ListOwned returns the CustomResourceDefinitions that the ClusterServiceVersion of a bundle owns, without definitions
// that the cluster does not have. The error is a NotFound if the ClusterServiceVersion does not exist.
func (d Definitions) ListOwned(ctx context.Context, namespace, bundle string) (
	[]apiextensionsv1.CustomResourceDefinition, error) {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := d.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: bundle}, csv); err != nil {
		return nil, fmt.Errorf("get ClusterServiceVersion %s/%s: %w", namespace, bundle, err)
	}
	var definitions []apiextensionsv1.CustomResourceDefinition
	isRead := map[string]bool{} // a CSV names a definition once for each version
	for _, owned := range csv.Spec.CustomResourceDefinitions.Owned {
		if isRead[owned.Name] {
			continue
		}
		isRead[owned.Name] = true
		definition, err := d.Get(ctx, owned.Name)
		switch {
		case apierrors.IsNotFound(err):
			// left out
		case err != nil:
			return nil, err
		default:
			definitions = append(definitions, *definition)
		}
	}
	return definitions, nil
}

// Get returns a CustomResourceDefinition from the API server.
func (d Definitions) Get(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind(plan.KindDefinition))
	if err := d.Live.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return nil, fmt.Errorf("get CustomResourceDefinition %s: %w", name, err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, definition); err != nil {
		return nil, fmt.Errorf("decode CustomResourceDefinition %s: %w", name, err)
	}
	return definition, nil
}

// BundleOf returns the bundle that OLM made an object for; empty if OLM did not make the object.
func BundleOf(o metav1.Object) string { return o.GetLabels()[plan.LabelOwner] }

// IsConnected reports whether OLM is connected to the address that a CatalogSource names.
func IsConnected(source *operatorsv1alpha1.CatalogSource) bool {
	state := source.Status.GRPCConnectionState
	return state != nil && state.Address == source.Spec.Address && state.LastObservedState == plan.ConnectionReady
}
