// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// readOccupants looks, before an operator is removed, for what would be lost with
// its namespace: its custom resources, volumes, and objects that are not its own.
// What the agent may not list counts as being there.
func (r *reader) readOccupants(ctx context.Context) {
	if !r.observation.Cluster.Namespace.Managed || r.observation.Cluster.Namespace.Kept {
		return
	}
	kinds := []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
		corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		corev1.SchemeGroupVersion.WithKind("Service"),
	}
	for _, kind := range append(kinds, r.observation.ownedKinds...) {
		name, err := r.occupant(ctx, r.data.Namespace, kind)
		switch {
		case meta.IsNoMatchError(err):
			continue
		case err != nil:
			r.observation.Cluster.Namespace.Occupied = fmt.Sprintf("perhaps a %s (%v)", kind.Kind, err)
			return
		case name != "":
			r.observation.Cluster.Namespace.Occupied = kind.Kind + " " + name
			return
		}
	}
}

// occupant names one object of a kind that is not part of every namespace and
// is not owned by another object.
func (r *reader) occupant(ctx context.Context, namespace string, kind schema.GroupVersionKind) (string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	if err := r.live.List(ctx, list, client.InNamespace(namespace), client.Limit(maxOccupants)); err != nil {
		return "", err
	}
	for _, item := range list.Items {
		if !slices.Contains(inEveryNamespace, item.Name) && len(item.OwnerReferences) == 0 &&
			item.Labels[plan.LabelOwner] == "" {
			return item.Name, nil
		}
	}
	return "", nil
}

const maxOccupants = 100

// inEveryNamespace names ConfigMaps that the cluster creates in every namespace.
var inEveryNamespace = []string{"kube-root-ca.crt", "openshift-service-ca.crt"}
