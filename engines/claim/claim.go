// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package claim tells which operators OLM cannot run together on one cluster. It is pure. The hub asks it about two
// ManagedOperators, and whoever judges what a cluster runs asks it about what was found there.
package claim

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Claim is what an operator takes of the clusters that it is on.
type Claim struct {
	// Key names the ManagedOperator.
	Key      types.NamespacedName
	Created  metav1.Time
	Selector metav1.LabelSelector
	Package  string
	// Namespace that it installs into.
	Namespace string
	// AllNamespaces tells whether it watches all namespaces.
	AllNamespaces bool
	// Provides are the APIs of its version, sorted; none until its catalog was read.
	Provides []string
}

// Of returns what a ManagedOperator claims of the clusters that it selects.
func Of(o *v1alpha1.ManagedOperator) Claim {
	claim := Claim{
		Key:     types.NamespacedName{Namespace: o.Namespace, Name: o.Name},
		Created: o.CreationTimestamp, Selector: o.Spec.ClusterSelector, Package: o.Spec.Package,
		Namespace: Namespace(o.Spec), AllNamespaces: o.Spec.Install.Mode != v1alpha1.InstallOwnNamespace,
	}
	if o.Status.Target != nil {
		claim.Provides = o.Status.Target.Provides
	}
	return claim
}

// Meeting is why two operators cannot both run on one cluster.
type Meeting struct {
	// Reason of the condition.
	Reason string
	// What the other one does as well, and why OLM cannot have both; empty where that is plain.
	What, Why string
	// Do is the change that parts them.
	Do string
}

// Meets tells whether OLM cannot run both on one cluster; nil if it can. It installs one operator
// into a namespace, and none whose APIs another one provides in a namespace that both watch: the
// second one fails with InterOperatorGroupOwnerConflict (olm.md, fact 14).
func (c Claim) Meets(o Claim) *Meeting {
	const apart = "install both with spec.install.mode OwnNamespace, or let no cluster be selected by both"
	const second = "OLM fails the second operator that provides an API where one of the two watches all namespaces"
	if c.Namespace == o.Namespace {
		return &Meeting{v1alpha1.ReasonNamespaceConflict, "installs into namespace " + c.Namespace + " as well", "",
			"change spec.install.namespace or spec.clusterSelector of one of the two"}
	}
	if !c.AllNamespaces && !o.AllNamespaces {
		return nil
	}
	if c.Package == o.Package {
		return &Meeting{v1alpha1.ReasonInstalledElsewhere, fmt.Sprintf("installs package %s into namespace %s",
			c.Package, o.Namespace), second, apart}
	}
	for _, api := range c.Provides {
		if _, both := slices.BinarySearch(o.Provides, api); both {
			return &Meeting{v1alpha1.ReasonInstalledElsewhere, "provides " + api + " as well", second, apart}
		}
	}
	return nil
}

// Compare orders the older claim first, which takes precedence.
func (c Claim) Compare(o Claim) int {
	return cmp.Or(c.Created.Compare(o.Created.Time), cmp.Compare(c.Key.Namespace, o.Key.Namespace),
		cmp.Compare(c.Key.Name, o.Key.Name))
}

// Namespace is the one that a ManagedOperator installs into.
func Namespace(spec v1alpha1.ManagedOperatorSpec) string {
	return cmp.Or(spec.Install.Namespace, spec.Package)
}
