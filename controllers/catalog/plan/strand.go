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

// strands tells which versions that clusters run would be left without a way to
// the head of their channel. Those that have none in the catalog in use are no
// worse off, and a blocked one waits for its successor by intention.
//
// Without a catalog in use there is nothing to compare with: the first one is
// taken as it is.
func strands(in Input) *Failure {
	if in.Catalog.Status.Digest == "" {
		return nil
	}
	var bad []string
	for _, u := range in.Users {
		bad = append(bad, u.stranded(in)...)
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

func (u User) stranded(in Input) []string {
	byVersion := map[catalogs.Installed][]string{}
	for _, i := range u.Installs {
		if i.Installed.Name == "" {
			continue
		}
		byVersion[i.Installed] = append(byVersion[i.Installed], i.Cluster)
	}
	before, after := good(in, in.InUse[u.Package]), good(in, in.Candidate[u.Package])
	blocked := map[string]bool{}
	for _, b := range blocks.InForce(in.Catalog, in.Candidate[u.Package], u.Package) {
		blocked[b.Version] = true
	}
	var out []string
	for installed, clusters := range byVersion {
		cause := lost(after, u, installed)
		switch {
		case cause == "", blocked[installed.Version]:
		case before != nil && lost(before, u, installed) != "":
		default:
			slices.Sort(clusters)
			out = append(out, fmt.Sprintf("%s %s on %s (%s)", u.Package, cmp.Or(installed.Version, installed.Name),
				phrase.First(clusters, maxNamed), cause))
		}
	}
	return out
}

// good is a package without its blocked versions; as it is, where that leaves
// nothing.
func good(in Input, p *catalogs.Package) *catalogs.Package {
	if p == nil {
		return nil
	}
	offered, err := p.WithBlocked(blocks.Of(in.Catalog.Spec.Blocks, p.Name)...)
	if err != nil {
		return p
	}
	return offered
}

// lost says why a package does not lead an installed version to the head of the
// channel; empty where it does.
func lost(p *catalogs.Package, u User, installed catalogs.Installed) string {
	if p == nil {
		return "the catalog does not have the package"
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
