// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"time"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// CatalogInput has the data for the explanation of a catalog.
type CatalogInput struct {
	Now     time.Time
	Catalog *v1alpha1.OperatorCatalog
	Program string
}

// Catalog explains an OperatorCatalog.
func Catalog(in CatalogInput) Explanation {
	c := in.Catalog
	names := remedy.Names{Catalog: c.Name, HubNamespace: c.Namespace, Program: in.Program}
	chain := []Link{buildCatalogLink(c)}
	for _, b := range c.Status.BlockedVersions {
		chain = append(chain, buildBlockLink(c, b))
	}
	return conclude(Subject{Kind: "OperatorCatalog", Namespace: c.Namespace, Name: c.Name}, chain, names, fmt.Sprintf(
		"%d packages at %s are in use, and no cluster runs a blocked version.", c.Status.PackageCount, c.Status.Digest))
}

// readCatalogStatus returns the status of a catalog.
func readCatalogStatus(c *v1alpha1.OperatorCatalog) objectStatus {
	return objectStatus{object: "OperatorCatalog " + c.Namespace + "/" + c.Name, generation: c.Generation,
		observed: c.Status.ObservedGeneration, conditions: c.Status.Conditions, by: remedy.Hub}
}

// buildCatalogLink says whether the hub can read the catalog. If it cannot, the link is Degraded while an earlier
// catalog is in use.
func buildCatalogLink(c *v1alpha1.OperatorCatalog) Link {
	r := readCatalogStatus(c)
	l := r.summarize(fmt.Sprintf("catalog %s is in use at %s", c.Name, c.Status.Digest),
		"the hub has read the catalog")
	if l.State == Failed && c.Status.Digest != "" {
		l.State = Degraded // the earlier catalog stays in use
		l.stale = append(l.stale, Stale{What: "the catalog in use, " + c.Status.Digest, Since: l.Since,
			Why: "it might be older than what is published (" + l.Reason + ")"})
	}
	return l
}

// buildBlockLink says which blocked version clusters run.
func buildBlockLink(c *v1alpha1.OperatorCatalog, b v1alpha1.BlockedVersion) Link {
	l := Link{Text: fmt.Sprintf("%s %s is blocked and runs on %s: %s", b.Package, b.Version,
		phrase.Count(b.Clusters, "cluster"), phrase.OneLine(b.Reason)),
		Evidence: []Evidence{{Object: readCatalogStatus(c).object,
			Field:    "status.blockedVersions[" + b.Package + " " + b.Version + "]",
			Observed: phrase.OneLine(b.Reason)}}}
	if b.Clusters > 0 {
		l.State, l.Reason = Degraded, v1alpha1.ReasonVersionBlocked
		if b.Proposal != "" {
			l.remedies = []remedy.Action{{Text: "The catalog proposes: " + endSentence(b.Proposal)}}
		}
	}
	return l
}

// buildInstallCatalogLink says whether the hub can read the catalog of an install. A block of the installed version
// has its own link.
func buildInstallCatalogLink(in InstallInput) Link {
	l := buildCatalogLink(in.Catalog)
	l.about = aboutIntention
	if conditions.IsTrue(in.Catalog.Status.Conditions, v1alpha1.ConditionReady) {
		l.Text = "catalog " + in.Catalog.Name + " can be read"
	}
	return l
}
