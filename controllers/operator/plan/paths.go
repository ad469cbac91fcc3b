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

// blocked are the clusters that the channel does not lead to the target.
type blocked struct {
	clusters []string
	// origins are the versions they run, each once.
	origins []string
	cause   string
	// others is how many clusters are to be changed and can be.
	others    int
	downgrade bool
	// stuck says that all of the origins are blocked versions.
	stuck bool
}

// paths looks for a way to the release from what each cluster runs. Clusters
// that run the release already need none.
func (p *pass) paths(release v1alpha1.Release) blocked {
	var b blocked
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
			b.others++
			continue
		}
		b.clusters = append(b.clusters, name)
	}
	for installed, err := range verdicts {
		if err == nil {
			continue
		}
		b.origins = append(b.origins, shown(installed))
		b.downgrade = b.downgrade || higher(installed.Version, release.Version)
		if b.cause == "" || err.Error() < b.cause { // the same one each time, whatever the map's order
			b.cause = err.Error()
		}
	}
	slices.Sort(b.origins)
	b.stuck = p.stuckOnBlocked(b.origins)
	return b
}

func shown(i catalogs.Installed) string {
	if i.Version != "" {
		return i.Version
	}
	return i.Name
}

func higher(a, b string) bool {
	x, errX := semver.ParseTolerant(a)
	y, errY := semver.ParseTolerant(b)
	return errX == nil && errY == nil && x.GT(y)
}

// noPath stops a change that no cluster could follow. One that some clusters
// can follow goes ahead.
func (p *pass) noPath(release v1alpha1.Release) *conditions.Summary {
	b := p.paths(release)
	if len(b.clusters) == 0 || b.others > 0 {
		p.pathless = b
		return nil
	}
	reason := v1alpha1.ReasonNoUpgradePath
	if b.stuck {
		reason = v1alpha1.ReasonVersionBlocked
	}
	s := stalled(reason, b.text(release))
	return &s
}

func (b blocked) text(release v1alpha1.Release) string {
	var text strings.Builder
	fmt.Fprintf(&text, "no upgrade path to %s in channel %q for %d of %d clusters: %s (from %s); %s",
		release.Version, release.Channel, len(b.clusters), len(b.clusters)+b.others,
		phrase.First(sorted(b.clusters), maxNamed),
		phrase.First(sorted(b.origins), maxNamed), b.cause)
	switch {
	case b.stuck && b.downgrade:
		text.WriteString("; what they run is blocked and nothing newer is good: publish a newer version, or go back " +
			"by hand; status.packages of the OperatorCatalog says what that takes")
	case b.downgrade:
		text.WriteString("; this is a downgrade, and OLM only goes along a channel's upgrades: ask for the version " +
			"that runs, or for a later one")
	default:
		text.WriteString("; choose a version or channel that leads on from what runs, or publish a catalog with such " +
			"an edge")
	}
	return text.String()
}

// retryPath tells whether the catalog has been given the edge that a cluster of
// the newest rollout was missing.
func (p *pass) retryPath(release v1alpha1.Release) bool {
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
