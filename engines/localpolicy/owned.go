// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package localpolicy

import (
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The labels of OLM: an object that OLM manages, and the CSV that owns an object.
const (
	labelManaged        = "olm.managed"
	labelOwner          = "olm.owner"
	labelOwnerNamespace = "olm.owner.namespace"
)

const (
	kindCSV       = operatorsv1alpha1.ClusterServiceVersionKind
	kindCondition = "OperatorCondition"
)

// ownership decides which objects OLM made for one operator and its dependencies. It uses objects of OLM and of the
// agent, and no object that the hub writes.
type ownership struct {
	namespace string
	// csvs are the names of the operator's CSVs, and created are the objects that OLM created for them.
	csvs    map[string]bool
	created map[createdObject]bool
}

type createdObject struct{ kind, name string }

// newOwnership finds the CSVs of the operator and the objects that OLM created for them.
func newOwnership(namespace string, cluster Cluster) ownership {
	subscriptions := listServed(cluster)
	plans := slices.DeleteFunc(slices.Clone(cluster.InstallPlans), func(plan operatorsv1alpha1.InstallPlan) bool {
		return !slices.ContainsFunc(plan.OwnerReferences,
			func(r metav1.OwnerReference) bool { return subscriptions[r.UID] })
	})
	csvs := listOwnCSVs(cluster.Subscriptions, subscriptions, plans)
	return ownership{namespace: namespace, csvs: csvs, created: listCreated(plans, csvs)}
}

// listServed returns the UIDs of the Subscriptions to the operator's CatalogSource.
func listServed(cluster Cluster) map[types.UID]bool {
	out := map[types.UID]bool{}
	for _, s := range cluster.Subscriptions {
		if s.Spec != nil && s.Spec.CatalogSource == cluster.Source && s.Spec.CatalogSourceNamespace == s.Namespace {
			out[s.UID] = true
		}
	}
	return out
}

// listOwnCSVs returns the CSVs of the Subscriptions to the operator's CatalogSource, and of their InstallPlans. It
// leaves out the CSVs of other Subscriptions, which a plan may contain.
func listOwnCSVs(all []operatorsv1alpha1.Subscription, isServed map[types.UID]bool,
	plans []operatorsv1alpha1.InstallPlan) map[string]bool {
	out := map[string]bool{}
	for i := range plans {
		for _, name := range plans[i].Spec.ClusterServiceVersionNames {
			out[name] = true
		}
	}
	// The other Subscriptions come last, so that a CSV of both kinds of Subscriptions is not the operator's.
	for _, isOwn := range []bool{true, false} {
		for _, s := range all {
			if isServed[s.UID] == isOwn {
				out[s.Status.InstalledCSV], out[s.Status.CurrentCSV] = isOwn, isOwn
			}
		}
	}
	delete(out, "")
	return out
}

// listCreated returns the objects that OLM created, and that did not exist before, when it carried out InstallPlans of
// the operator. OLM sets no owner on a binding that is in the manifests of a bundle.
func listCreated(plans []operatorsv1alpha1.InstallPlan, csvs map[string]bool) map[createdObject]bool {
	out := map[createdObject]bool{}
	for i := range plans {
		for _, step := range plans[i].Status.Plan {
			if step != nil && step.Status == operatorsv1alpha1.StepStatusCreated && csvs[step.Resolving] {
				out[createdObject{step.Resource.Kind, step.Resource.Name}] = true
			}
		}
	}
	return out
}

// hasAccount reports whether a service account of the namespace belongs to the operator. An account that OLM manages
// and that has no owner comes from the manifests of a bundle; its bindings are checked separately.
func (o ownership) hasAccount(account metav1.PartialObjectMetadata) bool {
	return o.isOwned(&account) || o.created[createdObject{"ServiceAccount", account.Name}] ||
		account.Labels[labelManaged] == "true" && len(account.OwnerReferences) == 0
}

// hasBinding reports whether a binding belongs to the operator: a CSV of the operator owns it, or OLM created it from
// the manifests of a bundle, in the namespace of the operator or cluster-wide.
func (o ownership) hasBinding(kind string, b metav1.Object) bool {
	isInNamespace := b.GetNamespace() == "" || b.GetNamespace() == o.namespace
	return o.isOwned(b) || isInNamespace && b.GetLabels()[labelManaged] == "true" &&
		o.created[createdObject{kind, b.GetName()}]
}

// isOwned reports whether the owner of an object is a CSV of the operator, or the OperatorCondition of such a CSV.
func (o ownership) isOwned(object metav1.Object) bool {
	labels := object.GetLabels()
	namespace := labels[labelOwnerNamespace]
	isFromNamespace := namespace != "" && (namespace == o.namespace || namespace == object.GetNamespace())
	if o.csvs[labels[labelOwner]] && isFromNamespace {
		return true
	}
	return object.GetNamespace() == o.namespace && slices.ContainsFunc(object.GetOwnerReferences(),
		func(r metav1.OwnerReference) bool {
			return (r.Kind == kindCSV || r.Kind == kindCondition) && o.csvs[r.Name]
		})
}

// describeOwner returns a clause about the first owner of an object.
func describeOwner(object metav1.PartialObjectMetadata) string {
	for _, r := range object.OwnerReferences {
		return "its owner is " + r.Kind + " " + r.Name
	}
	return "it has no owner"
}
