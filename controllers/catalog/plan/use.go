// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/blocks"
	"github.com/bellwether-dev/bellwether/phrase"
)

// The API's bounds on what is said of versions, and the bound on all versions of
// a catalog together, which keeps the object far below what etcd takes.
const (
	// The API's limits on the versions in the status, and a limit on all
	// versions of a catalog together, which keeps the object far below the size
	// limit of etcd.
	MaxVersions      = 100
	maxVersionsInAll = 600
	MaxBlocked       = 100
	maxClusterNames  = 20
	maxRollbacks     = 4
)

// recordUsage sets which versions clusters run, and which are blocked.
func (d *Decision) recordUsage(in Input, packages map[string]*catalogs.Package) {
	usage := usageOf(in)
	limit := MaxVersions
	if len(usage) > 0 {
		limit = min(MaxVersions, max(1, maxVersionsInAll/len(usage)))
	}
	for i := range d.Status.Packages {
		out := &d.Status.Packages[i]
		used, inUse := usage[out.Name]
		switch p := packages[out.Name]; {
		case !inUse:
			out.Versions, out.OmittedVersions = nil, 0
		case p != nil:
			out.Versions, out.OmittedVersions = usedVersions(p, used, previousVersions(in, out.Name), in.Catalog, limit)
		default: // the package cannot be read now: keep its versions
			for j := range out.Versions {
				out.Versions[j].Clusters = int32(len(used.clusters[out.Versions[j].Bundle]))
			}
		}
	}
	before := in.Catalog.Status.BlockedVersions
	d.Status.BlockedVersions = d.blockedVersions(in, packages, usage)
	d.Events = newlyUsedBlocks(before, d.Status.BlockedVersions)
	d.summarizeBlocks(in)
}

