// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/access"
)

// Claim is what a ManagedOperator takes of the clusters that it selects.
type Claim struct {
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

// ClaimOf returns what an operator claims.
func ClaimOf(o *v1alpha1.ManagedOperator) Claim {
	claim := Claim{
		Key:     types.NamespacedName{Namespace: o.Namespace, Name: o.Name},
		Created: o.CreationTimestamp, Selector: o.Spec.ClusterSelector, Package: o.Spec.Package,
		Namespace: TargetNamespace(o.Spec), AllNamespaces: o.Spec.Install.Mode != v1alpha1.InstallOwnNamespace,
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

// compare orders the older claim first, which takes precedence.
func (c Claim) compare(o Claim) int {
	return cmp.Or(c.Created.Compare(o.Created.Time), cmp.Compare(c.Key.Namespace, o.Key.Namespace),
		cmp.Compare(c.Key.Name, o.Key.Name))
}

// conflict tells whether an older ManagedOperator claims what this one does on one of the
// selected clusters.
func (p *pass) conflict() *conditions.Summary {
	own := ClaimOf(p.Operator)
	if t := p.decision.Status.Target; t != nil {
		own.Provides = t.Provides
	}
	var older []Claim
	for _, claim := range p.Claims {
		if claim.compare(own) < 0 && own.Meets(claim) != nil {
			older = append(older, claim)
		}
	}
	slices.SortFunc(older, Claim.compare)
	for _, claim := range older {
		meeting := own.Meets(claim)
		if shared := p.sharedClusters(claim); len(shared) > 0 {
			text := fmt.Sprintf("ManagedOperator %s is older and %s, on %s", claim.Key, meeting.What,
				phrase.First(sorted(shared), maxNamed))
			if meeting.Why != "" {
				text += "; " + meeting.Why
			}
			s := stalled(meeting.Reason, text+": "+meeting.Do)
			return &s
		}
	}
	return nil
}

// sharedClusters are the selected clusters that a claim is about: those that its operator
// selects, and that its namespace may install something on.
func (p *pass) sharedClusters(claim Claim) []string {
	selector, err := metav1.LabelSelectorAsSelector(&claim.Selector)
	if err != nil {
		return nil // it selects nothing, which its own status reports
	}
	var names []string
	for name, cluster := range p.selected {
		if selector.Matches(labels.Set(cluster.Labels)) &&
			access.Reaches(p.Access, claim.Key.Namespace, cluster.Labels) {
			names = append(names, name)
		}
	}
	return names
}

// maxProvides is the API's limit.
const maxProvides = 256

// provides names the APIs of a bundle, sorted; at most maxProvides.
func provides(b *catalogs.Bundle) []string {
	var names []string
	for _, api := range b.Provides() {
		names = append(names, api.String())
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), maxProvides)]
}
