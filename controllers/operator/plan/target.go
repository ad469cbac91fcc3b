// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/phrase"
)

// retryRead is how long after a failure a package is read again: no watch tells
// when a registry is back.
const retryRead = 30 * time.Second

// resolve finds what the spec comes to in the catalog as it is now.
func (p *pass) resolve() (v1alpha1.Release, *conditions.Summary) {
	if trouble := p.catalogTrouble(); trouble != nil {
		return v1alpha1.Release{}, trouble
	}
	spec := p.Operator.Spec
	bundle, trouble := p.target()
	if trouble != nil {
		p.decision.Status.Target = nil
		return v1alpha1.Release{}, trouble
	}
	source := p.Catalog.Spec.Source
	if p.Catalog.Status.Source != nil {
		source = *p.Catalog.Status.Source
	}
	release := v1alpha1.Release{
		Package: spec.Package, Channel: cmp.Or(spec.Channel, p.Package.DefaultChannel),
		Version: bundle.VersionString(), Bundle: bundle.Name, Install: explicit(spec),
		Catalog: v1alpha1.CatalogPin{Source: source, Digest: p.Catalog.Status.Digest},
	}
	if v := p.Catalog.Spec.Verification; v != nil {
		release.Catalog.PublicKeys = v.PublicKeys
	}
	p.decision.Status.Target = &v1alpha1.TargetVersion{
		Version: release.Version, Bundle: release.Bundle, Channel: release.Channel,
		CatalogDigest: release.Catalog.Digest,
		SLO:           watching(bundle),
	}
	return release, nil
}

// maxSLO bounds what a bundle can put into a status.
const maxSLO = 16 << 10

// watching is what the bundle says of its SLOs, as it says it: who reads it also
// says what is wrong with it.
func watching(b *catalogs.Bundle) *runtime.RawExtension {
	value := b.SLO()
	if len(value) == 0 || len(value) > maxSLO || value[0] != '{' {
		return nil
	}
	return &runtime.RawExtension{Raw: value}
}

// explicit fills the defaults in. Whether the API server did so depends on how
// the object was written, and the release's hash must not.
func explicit(spec v1alpha1.ManagedOperatorSpec) v1alpha1.InstallSettings {
	install := *spec.Install.DeepCopy()
	install.Namespace = TargetNamespace(spec)
	install.Mode = cmp.Or(install.Mode, v1alpha1.InstallAllNamespaces)
	return install
}

// TargetNamespace is the namespace that a ManagedOperator installs into.
func TargetNamespace(spec v1alpha1.ManagedOperatorSpec) string {
	return cmp.Or(spec.Install.Namespace, spec.Package)
}

func (p *pass) catalogTrouble() *conditions.Summary {
	name := p.Operator.Spec.Catalog.Name
	var s conditions.Summary
	switch {
	case p.Catalog == nil:
		s = stalled(v1alpha1.ReasonCatalogNotFound, fmt.Sprintf(
			"there is no OperatorCatalog %s in namespace %s: make it, or correct spec.catalog.name", name,
			p.Operator.Namespace))
	case p.Catalog.Status.Digest == "":
		s = p.catalogNotRead()
	case p.PackageFailure != nil && p.PackageFailure.Reason == v1alpha1.ReasonUnknownPackage:
		p.decision.Status.Target = nil
		s = stalled(p.PackageFailure.Reason,
			p.PackageFailure.Cause+": correct spec.package, or add the package to the catalog")
	case p.PackageFailure != nil:
		p.decision.RecheckAfter = retryRead
		s = stalled(p.PackageFailure.Reason,
			fmt.Sprintf("OperatorCatalog %s at %s cannot be read: %s; it is tried again by itself",
				name, p.Catalog.Status.Digest, p.PackageFailure.Cause))
	case p.Package == nil:
		s = waiting(v1alpha1.ReasonWaiting, "the package is being read")
	default:
		return nil
	}
	return &s
}

func (p *pass) catalogNotRead() conditions.Summary {
	ready := conditions.Get(p.Catalog.Status.Conditions, v1alpha1.ConditionReady)
	if conditions.IsTrue(p.Catalog.Status.Conditions, v1alpha1.ConditionStalled) {
		return stalled(ready.Reason, fmt.Sprintf("OperatorCatalog %s: %s", p.Catalog.Name, ready.Message))
	}
	return waiting(v1alpha1.ReasonWaiting, fmt.Sprintf("OperatorCatalog %s has not been read yet", p.Catalog.Name))
}

func unknown(err error) *conditions.Summary {
	s := stalled(v1alpha1.ReasonCatalogInvalid, err.Error())
	switch {
	case errors.Is(err, catalogs.ErrNoChannel):
		s = stalled(v1alpha1.ReasonUnknownChannel, err.Error()+": correct spec.channel, or publish the channel")
	case errors.Is(err, catalogs.ErrNoVersion):
		s = stalled(v1alpha1.ReasonUnknownVersion, err.Error()+": correct spec.version, or publish the version")
	}
	return &s
}

// conflict tells whether an older ManagedOperator installs into the same
// namespace on one of the selected clusters.
func (p *pass) conflict() *conditions.Summary {
	for _, claim := range slices.SortedFunc(slices.Values(p.Claims), Claim.compare) {
		if claim.compare(p.claim()) >= 0 {
			return nil
		}
		if shared := p.shared(claim); len(shared) > 0 {
			s := stalled(v1alpha1.ReasonNamespaceConflict, fmt.Sprintf(
				"ManagedOperator %s is older and installs into namespace %s as well, on %s: change "+
					"spec.install.namespace or spec.clusterSelector of one of the two",
				claim.Key, TargetNamespace(p.Operator.Spec), phrase.First(sorted(shared), maxNamed)))
			return &s
		}
	}
	return nil
}

func (p *pass) claim() Claim {
	o := p.Operator
	claim := Claim{Created: o.CreationTimestamp}
	claim.Key.Namespace, claim.Key.Name = o.Namespace, o.Name
	return claim
}

// compare puts the older claim first; it is the one that stands.
func (c Claim) compare(o Claim) int {
	return cmp.Or(c.Created.Compare(o.Created.Time), cmp.Compare(c.Key.Namespace, o.Key.Namespace),
		cmp.Compare(c.Key.Name, o.Key.Name))
}

func (p *pass) shared(claim Claim) []string {
	selector, err := metav1.LabelSelectorAsSelector(&claim.Selector)
	if err != nil {
		return nil // it selects nothing, and says so itself
	}
	var names []string
	for name, cluster := range p.selected {
		if selector.Matches(labels.Set(cluster.Labels)) {
			names = append(names, name)
		}
	}
	return names
}

func (p *pass) noClusters() string {
	selector := p.selector.String()
	if len(p.Clusters) == 0 {
		return "the fleet has no clusters yet: make a FleetCluster"
	}
	return fmt.Sprintf("spec.clusterSelector (%s) matches none of the fleet's %d clusters, so nothing is installed "+
		"and nothing is removed: correct it, or label clusters",
		selector, len(p.Clusters))
}
