// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package pin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// The API's limits of the versions in the status, and a limit of all versions of a catalog together, which keeps the
// object far below the size limit of etcd.
const (
	MaxVersions           = 100
	maxVersionsPerCatalog = 600
	MaxBlocked            = 100
	maxClusterNames       = 20
	maxRollbacks          = 4
)

// recordUsage sets in the status which versions clusters run and which versions are blocked, with the condition about
// blocked versions, and sets d.Events. packages are the packages of the digest in use.
func (d *Decision) recordUsage(in Input, packages map[string]*catalogs.Package) {
	usage := collectUsage(in)
	// Packages that clusters use share the limit of the catalog equally.
	limit := MaxVersions
	if len(usage) > 0 {
		limit = min(MaxVersions, max(1, maxVersionsPerCatalog/len(usage)))
	}
	for i := range d.Status.Packages {
		pkg := &d.Status.Packages[i]
		used, inUse := usage[pkg.Name]
		switch p := packages[pkg.Name]; {
		case !inUse:
			pkg.Versions, pkg.OmittedVersions = nil, 0
		case p != nil:
			previousVersions := listPreviousVersions(in, pkg.Name)
			pkg.Versions, pkg.OmittedVersions = listVersions(p, used, previousVersions, in.Catalog, limit)
		default: // the package could not be read, so its versions stay and only their clusters are counted
			for j := range pkg.Versions {
				pkg.Versions[j].Clusters = int32(len(used.clusters[pkg.Versions[j].Bundle]))
			}
		}
	}
	previousBlocks := in.Catalog.Status.BlockedVersions
	d.Status.BlockedVersions = d.listBlockedVersions(in, packages, usage)
	d.Events = buildBlockEvents(previousBlocks, d.Status.BlockedVersions)
	d.summarizeBlocks(in)
}

// listPreviousVersions returns the package's versions in the previous status, by bundle.
func listPreviousVersions(in Input, pkg string) map[string]v1alpha1.CatalogVersion {
	out := map[string]v1alpha1.CatalogVersion{}
	for _, p := range in.Catalog.Status.Packages {
		if p.Name != pkg {
			continue
		}
		for _, v := range p.Versions {
			out[v.Bundle] = v
		}
	}
	return out
}

// usage records which clusters run which version of a package.
type usage struct {
	// clusters are the sorted clusters by the bundle that they run.
	clusters map[string][]string
	// versions are the versions by bundle, if the agents report them.
	versions map[string]string
	// channels are the channels by cluster.
	channels map[string]string
}

// collectUsage returns the usage of each package.
func collectUsage(in Input) map[string]*usage {
	out := map[string]*usage{}
	for _, u := range in.Users {
		entry := out[u.Package]
		if entry == nil {
			entry = &usage{clusters: map[string][]string{}, versions: map[string]string{},
				channels: map[string]string{}}
			out[u.Package] = entry
		}
		for _, i := range u.Installs {
			name := i.Installed.Name
			if name == "" {
				continue
			}
			entry.clusters[name] = append(entry.clusters[name], i.Cluster)
			entry.versions[name] = cmp.Or(entry.versions[name], i.Installed.Version)
			entry.channels[i.Cluster] = u.Channel
		}
	}
	for _, entry := range out {
		for _, clusters := range entry.clusters {
			slices.Sort(clusters)
		}
	}
	return out
}

// listClusters returns the clusters that run a version, sorted.
func (u *usage) listClusters(version string) []string {
	if u == nil {
		return nil
	}
	var out []string
	for bundle, clusters := range u.clusters {
		if u.versions[bundle] == version {
			out = append(out, clusters...)
		}
	}
	slices.Sort(out)
	return out
}

// listVersions returns the versions that clusters run and the newest other versions, up to a limit, the newest first,
// and the number of omitted versions. previous are the versions in the previous status, by bundle.
// A version that was removed from the catalog keeps its rollbacks, because clusters that run it need them most.
func listVersions(
	p *catalogs.Package, used *usage, previous map[string]v1alpha1.CatalogVersion, c *v1alpha1.OperatorCatalog,
	limit int,
) (kept []v1alpha1.CatalogVersion, omitted int32) {
	blocked := map[string]string{}
	for _, b := range catalogs.BlocksInForce(c, p, p.Name) {
		blocked[b.Version] = b.Reason
	}
	var all []v1alpha1.CatalogVersion
	for _, b := range p.Bundles {
		all = append(all, buildVersion(b, used, blocked))
	}
	for bundle, clusters := range used.clusters {
		if p.Bundles[bundle] != nil {
			continue
		}
		v := used.versions[bundle]
		_, isBlocked := p.Blocks[bundle] // a blocked version can be without a bundle, and is not absent
		all = append(all, v1alpha1.CatalogVersion{
			Bundle: bundle, Version: v, Clusters: int32(len(clusters)), Absent: !isBlocked, Blocked: blocked[v],
			Rollbacks: previous[bundle].Rollbacks,
		})
	}
	slices.SortFunc(all, func(a, b v1alpha1.CatalogVersion) int {
		return cmp.Or(compareBools(b.Clusters > 0, a.Clusters > 0), compareNewestFirst(a, b))
	})
	kept = all[:min(len(all), limit)]
	omitted = int32(len(all) - len(kept))
	slices.SortFunc(kept, compareNewestFirst)
	return kept, omitted
}

