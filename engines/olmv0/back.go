// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"cmp"
	"fmt"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/backups"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/crd"
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/bundles/rollback"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/load"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
	"github.com/bellwether-dev/bellwether/untrusted"
)

// consentFor returns what permits an install to go back from a bundle to an older
// version; nil where its admission does not ask for that. The backup that counts is
// the one that was taken before the upgrade from the older version, under whichever
// admission.
func consentFor(install *v1alpha1.OperatorInstall, from string, saved []v1alpha1.OperatorBackup) *rollback.Consent {
	admission := install.Spec.Admission
	if admission.Rollback == nil {
		return nil
	}
	hop := backups.Hop{Operator: install.Spec.Operator, From: admission.Release.Bundle, To: from}
	return &rollback.Consent{Forced: admission.Rollback.Force, BackedUp: backups.Verified(saved, hop) != nil}
}

// isWayBack tells whether a request asks to go back, and its release is older than
// what is installed.
func isWayBack(pkg *catalogs.Package, r request, from catalogs.Installed) bool {
	target, offered := pkg.Bundles[r.Release.Bundle]
	version, known := from.SemVer()
	return r.Consent != nil && offered && known && target.Version.LT(version)
}

// findWayBack returns the route to an older release. OLM goes there in one hop,
// whatever lies between.
func findWayBack(r request) route {
	found := route{path: []string{r.Release.Bundle}, from: r.Installed, present: r.Present}
	if r.CanAdvance {
		found.next, found.back = r.Release.Bundle, true
	}
	return found
}

// wayBack returns how the next bundle is installed over the newer one; nil where it
// is not older.
func (r route) wayBack(stored rollback.Stored) load.Back {
	if !r.back {
		return nil
	}
	return func(older, newer *catalogs.Bundle, passed []*catalogs.Bundle) (*catalogs.Bundle, registryv1.Rollback,
		error) {
		return overNewer(older, newer, passed, stored)
	}
}

// overNewer returns an older bundle as it is installed over a newer one: with those
// definitions of custom resources that have to stay as they are. Such a bundle has
// no image, which would have other definitions.
func overNewer(older, newer *catalogs.Bundle, passed []*catalogs.Bundle, stored rollback.Stored) (*catalogs.Bundle,
	registryv1.Rollback, error) {
	none := registryv1.Rollback{}
	if err := checkHistory(append([]*catalogs.Bundle{older, newer}, passed...)); err != nil {
		return nil, none, err
	}
	from, err := manifestsOf(older)
	if err != nil {
		return nil, none, err
	}
	to, err := manifestsOf(newer)
	if err != nil {
		return nil, none, err
	}
	archive, history := crd.NewArchive(), make([]*bundles.Bundle, 0, len(passed))
	for _, b := range passed {
		between, err := manifestsOf(b)
		if err != nil {
			return nil, none, err
		}
		history = append(history, archive.Reduce(between))
	}
	objects, err := rollback.Manifests(from, to, history, stored)
	if err != nil {
		return nil, none, fmt.Errorf("go back to bundle %q: %w", older.Name, err)
	}
	served := *older
	served.Objects = objects
	if len(rollback.Kept(from, to, history, stored)) > 0 {
		served.Image = ""
	}
	return &served, rollback.Classify(from, to, history, stored), nil
}

// maxHistory bounds the keys and values of all bundles that are compared for a rollback.
const maxHistory = 2 * bundles.MaxValues

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

func manifestsOf(b *catalogs.Bundle) (*bundles.Bundle, error) {
	read, err := bundles.FromManifests(b.Objects, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: the manifests of bundle %q cannot be read, so it is not known what going back "+
			"does to custom resources: %w", catalogs.ErrInvalidPackage, b.Name, err)
	}
	return read, nil
}

// refuseWayBack returns why a rollback must not be carried out; nil where it may.
func refuseWayBack(r request, from catalogs.Installed, way *registryv1.Rollback) *plan.Problem {
	if way == nil {
		return nil
	}
	refusal := rollback.Refusal(*way, cmp.Or(from.Version, from.Name), *r.Consent)
	switch {
	case refusal == "":
		return nil
	case way.Class == registryv1.RollbackNeedsBackup:
		return &plan.Problem{Reason: v1alpha1.ReasonRollbackNeedsBackup, Message: refusal + " Nothing was changed. " +
			"Set spec.rollback.force of the OperatorRollout to go back all the same, or set another version."}
	default:
		return &plan.Problem{Reason: v1alpha1.ReasonRollbackImpossible, Message: fmt.Sprintf("%s Nothing was changed. "+
			"Set a version newer than %s.", refusal, cmp.Or(from.Version, from.Name))}
	}
}
