// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/engines/claim"
	"github.com/bellwether-dev/bellwether/phrase"
)

// retryRead is how long after a failure a package is read again. No watch
// reports that a registry is reachable again.
const retryRead = 30 * time.Second

// resolve returns the release that the spec means in the current catalog.
func (p *pass) resolve() (v1alpha1.Release, *conditions.Summary) {
	if problem := p.catalogProblem(); problem != nil {
		return v1alpha1.Release{}, problem
	}
	spec := p.Operator.Spec
	bundle, reason, problem := p.target()
	release := v1alpha1.Release{
		Package: spec.Package, Channel: cmp.Or(spec.Channel, p.Package.DefaultChannel), Install: withDefaults(spec),
		Catalog: p.catalogPin(), Adopt: spec.Adopt.DeepCopy(),
	}
	p.decision.Status.Target = nil
	if problem == nil {
		p.decision.Status.Target = &v1alpha1.TargetVersion{
			Version: bundle.VersionString(), Bundle: bundle.Name, Channel: release.Channel,
			CatalogDigest: release.Catalog.Digest,
			Reason:        phrase.Truncate(reason, maxTargetReason),
			SLO:           sloOf(bundle),
			Provides:      provides(bundle),
		}
	}
	switch {
	case p.Operator.Spec.AdoptsFirst(&p.decision.Status):
		return p.asInstalled(release, problem)
	case problem != nil:
		return v1alpha1.Release{}, problem
	}
	release.Version, release.Bundle = bundle.VersionString(), bundle.Name
	return release, nil
}

// catalogPin is the catalog as it is now.
func (p *pass) catalogPin() v1alpha1.CatalogPin {
	pin := v1alpha1.CatalogPin{Source: p.Catalog.Spec.Source, Digest: p.Catalog.Status.Digest}
	if p.Catalog.Status.Source != nil {
		pin.Source = *p.Catalog.Status.Source
	}
	if v := p.Catalog.Spec.Verification; v != nil {
		pin.PublicKeys = v.PublicKeys
	}
	return pin
}

// maxTargetReason is the API's bound on the reasons of a target and of an available version.
const maxTargetReason = 512

// maxSLO limits the size of a bundle's SLOs in the status.
const maxSLO = 16 << 10

// sloOf returns the SLOs of a bundle unchanged; the slo controller validates
// them.
func sloOf(b *catalogs.Bundle) *runtime.RawExtension {
	value := b.SLO()
	if len(value) == 0 || len(value) > maxSLO || value[0] != '{' {
		return nil
	}
	return &runtime.RawExtension{Raw: value}
}

// withDefaults returns the install settings with defaults. Whether the API
// server has set them depends on how the object was written, and the release's
// hash must not.
func withDefaults(spec v1alpha1.ManagedOperatorSpec) v1alpha1.InstallSettings {
	install := *spec.Install.InstallSettings.DeepCopy()
	install.Namespace = claim.Namespace(spec)
	install.Mode = cmp.Or(install.Mode, v1alpha1.InstallAllNamespaces)
	return install
}

func (p *pass) catalogProblem() *conditions.Summary {
	name := p.Operator.Spec.Catalog.Name
	var s conditions.Summary
	switch {
	case p.Catalog == nil:
		s = stalled(v1alpha1.ReasonCatalogNotFound, fmt.Sprintf(
			"OperatorCatalog %s not found in namespace %s: create it, or correct spec.catalog.name", name,
			p.Operator.Namespace))
	case p.Catalog.Status.Digest == "":
		s = p.catalogNotRead()
	case p.PackageFailure != nil && p.PackageFailure.Reason == v1alpha1.ReasonUnknownPackage:
		p.decision.Status.Target, p.decision.Status.Available = nil, nil
		s = stalled(p.PackageFailure.Reason,
			p.PackageFailure.Cause+": correct spec.package, or add the package to the catalog")
	case p.PackageFailure != nil:
		p.decision.RecheckAfter = retryRead
		s = stalled(p.PackageFailure.Reason,
			fmt.Sprintf("OperatorCatalog %s at %s cannot be read: %s; this is retried automatically",
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

func targetProblem(err error) *conditions.Summary {
	s := stalled(v1alpha1.ReasonCatalogInvalid, err.Error())
	switch {
	case errors.Is(err, catalogs.ErrNoChannel):
		s = stalled(v1alpha1.ReasonUnknownChannel, err.Error()+": correct spec.channel, or publish the channel")
	case errors.Is(err, catalogs.ErrNoVersion):
		s = stalled(v1alpha1.ReasonUnknownVersion, err.Error()+": correct spec.version, or publish the version")
	}
	return &s
}

func (p *pass) noClusters() string {
	selector := p.selector.String()
	if len(p.Clusters) == 0 {
		return "the fleet has no clusters yet: create a FleetCluster"
	}
	return fmt.Sprintf("spec.clusterSelector (%s) matches none of the fleet's %d clusters, so nothing is installed "+
		""+"and nothing is removed: correct the selector, or label clusters",
		selector, len(p.Clusters))
}
