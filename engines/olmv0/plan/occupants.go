// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// OccupantKinds returns the kinds of objects whose deletion with an operator's namespace would lose data: the custom
// resources of its CSVs, volumes, ConfigMaps and Services.
func OccupantKinds(csvs []operatorsv1alpha1.ClusterServiceVersion) []schema.GroupVersionKind {
	kinds := []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
		corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		corev1.SchemeGroupVersion.WithKind(KindService),
	}
	for i := range csvs {
		for _, crd := range csvs[i].Spec.CustomResourceDefinitions.Owned {
			_, group, _ := strings.Cut(crd.Name, ".")
			kinds = append(kinds, schema.GroupVersionKind{Group: group, Version: crd.Version, Kind: crd.Kind})
		}
	}
	return kinds
}

// addOccupant adds the name of one object that would be lost with the namespace, before an operator is removed. A
// kind that the agent cannot list counts as present.
func (b factsBuilder) addOccupant() {
	namespace := &b.Cluster.Namespace
	if !namespace.Managed || namespace.Kept {
		return // the namespace is not deleted in any case
	}
	if b.observed.Occupants == nil {
		b.requestRead(KindOccupants, b.data.Namespace, "see whether the namespace can be deleted")
		return
	}
	for _, o := range b.observed.Occupants {
		if o.Err != nil {
			namespace.Occupied = fmt.Sprintf("perhaps a %s (%v)", o.Kind, o.Err)
			return
		}
		if name := o.findName(); name != "" {
			namespace.Occupied = o.Kind + " " + name
			return
		}
	}
}

// findName returns the name of the first object that is not in every namespace and that no other object owns; empty
// if there is none.
func (o Occupants) findName() string {
	for _, item := range o.Items {
		if !slices.Contains(commonConfigMaps, item.Name) && len(item.OwnerReferences) == 0 &&
			item.Labels[LabelOwner] == "" {
			return item.Name
		}
	}
	return ""
}

// commonConfigMaps are the ConfigMaps that the cluster creates in every namespace.
var commonConfigMaps = []string{"kube-root-ca.crt", "openshift-service-ca.crt"}
