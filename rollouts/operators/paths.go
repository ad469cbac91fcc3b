// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// pathReport has the clusters without an upgrade path to the target.
type pathReport struct {
	clusters []string
	// origins are the versions that these clusters run, without duplicates.
	origins []string
	cause   string
	// withPath is the number of clusters that must be changed and have a path.
	withPath  int
	downgrade bool
	// allBlocked is true if all origins are blocked versions.
	allBlocked bool
}

// findPaths searches an upgrade path to the release for each selected cluster that does not have the release, and
// returns the clusters without a path. The cause is the error of one of these clusters.
func (p *pass) findPaths(release v1alpha1.Release) pathReport {
	var report pathReport
	hash := release.Hash()
	verdicts := map[catalogs.Installed]error{}
	for name := range p.selected {
		install, found := p.installByCluster[name]
		if found && install.SucceededHash == hash {
			continue
		}
		// A cluster without an install has the zero Installed: the path of a first installation.
		err, isJudged := verdicts[install.Installed]
		if !isJudged {
			_, err = p.offered.PathFrom(release.Channel, install.Installed, release.Bundle)
			verdicts[install.Installed] = err
		}
		if err == nil {
			report.withPath++
			continue
		}
		report.clusters = append(report.clusters, name)
	}
	for installed, err := range verdicts {
		if err == nil {
			continue
		}
		report.origins = append(report.origins, formatVersion(installed))
		report.downgrade = report.downgrade || isHigher(installed.Version, release.Version)
		if report.cause == "" || err.Error() < report.cause { // the choice must not depend on the map's order
			report.cause = err.Error()
		}
	}
	slices.Sort(report.origins)
	report.allBlocked = p.areAllBlocked(report.origins)
	return report
}

// formatVersion returns the installed version, or the bundle's name if the version is not known.
func formatVersion(i catalogs.Installed) string {
	if i.Version != "" {
		return i.Version
	}
	return i.Name
}

// isHigher reports whether version a is higher than version b. It returns false if one of them is not valid.
func isHigher(a, b string) bool {
	x, errX := semver.ParseTolerant(a)
	y, errY := semver.ParseTolerant(b)
	return errX == nil && errY == nil && x.GT(y)
}

// checkPaths returns a problem if clusters need an upgrade path and none of them has one. If some have a path, the
// rollout goes ahead and withoutPath has the other clusters.
func (p *pass) checkPaths(release v1alpha1.Release) *conditions.Summary {
	report := p.findPaths(release)
	if len(report.clusters) == 0 || report.withPath > 0 {
		p.withoutPath = report
		return nil
	}
	reason := v1alpha1.ReasonNoUpgradePath
	if report.allBlocked {
		reason = v1alpha1.ReasonVersionBlocked
	}
	s := newStalled(reason, report.explain(release))
	return &s
}

// explain lists the clusters without a path, and says what a person can do.
func (b pathReport) explain(release v1alpha1.Release) string {
	var text strings.Builder
	fmt.Fprintf(&text, "no upgrade path to %s in channel %q for %s: %s (from %s); %s",
		release.Version, release.Channel, phrase.Part(len(b.clusters), len(b.clusters)+b.withPath, "cluster"),
		phrase.First(sortNames(b.clusters), maxNamed),
		phrase.First(sortNames(b.origins), maxNamed), b.cause)
	switch {
	case b.allBlocked && b.downgrade:
		text.WriteString("; the versions that they run are blocked, and so are all newer ones: publish a newer " +
			"version, " + "or roll back by hand as status.packages of the OperatorCatalog describes")
	case b.downgrade:
		text.WriteString("; this is a downgrade, and OLM only upgrades: set spec.version to the version that runs, " +
			"or " + "to a newer one")
	default:
		text.WriteString("; choose a version or channel with an upgrade path from the installed version, or " +
			"publish " + "a catalog with such an upgrade")
	}
	return text.String()
}

// hasNewPath reports whether the catalog has changed since the newest rollout began and now has an upgrade path for a
// cluster that had no path.
func (p *pass) hasNewPath(release v1alpha1.Release) bool {
	if p.newest.Spec.Release.Catalog.Digest == release.Catalog.Digest {
		return false
	}
	for name := range p.selected {
		install, found := p.installByCluster[name]
		hasNoPath := install.StalledReason == v1alpha1.ReasonNoUpgradePath ||
			install.StalledReason == v1alpha1.ReasonVersionBlocked
		if !found || !hasNoPath {
			continue
		}
		if _, err := p.offered.PathFrom(release.Channel, install.Installed, release.Bundle); err == nil {
			return true
		}
	}
	return false
}

// maxNamed is the maximum number of names in a message.
const maxNamed = 5

// sortNames returns a sorted copy of the names.
func sortNames(names []string) []string { return slices.Sorted(slices.Values(names)) }
