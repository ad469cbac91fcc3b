// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package engines

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Claim is what an operator uses of the clusters that it is installed on. The hub compares the claims of two
// ManagedOperators, and package adoption those of operators that were found on a cluster.
type Claim struct {
	// Key names the ManagedOperator.
	Key      types.NamespacedName
	Created  metav1.Time
	Selector metav1.LabelSelector
	Package  string
	// Namespace is the namespace that the operator is installed into.
	Namespace string
	// AllNamespaces is set if the operator watches all namespaces.
	AllNamespaces bool
	// Provides are the APIs of the operator's version, sorted; empty until its catalog was read.
	Provides []string
}

// NewClaim returns the claim of a ManagedOperator.
func NewClaim(o *v1alpha1.ManagedOperator) Claim {
	claim := Claim{
		Key:     types.NamespacedName{Namespace: o.Namespace, Name: o.Name},
		Created: o.CreationTimestamp, Selector: o.Spec.ClusterSelector, Package: o.Spec.Package,
		Namespace: InstallNamespace(o.Spec), AllNamespaces: o.Spec.Install.Mode != v1alpha1.InstallOwnNamespace,
	}
	if o.Status.Target != nil {
		claim.Provides = o.Status.Target.Provides
	}
	return claim
}

// ClaimConflict is why two operators cannot both run on one cluster.
type ClaimConflict struct {
	// Reason is the reason for a condition.
	Reason string
	// Overlap is what the other operator does too. Cause is why OLM cannot run both operators; empty if Overlap
	// already says why.
	Overlap, Cause string
	// Advice is the change that resolves the conflict.
	Advice string
}

// FindConflict returns why OLM cannot run two operators on one cluster; nil if it can. Two operators conflict if they
// use the same namespace, or if one of them watches all namespaces and both are of one package or provide the same
// API. OLM does not install an operator whose API another operator provides in a namespace that both watch: the
// second operator fails with InterOperatorGroupOwnerConflict (olm.md, fact 14).
func (c Claim) FindConflict(o Claim) *ClaimConflict {
	const separateAdvice = "install both with spec.install.mode OwnNamespace, or let no cluster be selected by both"
	const reason = "OLM fails the second operator that provides an API where one of the two watches all namespaces"
	if c.Namespace == o.Namespace {
		return &ClaimConflict{Reason: v1alpha1.ReasonNamespaceConflict,
			Overlap: "installs into namespace " + c.Namespace + " as well",
			Advice:  "change spec.install.namespace or spec.clusterSelector of one of the two"}
	}
	if !c.AllNamespaces && !o.AllNamespaces {
		return nil // each operator watches only its own namespace
	}
	if c.Package == o.Package {
		return &ClaimConflict{Reason: v1alpha1.ReasonInstalledElsewhere,
			Overlap: fmt.Sprintf("installs package %s into namespace %s", c.Package, o.Namespace),
			Cause:   reason, Advice: separateAdvice}
	}
	for _, api := range c.Provides {
		if _, isShared := slices.BinarySearch(o.Provides, api); isShared {
			return &ClaimConflict{Reason: v1alpha1.ReasonInstalledElsewhere, Overlap: "provides " + api + " as well",
				Cause: reason, Advice: separateAdvice}
		}
	}
	return nil
}

// Compare orders claims by age, the oldest claim first. The oldest claim takes precedence.
func (c Claim) Compare(o Claim) int {
	return cmp.Or(c.Created.Compare(o.Created.Time), cmp.Compare(c.Key.Namespace, o.Key.Namespace),
		cmp.Compare(c.Key.Name, o.Key.Name))
}

// InstallNamespace returns the namespace that a ManagedOperator installs into.
func InstallNamespace(spec v1alpha1.ManagedOperatorSpec) string {
	return cmp.Or(spec.Install.Namespace, spec.Package)
}
