// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"time"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// CatalogInput is what the explanation of a catalog is made of.
type CatalogInput struct {
	Now     time.Time
	Catalog *v1alpha1.OperatorCatalog
	Program string
}

// Catalog explains an OperatorCatalog.
func Catalog(in CatalogInput) Explanation {
	c := in.Catalog
	names := remedy.Names{Catalog: c.Name, HubNamespace: c.Namespace, Program: in.Program}
	chain := []Link{catalogLink(c)}
	for _, b := range c.Status.BlockedVersions {
		chain = append(chain, blockLink(c, b))
	}
	return conclude(Subject{Kind: "OperatorCatalog", Namespace: c.Namespace, Name: c.Name}, chain, names, fmt.Sprintf(
		"%d packages at %s are in use, and no cluster runs a blocked version.", c.Status.PackageCount, c.Status.Digest))
}

func reportedByCatalog(c *v1alpha1.OperatorCatalog) reported {
	return reported{object: "OperatorCatalog " + c.Namespace + "/" + c.Name, generation: c.Generation,
		observed: c.Status.ObservedGeneration, conditions: c.Status.Conditions, by: remedy.Hub}
}

func catalogLink(c *v1alpha1.OperatorCatalog) Link {
	r := reportedByCatalog(c)
	l := r.summary(fmt.Sprintf("catalog %s is in use at %s", c.Name, c.Status.Digest),
		"the hub has read the catalog")
	if l.State == Failed && c.Status.Digest != "" {
		l.State = Degraded // the one before stays in use
		l.stale = append(l.stale, Stale{What: "the catalog in use, " + c.Status.Digest, Since: l.Since,
			Why: "it may be older than what is published (" + l.Reason + ")"})
	}
	return l
}

func blockLink(c *v1alpha1.OperatorCatalog, b v1alpha1.BlockedVersion) Link {
	l := Link{Text: fmt.Sprintf("%s %s is blocked and runs on %s: %s", b.Package, b.Version,
		phrase.Count(b.Clusters, "cluster"), phrase.OneLine(b.Reason)),
		Evidence: []Evidence{{Object: reportedByCatalog(c).object,
			Field:    "status.blockedVersions[" + b.Package + " " + b.Version + "]",
			Observed: phrase.OneLine(b.Reason)}}}
	if b.Clusters > 0 {
		l.State, l.Reason = Degraded, v1alpha1.ReasonVersionBlocked
		if b.Proposal != "" {
			l.remedies = []remedy.Action{{Text: "The catalog proposes: " + sentence(b.Proposal)}}
		}
	}
	return l
}

// catalogOfInstall is the catalog as far as it concerns one cluster: whether the
// hub can read it. The block of the installed version has a link of its own.
func catalogOfInstall(in InstallInput) Link {
	l := catalogLink(in.Catalog)
	l.about = aboutIntention
	if conditions.IsTrue(in.Catalog.Status.Conditions, v1alpha1.ConditionReady) {
		l.Text = "catalog " + in.Catalog.Name + " can be read"
	}
	return l
}
