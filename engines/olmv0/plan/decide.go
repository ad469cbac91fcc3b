// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines"
)

// pendingGrace is how long the read of a catalog may take before the status reports it.
const pendingGrace = 2 * time.Second

// Catalog is the result of reading a catalog for a plan.
type Catalog struct {
	// IsPending is set while the catalog is being read, since the given time. There is no Offer then.
	IsPending bool
	Since     time.Time
	Offer     Offer
}

// Decide returns the plan for the facts. If facts are missing, the plan is not ready and its actions read them: first
// the state of the cluster, then the catalog, and then the objects that are compared with the catalog.
func (f *Facts) Decide() engines.Plan[Action] {
	if len(f.missingReads) > 0 {
		return engines.Plan[Action]{NotReady: true, Actions: f.missingReads}
	}
	if !f.needsCatalog() {
		return Next(f.Input)
	}
	switch catalog := f.observed.Catalog; {
	case catalog == nil:
		return engines.Plan[Action]{NotReady: true, Actions: []Action{f.newCatalogRead()}}
	case catalog.IsPending && f.Now.Sub(catalog.Since) < pendingGrace:
		return engines.Plan[Action]{NotReady: true} // no actions: the catalog is already being read
	case catalog.IsPending:
		f.Offer = Offer{Pending: formatPending(f.Install.Spec.Admission.Release.Catalog, catalog.Since)}
	default:
		f.Offer = catalog.Offer
		if reads := f.compareWithOffer(); len(reads) > 0 {
			return engines.Plan[Action]{NotReady: true, Actions: reads}
		}
	}
	return Next(f.Input)
}

// needsCatalog reports whether the decision needs the catalog. It does not while nothing can be installed: without
// OLM, with an invalid template, or for an install without an admission or under deletion.
func (in Input) needsCatalog() bool {
	return in.Install.Spec.Admission != nil && in.Install.DeletionTimestamp.IsZero() && in.Cluster.OLM &&
		in.Offer.Problem == nil
}

// newCatalogRead returns the action that reads the admitted catalog. Its value is the purpose, for logs.
func (in Input) newCatalogRead() Action {
	release := in.Install.Spec.Admission.Release
	purpose := "find the upgrade path to " + release.Bundle
	switch csv, isInstalled := in.Cluster.Installed(); {
	case release.AsInstalled:
		purpose = "look for what is to be adopted"
	case isInstalled && csv.Name == release.Bundle:
		purpose = "serve " + release.Bundle + ", which is installed"
	}
	return Action{Verb: Read, Kind: KindCatalog, Name: release.Catalog.Digest, Value: purpose}
}

// isAdoption reports whether a release permits the adoption of an operator that others installed.
func isAdoption(r v1alpha1.Release) bool { return r.Adopt != nil || r.AsInstalled }

// compareWithOffer adds the differences between the cluster and the offer to the facts. It returns the reads that the
// comparison still needs, because the caches do not have the data: the steps of the InstallPlans that the agent may
// make OLM carry out, and the installed objects if the bundle's settings are known.
func (f *Facts) compareWithOffer() []Action {
	for _, csv := range f.observed.OtherCSVs {
		if _, isOfPackage := f.Offer.Versions[csv.Name]; isOfPackage {
			f.Cluster.OtherNamespaces = append(f.Cluster.OtherNamespaces, csv.String())
		}
	}
	var reads []Action
	isServed := f.Offer.ViewHash != "" && f.Offer.Problem == nil && f.Cluster.CatalogSource != nil
	for _, p := range f.Cluster.InstallPlans {
		if _, isRead := f.observed.Steps[p.UID]; isServed && !isRead && p.CanBeStarted() {
			reads = append(reads, Action{Verb: Read, Kind: KindSteps, Name: p.Name, Object: p.Object,
				Value: "compare InstallPlan " + p.Name + " with what is served"})
		}
	}
	csv, _ := f.Cluster.Installed()
	switch {
	case !f.hasExpected():
		// the installed objects have nothing to be compared with
	case f.observed.Drift == nil:
		reads = append(reads, Action{Verb: Read, Kind: KindDrift, Name: csv.Name, Object: csv.Object,
			Value: "compare " + csv.Name + " with its bundle"})
	default:
		f.Cluster.Compared, f.Cluster.Drifted = true, f.observed.Drift.Fields
	}
	return reads
}
