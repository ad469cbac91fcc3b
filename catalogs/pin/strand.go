// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package pin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// checkStranding returns a failure if versions that clusters run would lose their path to the head of their channel;
// nil if not. It ignores versions without a path in the catalog in use, and blocked versions, because these wait for
// a successor on purpose.
//
// If no catalog is in use, there is nothing to compare with, and the first catalog is accepted.
func checkStranding(in Input) *Failure {
	if in.Catalog.Status.Digest == "" {
		return nil
	}
	var stranded []string
	for _, u := range in.Users {
		stranded = append(stranded, u.listStranded(in)...)
	}
	if len(stranded) == 0 {
		return nil
	}
	slices.Sort(stranded)
	stranded = slices.Compact(stranded)
	return &Failure{
		Reason: v1alpha1.ReasonWouldStrand,
		Cause:  fmt.Sprintf("%s would strand %s", in.Digest, strings.Join(phrase.Limit(stranded, maxNamed), "; ")),
	}
}

// listStranded describes the versions of a user that would lose their path, with their clusters and the cause. The
// order is random.
func (u User) listStranded(in Input) []string {
	byVersion := map[catalogs.Installed][]string{}
	for _, i := range u.Installs {
		if i.Installed.Name == "" { // the cluster runs no bundle
			continue
		}
		byVersion[i.Installed] = append(byVersion[i.Installed], i.Cluster)
	}
	inUse, candidate := removeBlocked(in, in.InUse[u.Package]), removeBlocked(in, in.Candidate[u.Package])
	isBlocked := map[string]bool{}
	for _, b := range catalogs.BlocksInForce(in.Catalog, in.Candidate[u.Package], u.Package) {
		isBlocked[b.Version] = true
	}
	var out []string
	for installed, clusters := range byVersion {
		cause := findPathProblem(candidate, u, installed)
		switch {
		case cause == "": // the version keeps its path
		case isBlocked[installed.Version]: // the version waits for a successor on purpose
		case inUse != nil && findPathProblem(inUse, u, installed) != "": // it has no path in the catalog in use either
		default:
			slices.Sort(clusters)
			out = append(out, fmt.Sprintf("%s %s on %s (%s)", u.Package, cmp.Or(installed.Version, installed.Name),
				phrase.First(clusters, maxNamed), cause))
		}
	}
	return out
}

// removeBlocked returns a package without its blocked versions, or unchanged if no version would be left.
func removeBlocked(in Input, p *catalogs.Package) *catalogs.Package {
	if p == nil {
		return nil
	}
	offered, err := p.WithBlocked(catalogs.BlocksOf(in.Catalog.Spec.Blocks, p.Name)...)
	if err != nil {
		return p
	}
	return offered
}

// findPathProblem returns why there is no path from an installed version to the head of the channel; empty if there
// is one.
func findPathProblem(p *catalogs.Package, u User, installed catalogs.Installed) string {
	if p == nil {
		return "the package is not in the catalog"
	}
	head, err := p.Head(u.Channel)
	if err == nil {
		_, err = p.PathFrom(u.Channel, installed, head.Name)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
