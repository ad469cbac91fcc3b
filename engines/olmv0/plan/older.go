// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/backups"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/crd"
	"github.com/bellwether-dev/bellwether/bundles/rollback"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/internal/untrusted"
)

// newConsent returns what permits an install to go back from bundle from to an older version: a person forces the
// rollback, or there is a backup. It returns nil if the admission is not for a rollback. A backup counts only if it was
// taken before the upgrade from the older version to from; its admission does not matter.
func newConsent(install *v1alpha1.OperatorInstall, from string, saved []v1alpha1.OperatorBackup) *rollback.Consent {
	admission := install.Spec.Admission
	if admission.Rollback == nil {
		return nil
	}
	hop := backups.Hop{Operator: install.Spec.Operator, From: admission.Release.Bundle, To: from}
	return &rollback.Consent{Forced: admission.Rollback.Force, BackedUp: backups.FindVerified(saved, hop) != nil}
}

// isRollbackRequest reports whether a request is for a rollback, and its release is older than bundle from. It reports
// false if the catalog lacks the release or the version of from is not known.
func isRollbackRequest(pkg *catalogs.Package, r Request, from catalogs.Installed) bool {
	target, isOffered := pkg.Bundles[r.Release.Bundle]
	version, isKnown := from.SemVer()
	return r.Consent != nil && isOffered && isKnown && target.Version.LT(version)
}

// newRollbackRoute returns the route to an older release. OLM goes to that release in one hop and installs no version
// between. The release is offered now only if the request may advance.
func newRollbackRoute(r Request) Route {
	found := Route{Path: []string{r.Release.Bundle}, From: r.Installed, Present: r.Present}
	if r.CanAdvance {
		found.Next, found.IsRollback = r.Release.Bundle, true
	}
	return found
}

// NewRollbackBuilder returns a function that builds the next bundle for a rollback; nil if Next is not older than From.
// Its parameter passed has the bundles between older and newer. stored are the versions that objects of the cluster may
// be stored in.
func (r Route) NewRollbackBuilder(stored rollback.Stored) func(older, newer *catalogs.Bundle,
	passed []*catalogs.Bundle) (*catalogs.Bundle, bundles.Rollback, error) {
	if !r.IsRollback {
		return nil
	}
	return func(older, newer *catalogs.Bundle, passed []*catalogs.Bundle) (*catalogs.Bundle, bundles.Rollback,
		error) {
		return buildRollbackBundle(older, newer, passed, stored)
	}
}

// buildRollbackBundle returns an older bundle in the form in which it is installed over a newer bundle, and what the
// rollback needs. The bundle keeps the newer CustomResourceDefinitions that must not change. A bundle with such
// definitions has no image, because the image would have other definitions.
func buildRollbackBundle(older, newer *catalogs.Bundle, passed []*catalogs.Bundle, stored rollback.Stored) (
	*catalogs.Bundle, bundles.Rollback, error) {
	none := bundles.Rollback{}
	if err := checkHistory(append([]*catalogs.Bundle{older, newer}, passed...)); err != nil {
		return nil, none, err
	}
	olderManifests, err := readManifests(older)
	if err != nil {
		return nil, none, err
	}
	newerManifests, err := readManifests(newer)
	if err != nil {
		return nil, none, err
	}
	archive, manifests := crd.NewArchive(), make([]*bundles.Bundle, 0, len(passed))
	for _, b := range passed {
		between, err := readManifests(b)
		if err != nil {
			return nil, none, err
		}
		manifests = append(manifests, archive.Reduce(between))
	}
	objects, err := rollback.Manifests(olderManifests, newerManifests, manifests, stored)
	if err != nil {
		return nil, none, fmt.Errorf("go back to bundle %q: %w", older.Name, err)
	}
	served := *older
	served.Objects = objects
	if len(rollback.ListKeptDefinitions(olderManifests, newerManifests, manifests, stored)) > 0 {
		served.Image = ""
	}
	return &served, rollback.Classify(olderManifests, newerManifests, manifests, stored), nil
}

// maxHistory limits the number of keys and values of all bundles that are compared for a rollback.
const maxHistory = 2 * bundles.MaxValues

// checkHistory returns an error if the manifests of the bundles are too large to be compared. The list begins with the
// older and the newer bundle.
func checkHistory(all []*catalogs.Bundle) error {
	values := 0
	for _, b := range all {
		for _, o := range b.Objects {
			values += untrusted.Values(o)
		}
	}
	if values > maxHistory {
		return fmt.Errorf("%w: the manifests of the %d bundles from %q to %q have more than %d keys and values, which "+
			"is too much to compare: go back in several steps", catalogs.ErrInvalidPackage, len(all), all[1].Name,
			all[0].Name, maxHistory)
	}
	return nil
}

// readManifests decodes the manifests of a bundle.
func readManifests(b *catalogs.Bundle) (*bundles.Bundle, error) {
	read, err := bundles.FromManifests(b.Objects, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: the manifests of bundle %q cannot be read, so it is not known what going back "+
			"does to custom resources: %w", catalogs.ErrInvalidPackage, b.Name, err)
	}
	return read, nil
}

// RefuseRollback returns why a rollback must not be carried out; nil if it may be carried out. way is what the rollback
// needs; nil if the next hop is not a rollback.
func RefuseRollback(r Request, from catalogs.Installed, way *bundles.Rollback) *Problem {
	if way == nil {
		return nil
	}
	refusal := rollback.FormatRefusal(*way, cmp.Or(from.Version, from.Name), *r.Consent)
	switch {
	case refusal == "":
		return nil
	case way.Class == bundles.RollbackNeedsBackup:
		return &Problem{Reason: v1alpha1.ReasonRollbackNeedsBackup, Message: refusal + " Nothing was changed. " +
			"Set spec.rollback.force of the OperatorRollout to go back all the same, or set another version."}
	default:
		return &Problem{Reason: v1alpha1.ReasonRollbackImpossible, Message: fmt.Sprintf("%s Nothing was changed. "+
			"Set a version newer than %s.", refusal, cmp.Or(from.Version, from.Name))}
	}
}
