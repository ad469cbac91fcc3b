// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// retryRead is how long after a failure a package is read again. No watch reports that a registry can be
// reached again.
const retryRead = 30 * time.Second

// resolveRelease returns the release that the spec selects from the current catalog, or a problem. It also sets the
// target in the status, or clears it if the version cannot be chosen. While installed operators must be taken over
// first, the release is the release of the take-over.
func (p *pass) resolveRelease() (v1alpha1.Release, *conditions.Summary) {
	if problem := p.checkCatalog(); problem != nil {
		return v1alpha1.Release{}, problem
	}
	spec := p.Operator.Spec
	bundle, reason, problem := p.chooseTarget()
	release := v1alpha1.Release{
		Package: spec.Package, Channel: cmp.Or(spec.Channel, p.Package.DefaultChannel),
		Install: fillInstallDefaults(spec),
		Catalog: p.pinCatalog(), Adopt: spec.Adopt.DeepCopy(),
	}
	p.decision.Status.Target = nil
	if problem == nil {
		p.decision.Status.Target = &v1alpha1.TargetVersion{
			Version: bundle.VersionString(), Bundle: bundle.Name, Channel: release.Channel,
			CatalogDigest: release.Catalog.Digest,
			Reason:        phrase.Truncate(reason, maxTargetReason),
			SLO:           readSLO(bundle),
			Provides:      listProvidedAPIs(bundle),
		}
	}
	switch {
	case p.Operator.Spec.AdoptsFirst(&p.decision.Status):
		return p.buildAdoptionRelease(release, problem)
	case problem != nil:
		return v1alpha1.Release{}, problem
	}
	release.Version, release.Bundle = bundle.VersionString(), bundle.Name
	return release, nil
}

// pinCatalog returns the source and the digest of the current catalog.
func (p *pass) pinCatalog() v1alpha1.CatalogPin {
	pin := v1alpha1.CatalogPin{Source: p.Catalog.Spec.Source, Digest: p.Catalog.Status.Digest}
	if p.Catalog.Status.Source != nil {
		pin.Source = *p.Catalog.Status.Source
	}
	if v := p.Catalog.Spec.Verification; v != nil {
		pin.PublicKeys = v.PublicKeys
	}
	return pin
}

// maxTargetReason is the API's limit for the reasons of a target and of an available version.
const maxTargetReason = 512

// maxSLO is the maximum size of a bundle's SLOs in the status.
const maxSLO = 16 << 10

// readSLO returns the SLOs of a bundle unchanged; the slo controller validates them. It returns nil if there are none,
// if they are too large or if they are not a JSON object.
func readSLO(b *catalogs.Bundle) *runtime.RawExtension {
	value := b.SLO()
	if len(value) == 0 || len(value) > maxSLO || value[0] != '{' {
		return nil
	}
	return &runtime.RawExtension{Raw: value}
}

// fillInstallDefaults returns the install settings with their defaults. The API server does not set the defaults in
// every object, but the hash of the release must be the same with and without them.
func fillInstallDefaults(spec v1alpha1.ManagedOperatorSpec) v1alpha1.InstallSettings {
	install := *spec.Install.InstallSettings.DeepCopy()
	install.Namespace = engines.InstallNamespace(spec)
	install.Mode = cmp.Or(install.Mode, v1alpha1.InstallAllNamespaces)
	return install
}

// checkCatalog returns a problem if the package cannot be read from the catalog. Otherwise it returns nil. If the
// catalog does not have the package, it also clears the target in the status.
func (p *pass) checkCatalog() *conditions.Summary {
	name := p.Operator.Spec.Catalog.Name
	var s conditions.Summary
	switch {
	case p.Catalog == nil:
		s = newStalled(v1alpha1.ReasonCatalogNotFound, fmt.Sprintf(
			"OperatorCatalog %s not found in namespace %s: create it, or correct spec.catalog.name", name,
			p.Operator.Namespace))
	case p.Catalog.Status.Digest == "":
		s = p.explainUnreadCatalog()
	case p.PackageFailure != nil && p.PackageFailure.Reason == v1alpha1.ReasonUnknownPackage:
		p.decision.Status.Target, p.decision.Status.Available = nil, nil
		s = newStalled(p.PackageFailure.Reason,
			p.PackageFailure.Cause+": correct spec.package, or add the package to the catalog")
	case p.PackageFailure != nil:
		p.decision.RecheckAfter = retryRead
		s = newStalled(p.PackageFailure.Reason,
			fmt.Sprintf("OperatorCatalog %s at %s cannot be read: %s; this is retried automatically",
				name, p.Catalog.Status.Digest, p.PackageFailure.Cause))
	case p.Package == nil:
		s = newWaiting(v1alpha1.ReasonWaiting, "the package is being read")
	default:
		return nil
	}
	return &s
}

// explainUnreadCatalog says why the catalog has not been read.
func (p *pass) explainUnreadCatalog() conditions.Summary {
	ready := conditions.Get(p.Catalog.Status.Conditions, v1alpha1.ConditionReady)
	if conditions.IsTrue(p.Catalog.Status.Conditions, v1alpha1.ConditionStalled) {
		return newStalled(ready.Reason, fmt.Sprintf("OperatorCatalog %s: %s", p.Catalog.Name, ready.Message))
	}
	return newWaiting(v1alpha1.ReasonWaiting, fmt.Sprintf("OperatorCatalog %s has not been read yet", p.Catalog.Name))
}

// explainTargetError returns the problem for an error of the choice of a version.
func explainTargetError(err error) *conditions.Summary {
	s := newStalled(v1alpha1.ReasonCatalogInvalid, err.Error())
	switch {
	case errors.Is(err, catalogs.ErrNoChannel):
		s = newStalled(v1alpha1.ReasonUnknownChannel, err.Error()+": correct spec.channel, or publish the channel")
	case errors.Is(err, catalogs.ErrNoVersion):
		s = newStalled(v1alpha1.ReasonUnknownVersion, err.Error()+": correct spec.version, or publish the version")
	}
	return &s
}

// explainNoClusters says why no cluster is selected.
func (p *pass) explainNoClusters() string {
	selector := p.selector.String()
	if len(p.Clusters) == 0 {
		return "the fleet has no clusters yet: create a FleetCluster"
	}
	return fmt.Sprintf("spec.clusterSelector (%s) matches none of the fleet's %d clusters, so nothing is installed "+
		""+"and nothing is removed: correct the selector, or label clusters",
		selector, len(p.Clusters))
}