// previousVersions returns the package's versions in the previous status, by
// bundle.
func previousVersions(in Input, pkg string) map[string]v1alpha1.CatalogVersion {
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

// usage says which clusters run which version of a package.
type usage struct {
	// clusters by the bundle that they run, sorted.
	clusters map[string][]string
	// versions by bundle, if the agents report them.
	versions map[string]string
	// channels by cluster.
	channels map[string]string
}

func usageOf(in Input) map[string]*usage {
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

// clustersOn returns the clusters that run a version, sorted.
func (u *usage) clustersOn(version string) []string {
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

// usedVersions returns the versions that clusters run and the newest of the
// others, up to a limit, newest first. A version that was removed from the
// catalog keeps its rollbacks, which are needed most then.
func usedVersions(
	p *catalogs.Package, used *usage, before map[string]v1alpha1.CatalogVersion, c *v1alpha1.OperatorCatalog, limit int,
) (kept []v1alpha1.CatalogVersion, omitted int32) {
	blocked := map[string]string{}
	for _, b := range blocks.InForce(c, p, p.Name) {
		blocked[b.Version] = b.Reason
	}
	var all []v1alpha1.CatalogVersion
	for _, b := range p.Bundles {
		all = append(all, describeVersion(b, used, blocked))
	}
	for bundle, clusters := range used.clusters {
		if p.Bundles[bundle] != nil {
			continue
		}
		v := used.versions[bundle]
		_, kept := p.Blocks[bundle]
		all = append(all, v1alpha1.CatalogVersion{
			Bundle: bundle, Version: v, Clusters: int32(len(clusters)), Absent: !kept, Blocked: blocked[v],
			Rollbacks: before[bundle].Rollbacks,
		})
	}
	slices.SortFunc(all, func(a, b v1alpha1.CatalogVersion) int {
		return cmp.Or(boolCompare(b.Clusters > 0, a.Clusters > 0), compareNewestFirst(a, b))
	})
	kept = all[:min(len(all), limit)]
	omitted = int32(len(all) - len(kept))
	slices.SortFunc(kept, compareNewestFirst)
	return kept, omitted
}

// compareNewestFirst orders the newer version first.
func compareNewestFirst(a, b v1alpha1.CatalogVersion) int {
	x, _ := catalogs.Installed{Name: a.Bundle, Version: a.Version}.SemVer()
	y, _ := catalogs.Installed{Name: b.Bundle, Version: b.Version}.SemVer()
	return cmp.Or(y.Compare(x), cmp.Compare(a.Bundle, b.Bundle))
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

func describeVersion(b *catalogs.Bundle, used *usage, blocked map[string]string) v1alpha1.CatalogVersion {
	out := v1alpha1.CatalogVersion{
		Bundle: b.Name, Version: b.VersionString(), Clusters: int32(len(used.clusters[b.Name])),
		Blocked: blocked[b.VersionString()], Deprecated: phrase.Truncate(b.Deprecation, 512),
	}
	// One that is not valid says nothing; the preflight check of a rollout reports it.
	if support, err := b.Support(); err == nil {
		out.EndOfSupport = support.EndOfSupport
		if r := support.Kubernetes; r != (registryv1.KubernetesRange{}) {
			out.SupportedKubernetes = &v1alpha1.KubernetesRange{Min: r.Min, Max: r.Max}
		}
	}
	ways := b.Rollbacks()
	for _, way := range ways[:min(len(ways), maxRollbacks)] {
		out.Rollbacks = append(out.Rollbacks, v1alpha1.CatalogRollback{
			From: phrase.Truncate(way.From, 253), Class: phrase.Truncate(string(way.Class), 32),
			Reason: phrase.Truncate(way.Reason, 256),
		})
	}
	return out
}

// blockedVersions are all blocks in force, those with the most clusters first.
func (d *Decision) blockedVersions(in Input, packages map[string]*catalogs.Package,
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
		for _, b := range blocks.InForce(in.Catalog, packages[name], name) {
			blocked := v1alpha1.BlockedVersion{VersionBlock: b, Origin: v1alpha1.BlockFromCatalog}
			if fromSpec[[2]string{b.Package, b.Version}] {
				blocked.Origin = v1alpha1.BlockFromSpec
				day := expiry(b)
				blocked.Expired = !day.IsZero() && !in.Now.Before(day)
			}
			clusters := used[name].clustersOn(b.Version)
			blocked.Clusters = int32(len(clusters))
			blocked.ClusterNames = clusters[:min(len(clusters), maxClusterNames)]
			blocked.Proposal = phrase.Truncate(d.propose(in, packages[name], used[name], b, clusters), 1024)
			out = append(out, blocked)
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.BlockedVersion) int {
		return cmp.Or(cmp.Compare(b.Clusters, a.Clusters), blocks.Compare(a.VersionBlock, b.VersionBlock))
	})
	return out[:min(len(out), MaxBlocked)]
}

// expiry returns the start of the day on which a block expires; zero for never.
func expiry(b v1alpha1.VersionBlock) time.Time {
	day, err := time.Parse(time.DateOnly, b.Expires)
	if err != nil {
		return time.Time{}
	}
	return day
}

// propose returns where clusters that run a blocked version can go.
func (d *Decision) propose(in Input, p *catalogs.Package, used *usage, b v1alpha1.VersionBlock,
	clusters []string) string {
	switch {
	case b.Instead != "":
		return "use " + b.Instead + " instead"
	case p == nil:
		return ""
	}
	name, known := findBundle(p, used, b.Version)
	if !known {
		return "the catalog has no such version, and no cluster runs it"
	}
	channel := ""
	if len(clusters) > 0 {
		channel = used.channels[clusters[0]]
	}
	if offered := withoutBlocked(in, p); offered != nil {
		if head, err := offered.Target(channel, ""); err == nil {
			path, err := offered.PathFrom(channel, catalogs.Installed{Name: name, Version: b.Version}, head.Name)
			if err == nil && len(path) > 0 {
				return "upgrade to " + head.VersionString()
			}
		}
	}
	return "there is no newer version that is not blocked: publish one" + d.describeRollback(p.Name, name)
}

func findBundle(p *catalogs.Package, used *usage, version string) (name string, known bool) {
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

// describeRollback describes the easiest rollback from a bundle in the status.
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
	ways := d.Status.Packages[i].Versions[j].Rollbacks
	for _, class := range []registryv1.RollbackClass{registryv1.RollbackInPlace, registryv1.RollbackNeedsBackup,
		registryv1.RollbackOneWay} {
		for _, way := range ways {
			switch {
			case way.Class != string(class):
			case class == registryv1.RollbackOneWay:
				return "; a rollback is not possible: " + way.Reason
			default:
				return fmt.Sprintf(", or roll back to %s (%s): %s", way.From, class, way.Reason)
			}
		}
	}
	return ""
}

// newlyUsedBlocks returns events for blocks that clusters have begun to run.
func newlyUsedBlocks(before, after []v1alpha1.BlockedVersion) []Event {
	used := map[[2]string]bool{}
	for _, b := range before {
		used[[2]string{b.Package, b.Version}] = b.Clusters > 0
	}
	var out []Event
	for _, b := range after {
		if b.Clusters > 0 && !used[[2]string{b.Package, b.Version}] {
			out = append(out, Event{Reason: v1alpha1.ReasonVersionBlocked, Message: describeBlock(b)})
		}
	}
	return out
}

func describeBlock(b v1alpha1.BlockedVersion) string {
	run := phrase.Count(b.Clusters, "cluster") + phrase.Word(b.Clusters, " runs", " run")
	text := fmt.Sprintf("%s %s %s, which is blocked (%s): %s", run, b.Package, b.Version, b.Reason,
		phrase.First(b.ClusterNames, maxNamed))
	if more := int(b.Clusters) - len(b.ClusterNames); more > 0 {
		text = fmt.Sprintf("%s %s %s, which is blocked (%s), among them %s", run, b.Package, b.Version, b.Reason,
			strings.Join(b.ClusterNames[:maxNamed], ", "))
	}
	if b.Proposal != "" {
		text += "; " + b.Proposal
	}
	return text
}

func (d *Decision) summarizeBlocks(in Input) {
	var hit []string
	for _, b := range d.Status.BlockedVersions {
		if b.Clusters > 0 {
			hit = append(hit, describeBlock(b))
		}
	}
	if len(hit) == 0 {
		meta.RemoveStatusCondition(&d.Status.Conditions, v1alpha1.ConditionBlockedVersionInUse)
		return
	}
	conditions.Set(&d.Status.Conditions, in.Catalog.Generation, v1alpha1.ConditionBlockedVersionInUse, true,
		v1alpha1.ReasonVersionBlocked, strings.Join(phrase.Limit(hit, maxNamed), ". "))
}