// compareNewestFirst orders versions, the newest first.
func compareNewestFirst(a, b v1alpha1.CatalogVersion) int {
	x, _ := catalogs.Installed{Name: a.Bundle, Version: a.Version}.SemVer()
	y, _ := catalogs.Installed{Name: b.Bundle, Version: b.Version}.SemVer()
	return cmp.Or(y.Compare(x), cmp.Compare(a.Bundle, b.Bundle))
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// buildVersion returns a version of the catalog for the status, with texts cut to the limits of the API.
func buildVersion(b *catalogs.Bundle, used *usage, blocked map[string]string) v1alpha1.CatalogVersion {
	out := v1alpha1.CatalogVersion{
		Bundle: b.Name, Version: b.VersionString(), Clusters: int32(len(used.clusters[b.Name])),
		Blocked: blocked[b.VersionString()], Deprecated: phrase.Truncate(b.Deprecation, 512),
	}
	// Invalid support information is ignored here; the preflight check of a rollout reports it.
	if support, err := b.Support(); err == nil {
		out.EndOfSupport = support.EndOfSupport
		if r := support.Kubernetes; r != (bundles.KubernetesRange{}) {
			out.SupportedKubernetes = &v1alpha1.KubernetesRange{Min: r.Min, Max: r.Max}
		}
	}
	rollbacks := b.Rollbacks()
	for _, rollback := range rollbacks[:min(len(rollbacks), maxRollbacks)] {
		out.Rollbacks = append(out.Rollbacks, v1alpha1.CatalogRollback{
			From: phrase.Truncate(rollback.From, 253), Class: phrase.Truncate(string(rollback.Class), 32),
			Reason: phrase.Truncate(rollback.Reason, 256),
		})
	}
	return out
}

// listBlockedVersions returns the blocks in force of the packages that clusters use or that spec.blocks names, at most
// MaxBlocked, the blocks with the most clusters first.
func (d *Decision) listBlockedVersions(in Input, packages map[string]*catalogs.Package,
	used map[string]*usage) []v1alpha1.BlockedVersion {
	fromSpec := map[[2]string]bool{}
	names := map[string]bool{}
	for _, b := range in.Catalog.Spec.Blocks {
		fromSpec[[2]string{b.Package, b.Version}], names[b.Package] = true, true
	}
	for name := range used {
		names[name] = true
	}
	var out []v1alpha1.BlockedVersion
	for name := range names {
		for _, b := range catalogs.BlocksInForce(in.Catalog, packages[name], name) {
			blocked := v1alpha1.BlockedVersion{VersionBlock: b, Origin: v1alpha1.BlockFromCatalog}
			if fromSpec[[2]string{b.Package, b.Version}] {
				blocked.Origin = v1alpha1.BlockFromSpec
				day := parseExpiry(b)
				blocked.Expired = !day.IsZero() && !in.Now.Before(day)
			}
			clusters := used[name].listClusters(b.Version)
			blocked.Clusters = int32(len(clusters))
			blocked.ClusterNames = clusters[:min(len(clusters), maxClusterNames)]
			blocked.Proposal = phrase.Truncate(d.propose(in, packages[name], used[name], b, clusters), 1024)
			out = append(out, blocked)
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.BlockedVersion) int {
		return cmp.Or(cmp.Compare(b.Clusters, a.Clusters), catalogs.CompareBlocks(a.VersionBlock, b.VersionBlock))
	})
	return out[:min(len(out), MaxBlocked)]
}

// parseExpiry returns the start of the day on which a block expires; zero means never.
func parseExpiry(b v1alpha1.VersionBlock) time.Time {
	day, err := time.Parse(time.DateOnly, b.Expires)
	if err != nil {
		return time.Time{}
	}
	return day
}

// propose describes how clusters that run a blocked version can leave it: by an upgrade or a rollback. It is empty if
// the package could not be read. If the clusters follow several channels, the channel of the first cluster decides.
func (d *Decision) propose(in Input, p *catalogs.Package, used *usage, b v1alpha1.VersionBlock,
	clusters []string) string {
	switch {
	case b.Instead != "":
		return "use " + b.Instead + " instead"
	case p == nil:
		return ""
	}
	name, isKnown := findBundle(p, used, b.Version)
	if !isKnown {
		return "the catalog has no such version, and no cluster runs it"
	}
	channel := ""
	if len(clusters) > 0 {
		channel = used.channels[clusters[0]]
	}
	if offered := removeBlocked(in, p); offered != nil {
		if head, err := offered.Head(channel); err == nil {
			path, err := offered.PathFrom(channel, catalogs.Installed{Name: name, Version: b.Version}, head.Name)
			if err == nil && len(path) > 0 {
				return "upgrade to " + head.VersionString()
			}
		}
	}
	return "there is no newer version that is not blocked: publish one" + d.describeRollback(p.Name, name)
}

// findBundle returns the name of the bundle with a version, from the catalog, its blocks, or else the clusters; false
// if none of them has the version. used can be nil.
func findBundle(p *catalogs.Package, used *usage, version string) (name string, isKnown bool) {
	for _, b := range p.Bundles {
		if b.VersionString() == version {
			return b.Name, true
		}
	}
	for name, b := range p.Blocks {
		if b.Version == version {
			return name, true
		}
	}
	if used != nil {
		for bundle, v := range used.versions {
			if v == version {
				return bundle, true
			}
		}
	}
	return "", false
}

// describeRollback describes the easiest rollback from a bundle, as the continuation of a sentence; empty if the status
// has none.
func (d *Decision) describeRollback(pkg, bundle string) string {
	i := slices.IndexFunc(d.Status.Packages, func(p v1alpha1.CatalogPackage) bool { return p.Name == pkg })
	if i < 0 {
		return ""
	}
	j := slices.IndexFunc(d.Status.Packages[i].Versions,
		func(v v1alpha1.CatalogVersion) bool { return v.Bundle == bundle })
	if j < 0 {
		return ""
	}
	rollbacks := d.Status.Packages[i].Versions[j].Rollbacks
	for _, class := range []bundles.RollbackClass{bundles.RollbackInPlace, bundles.RollbackNeedsBackup,
		bundles.RollbackOneWay} {
		for _, rollback := range rollbacks {
			switch {
			case rollback.Class != string(class):
			case class == bundles.RollbackOneWay:
				return "; a rollback is not possible: " + rollback.Reason
			default:
				return fmt.Sprintf(", or roll back to %s (%s): %s", rollback.From, class, rollback.Reason)
			}
		}
	}
	return ""
}

// buildBlockEvents returns an event for each blocked version that clusters run and that no cluster ran according to the
// previous status.
func buildBlockEvents(before, after []v1alpha1.BlockedVersion) []Event {
	wasUsed := map[[2]string]bool{}
	for _, b := range before {
		wasUsed[[2]string{b.Package, b.Version}] = b.Clusters > 0
	}
	var out []Event
	for _, b := range after {
		if b.Clusters > 0 && !wasUsed[[2]string{b.Package, b.Version}] {
			out = append(out, Event{Reason: v1alpha1.ReasonVersionBlocked, Message: describeBlock(b)})
		}
	}
	return out
}

// describeBlock describes the clusters that run a blocked version, the reason of the block and the proposal.
func describeBlock(b v1alpha1.BlockedVersion) string {
	clusters := phrase.Count(b.Clusters, "cluster") + phrase.Word(b.Clusters, " runs", " run")
	text := fmt.Sprintf("%s %s %s, which is blocked (%s): %s", clusters, b.Package, b.Version, b.Reason,
		phrase.First(b.ClusterNames, maxNamed))
	if more := int(b.Clusters) - len(b.ClusterNames); more > 0 { // the status has only some of the names
		text = fmt.Sprintf("%s %s %s, which is blocked (%s), among them %s", clusters, b.Package, b.Version, b.Reason,
			strings.Join(b.ClusterNames[:maxNamed], ", "))
	}
	if b.Proposal != "" {
		text += "; " + b.Proposal
	}
	return text
}

// summarizeBlocks sets the condition about blocked versions that clusters run.
func (d *Decision) summarizeBlocks(in Input) {
	var inUse []string
	for _, b := range d.Status.BlockedVersions {
		if b.Clusters > 0 {
			inUse = append(inUse, describeBlock(b))
		}
	}
	if len(inUse) == 0 {
		meta.RemoveStatusCondition(&d.Status.Conditions, v1alpha1.ConditionBlockedVersionInUse)
		return
	}
	conditions.Set(&d.Status.Conditions, in.Catalog.Generation, v1alpha1.ConditionBlockedVersionInUse, true,
		v1alpha1.ReasonVersionBlocked, strings.Join(phrase.Limit(inUse, maxNamed), ". "))
}
