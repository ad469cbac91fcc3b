// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/controllers/install/plan"
)

// observeOccupants looks, before an operator is removed, for what would be lost
// with its namespace: its own custom resources, volumes, and workloads that are
// not its own. What the agent may not list counts as being there.
func (r *Reconciler) observeOccupants(ctx context.Context, s *seen) {
	if !s.Cluster.Namespace.Managed || s.Cluster.Namespace.Kept {
		return
	}
	kinds := []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
		corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		corev1.SchemeGroupVersion.WithKind("Service"),
	}
	for _, kind := range append(kinds, s.ownedKinds()...) {
		name, err := r.occupant(ctx, s.data.Namespace, kind)
		switch {
		case meta.IsNoMatchError(err):
			continue
		case err != nil:
			s.Cluster.Namespace.Occupied = fmt.Sprintf("perhaps a %s (%v)", kind.Kind, err)
			return
		case name != "":
			s.Cluster.Namespace.Occupied = kind.Kind + " " + name
			return
		}
	}
}

// ownedKinds are the kinds of custom resources that the CSVs in the namespace
// own.
func (s *seen) ownedKinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for action, object := range s.live {
		csv, ok := object.(*operatorsv1alpha1.ClusterServiceVersion)
		if action.Kind != plan.KindCSV || !ok {
			continue
		}
		for _, crd := range csv.Spec.CustomResourceDefinitions.Owned {
			_, group, _ := strings.Cut(crd.Name, ".")
			kinds = append(kinds, schema.GroupVersionKind{Group: group, Version: crd.Version, Kind: crd.Kind})
		}
	}
	return kinds
}

// occupant names one object of a kind that is not part of every namespace and
// is not owned by another object.
func (r *Reconciler) occupant(ctx context.Context, namespace string, kind schema.GroupVersionKind) (string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	if err := r.Live.List(ctx, list, client.InNamespace(namespace), client.Limit(maxOccupants)); err != nil {
		return "", err
	}
	for _, item := range list.Items {
		if !slices.Contains(everywhere, item.Name) && len(item.OwnerReferences) == 0 &&
			item.Labels[labelOLMOwner] == "" {
			return item.Name, nil
		}
	}
	return "", nil
}

const maxOccupants = 100

// everywhere names ConfigMaps that the cluster puts into every namespace.
var everywhere = []string{"kube-root-ca.crt", "openshift-service-ca.crt"}
