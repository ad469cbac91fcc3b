// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package localpolicy

import (
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// OLM's labels: that it made an object, and for which CSV.
const (
	labelManaged        = "olm.managed"
	labelOwner          = "olm.owner"
	labelOwnerNamespace = "olm.owner.namespace"
)

const (
	kindCSV       = operatorsv1alpha1.ClusterServiceVersionKind
	kindCondition = "OperatorCondition"
)

// ownership tells what OLM made for one operator and its dependencies. It rests on objects of OLM and of the agent,
// and on nothing that the hub writes.
type ownership struct {
	namespace string
	// csvs are the names of the operator's CSVs, and made are the objects that OLM created for them.
	csvs map[string]bool
	made map[madeObject]bool
}

type madeObject struct{ kind, name string }

func ownershipOf(namespace string, cluster Cluster) ownership {
	subscriptions := served(cluster)
	plans := slices.DeleteFunc(slices.Clone(cluster.InstallPlans), func(plan operatorsv1alpha1.InstallPlan) bool {
		return !slices.ContainsFunc(plan.OwnerReferences,
			func(r metav1.OwnerReference) bool { return subscriptions[r.UID] })
	})
	csvs := ownCSVs(cluster.Subscriptions, subscriptions, plans)
	return ownership{namespace: namespace, csvs: csvs, made: made(plans, csvs)}
}

// served are the Subscriptions to the operator's CatalogSource, by their UIDs.
func served(cluster Cluster) map[types.UID]bool {
	out := map[types.UID]bool{}
	for _, s := range cluster.Subscriptions {
		if s.Spec != nil && s.Spec.CatalogSource == cluster.Source && s.Spec.CatalogSourceNamespace == s.Namespace {
			out[s.UID] = true
		}
	}
	return out
}

// ownCSVs are those that Subscriptions to the operator's CatalogSource have, and those of their InstallPlans. A plan
// may hold the CSV of another Subscription, which is not the operator's.
func ownCSVs(all []operatorsv1alpha1.Subscription, served map[types.UID]bool,
	plans []operatorsv1alpha1.InstallPlan) map[string]bool {
	out := map[string]bool{}
	for i := range plans {
		for _, name := range plans[i].Spec.ClusterServiceVersionNames {
			out[name] = true
		}
	}
	for _, isServed := range []bool{true, false} { // where two have the same CSV it is not the operator's
		for _, s := range all {
			if served[s.UID] == isServed {
				out[s.Status.InstalledCSV], out[s.Status.CurrentCSV] = isServed, isServed
			}
		}
	}
	delete(out, "")
	return out
}

// made are the objects that OLM created, and did not find, when it carried out InstallPlans of the operator. OLM puts
// no owner on a binding that is among the manifests of a bundle.
func made(plans []operatorsv1alpha1.InstallPlan, csvs map[string]bool) map[madeObject]bool {
	out := map[madeObject]bool{}
	for i := range plans {
		for _, step := range plans[i].Status.Plan {
			if step != nil && step.Status == operatorsv1alpha1.StepStatusCreated && csvs[step.Resolving] {
				out[madeObject{step.Resource.Kind, step.Resource.Name}] = true
			}
		}
	}
	return out
}

// account tells whether a service account of the namespace is the operator's. One that only OLM manages, without an
// owner, was among the manifests of a bundle; the bindings tell what it may do.
func (o ownership) account(account metav1.PartialObjectMetadata) bool {
	return o.owns(&account) || o.made[madeObject{"ServiceAccount", account.Name}] ||
		account.Labels[labelManaged] == "true" && len(account.OwnerReferences) == 0
}

// binding tells whether a binding is the operator's.
func (o ownership) binding(kind string, b metav1.Object) bool {
	isHere := b.GetNamespace() == "" || b.GetNamespace() == o.namespace
	return o.owns(b) || isHere && b.GetLabels()[labelManaged] == "true" && o.made[madeObject{kind, b.GetName()}]
}

// owns tells whether an object says that a CSV of the operator is its owner, or the OperatorCondition of one.
func (o ownership) owns(object metav1.Object) bool {
	labels := object.GetLabels()
	at := labels[labelOwnerNamespace]
	if o.csvs[labels[labelOwner]] && at != "" && (at == o.namespace || at == object.GetNamespace()) {
		return true
	}
	return object.GetNamespace() == o.namespace && slices.ContainsFunc(object.GetOwnerReferences(),
		func(r metav1.OwnerReference) bool {
			return (r.Kind == kindCSV || r.Kind == kindCondition) && o.csvs[r.Name]
		})
}

// ownersOf says by whom an object is owned.
func ownersOf(object metav1.PartialObjectMetadata) string {
	for _, r := range object.OwnerReferences {
		return "its owner is " + r.Kind + " " + r.Name
	}
	return "it has no owner"
}
