// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles/rollback"
)

// Observed is the data that was read for an install, as it was read. NewFacts interprets the data. Objects are in the
// operator's namespace unless a field says otherwise.
type Observed struct {
	// OLM is set if the cluster serves OLM's API. Otherwise all other fields are empty, except for Namespace
	// and View.
	OLM  bool
	View View
	// Namespace is nil if it does not exist.
	Namespace      *unstructured.Unstructured
	OperatorGroups []Live[operatorsv1.OperatorGroup]
	CatalogSources []Live[operatorsv1alpha1.CatalogSource]
	Subscriptions  []Live[operatorsv1alpha1.Subscription]
	InstallPlans   []operatorsv1alpha1.InstallPlan
	CSVs           []operatorsv1alpha1.ClusterServiceVersion
	Deployments    []appsv1.Deployment
	// OtherCSVs are the names of the ClusterServiceVersions in other namespaces. They are read only if the operator
	// is to run for all namespaces.
	OtherCSVs []types.NamespacedName

	Answers
}

// Live is an object as the API server has it, and its decoded form.
type Live[T any] struct {
	Raw     *unstructured.Unstructured
	Decoded T
}

// Answers is the data that was read because a plan has actions to Read it.
type Answers struct {
	// Exists says, for objects that the caches did not have, whether the API server has them. InstallPlans and
	// ClusterServiceVersions that the API server has are also added to Observed.
	Exists map[Reference]bool
	// Pods are the pods by the name of their Deployment.
	Pods map[string]Pods
	// Occupants are the objects in the namespace; nil if they were not read.
	Occupants []Occupants
	// Inventory is everything that OLM has on the cluster; nil if it was not read.
	Inventory *Inventory
	// Backups are the OperatorBackups of the cluster on the hub. They are read together with the catalog.
	Backups []v1alpha1.OperatorBackup
	Catalog *Catalog
	// Steps are the differences of InstallPlans from what is served, by the UID of the plan.
	Steps map[types.UID]Steps
	// Drift has the differences of the installed objects from the bundle; nil if they were not compared.
	Drift *Drift
	// Stored are the versions that custom resources are stored in; nil if they were not read.
	Stored *rollback.Stored
}

// Reference names an object in the operator's namespace, or a cluster-scoped object.
type Reference struct{ Kind, Name string }

// Pods are the pods of one Deployment, or the error of reading them.
type Pods struct {
	Items []corev1.Pod
	Err   error
}

// Occupants are the objects of one kind in the namespace, at most one page of them, or the error of listing them.
type Occupants struct {
	Kind  string
	Items []metav1.PartialObjectMetadata
	Err   error
}

// Steps says how the steps of an InstallPlan differ from what is served. IsKnown is false if the plan was deleted, or
// continues without the agent.
type Steps struct {
	IsKnown    bool
	Difference string
	IsRepeated bool
}

// Drift has the fields of the installed CSV and its Deployments that differ from the bundle.
type Drift struct{ Fields []DriftField }
