// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/phrase"
)

// pathReport says which clusters have no upgrade path to the target.
type pathReport struct {
	clusters []string
	// origins are the versions they run, each once.
	origins []string
	cause   string
	// withPath is how many clusters are to be changed and can be.
	withPath  int
	downgrade bool
	// allBlocked says that all of the origins are blocked versions.
	allBlocked bool
}

// paths looks for an upgrade path to the release from what each cluster runs.
// Clusters that run the release need none.
func (p *pass) paths(release v1alpha1.Release) pathReport {
	var b pathReport
	hash := release.Hash()
	verdicts := map[catalogs.Installed]error{}
	for name := range p.selected {
		install, found := p.byName[name]
		if found && install.SucceededHash == hash {
			continue
		}
		err, known := verdicts[install.Installed]
		if !known {
			_, err = p.offered.PathFrom(release.Channel, install.Installed, release.Bundle)
			verdicts[install.Installed] = err
		}
		if err == nil {
			b.withPath++
			continue
		}
		b.clusters = append(b.clusters, name)
	}
	for installed, err := range verdicts {
		if err == nil {
			continue
		}
		b.origins = append(b.origins, versionText(installed))
		b.downgrade = b.downgrade || isHigher(installed.Version, release.Version)
		if b.cause == "" || err.Error() < b.cause { // independent of the map's order
			b.cause = err.Error()
		}
	}
	slices.Sort(b.origins)
	b.allBlocked = p.areAllBlocked(b.origins)
	return b
}

func versionText(i catalogs.Installed) string {
	if i.Version != "" {
		return i.Version
	}
	return i.Name
}

func isHigher(a, b string) bool {
	x, errX := semver.ParseTolerant(a)
	y, errY := semver.ParseTolerant(b)
	return errX == nil && errY == nil && x.GT(y)
}

// noPath returns a problem if no cluster has an upgrade path. If some have one,
// the change goes ahead.
func (p *pass) noPath(release v1alpha1.Release) *conditions.Summary {
	b := p.paths(release)
	if len(b.clusters) == 0 || b.withPath > 0 {
		p.withoutPath = b
		return nil
	}
	reason := v1alpha1.ReasonNoUpgradePath
	if b.allBlocked {
		reason = v1alpha1.ReasonVersionBlocked
	}
	s := stalled(reason, b.text(release))
	return &s
}

func (b pathReport) text(release v1alpha1.Release) string {
	var text strings.Builder
	fmt.Fprintf(&text, "no upgrade path to %s in channel %q for %s: %s (from %s); %s",
		release.Version, release.Channel, phrase.Part(len(b.clusters), len(b.clusters)+b.withPath, "cluster"),
		phrase.First(sorted(b.clusters), maxNamed),
		phrase.First(sorted(b.origins), maxNamed), b.cause)
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

// hasNewPath tells whether the catalog has gained an upgrade path that a
// cluster of the newest rollout was missing.
func (p *pass) hasNewPath(release v1alpha1.Release) bool {
	if p.newest.Spec.Release.Catalog.Digest == release.Catalog.Digest {
		return false
	}
	for name := range p.selected {
		install, found := p.byName[name]
		pathless := install.StalledReason == v1alpha1.ReasonNoUpgradePath ||
			install.StalledReason == v1alpha1.ReasonVersionBlocked
		if !found || !pathless {
			continue
		}
		if _, err := p.offered.PathFrom(release.Channel, install.Installed, release.Bundle); err == nil {
			return true
		}
	}
	return false
}

// maxNamed keeps messages short enough to read.
const maxNamed = 5

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }
