// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/blocks"
	"github.com/bellwether-dev/bellwether/phrase"
)

// wouldStrand returns a failure if versions that clusters run would lose their
// path to the head of their channel. A version without a path in the catalog in
// use is ignored, and so is a blocked one, which waits for its successor on
// purpose.
//
// If no catalog is in use, there is nothing to compare with: the first catalog
// is accepted as it is.
func wouldStrand(in Input) *Failure {
	if in.Catalog.Status.Digest == "" {
		return nil
	}
	var bad []string
	for _, u := range in.Users {
		bad = append(bad, u.strandedVersions(in)...)
	}
	if len(bad) == 0 {
		return nil
	}
	slices.Sort(bad)
	bad = slices.Compact(bad)
	return &Failure{
		Reason: v1alpha1.ReasonWouldStrand,
		Cause:  fmt.Sprintf("%s would strand %s", in.Digest, strings.Join(phrase.Limit(bad, maxNamed), "; ")),
	}
}

func (u User) strandedVersions(in Input) []string {
	byVersion := map[catalogs.Installed][]string{}
	for _, i := range u.Installs {
		if i.Installed.Name == "" {
			continue
		}
		byVersion[i.Installed] = append(byVersion[i.Installed], i.Cluster)
	}
	before, after := withoutBlocked(in, in.InUse[u.Package]), withoutBlocked(in, in.Candidate[u.Package])
	blocked := map[string]bool{}
	for _, b := range blocks.InForce(in.Catalog, in.Candidate[u.Package], u.Package) {
		blocked[b.Version] = true
	}
	var out []string
	for installed, clusters := range byVersion {
		cause := pathProblem(after, u, installed)
		switch {
		case cause == "", blocked[installed.Version]:
		case before != nil && pathProblem(before, u, installed) != "":
		default:
			slices.Sort(clusters)
			out = append(out, fmt.Sprintf("%s %s on %s (%s)", u.Package, cmp.Or(installed.Version, installed.Name),
				phrase.First(clusters, maxNamed), cause))
		}
	}
	return out
}

// withoutBlocked returns a package without its blocked versions, or unchanged
// if nothing would be left.
func withoutBlocked(in Input, p *catalogs.Package) *catalogs.Package {
	if p == nil {
		return nil
	}
	offered, err := p.WithBlocked(blocks.Of(in.Catalog.Spec.Blocks, p.Name)...)
	if err != nil {
		return p
	}
	return offered
}

// pathProblem returns why there is no path from an installed version to the
// head of the channel; empty if there is one.
func pathProblem(p *catalogs.Package, u User, installed catalogs.Installed) string {
	if p == nil {
		return "the package is not in the catalog"
	}
	head, err := p.Target(u.Channel, "")
	if err == nil {
		_, err = p.PathFrom(u.Channel, installed, head.Name)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
