// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/phrase"
)

// Package is a package of a catalog.
type Package struct {
	// Catalog is the OperatorCatalog, as namespace/name; that of an admission is known by its image or directory.
	Catalog string
	// Admitted says that it is the package of an admission, and that no other one is known.
	Admitted bool
	Name     string
	// Channels in name order, with the version at the head of each.
	Channels []Channel
	// Bundles are versions of the package; Complete says that these are all.
	Bundles  []Bundle
	Complete bool
}

// Channel is a channel of a package.
type Channel struct{ Name, Head string }

// Bundle is one version of a package.
type Bundle struct {
	Name, Version string
	// Blocked is why nobody may be brought to it; empty where it is not blocked.
	Blocked string
}

// SummaryOf returns the packages of an OperatorCatalog as its status has them. The versions are complete only for
// packages that a ManagedOperator uses.
func SummaryOf(c *v1alpha1.OperatorCatalog) []Package {
	var out []Package
	for _, p := range c.Status.Packages {
		one := Package{Catalog: c.Namespace + "/" + c.Name, Name: p.Name,
			Complete: len(p.Versions) > 0 && p.OmittedVersions == 0}
		for _, channel := range p.Channels {
			one.Channels = append(one.Channels, Channel{channel.Name, channel.Head})
		}
		for _, v := range p.Versions {
			if !v.Absent || v.Blocked != "" {
				one.Bundles = append(one.Bundles, Bundle{v.Bundle, v.Version, v.Blocked})
			}
		}
		out = append(out, one)
	}
	return out
}

// catalogText names the catalog in messages.
func (p Package) catalogText() string {
	if p.Admitted {
		return "the catalog " + p.Catalog
	}
	return "OperatorCatalog " + p.Catalog
}

// Of returns a package of a catalog that was read.
func Of(catalog string, p *catalogs.Package) Package {
	out := Package{Catalog: catalog, Name: p.Name, Complete: true}
	for name, channel := range p.Channels {
		head, err := channel.Head()
		if err != nil {
			continue // the catalog is not valid, which the hub reports
		}
		version := head
		if b := p.Bundles[head]; b != nil {
			version = b.VersionString()
		}
		out.Channels = append(out.Channels, Channel{name, version})
	}
	slices.SortFunc(out.Channels, func(a, b Channel) int { return cmp.Compare(a.Name, b.Name) })
	for name, b := range p.Bundles {
		blocked := ""
		if block, ok := p.Blocked(name); ok {
			blocked = block.Reason
		}
		out.Bundles = append(out.Bundles, Bundle{name, b.VersionString(), blocked})
	}
	for name, block := range p.Blocks { // without a newer version that is good, it is not in the package any more
		if p.Bundles[name] == nil {
			out.Bundles = append(out.Bundles, Bundle{name, block.Version, block.Reason})
		}
	}
	slices.SortFunc(out.Bundles, func(a, b Bundle) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Has tells whether a bundle is a version of the package.
func (p Package) Has(bundle string) bool {
	_, ok := p.bundle(bundle)
	return ok
}

func (p Package) bundle(name string) (Bundle, bool) {
	i := slices.IndexFunc(p.Bundles, func(b Bundle) bool { return b.Name == name })
	if i < 0 {
		return Bundle{}, false
	}
	return p.Bundles[i], true
}

// isNewer tells whether a version is higher than all that are known of the package.
func (p Package) isNewer(version string) bool {
	v, err := semver.Parse(version)
	if err != nil {
		return false
	}
	known := 0
	is := func(text string) bool {
		o, err := semver.Parse(text)
		if err != nil {
			return true
		}
		known++
		return v.GT(o)
	}
	for _, c := range p.Channels {
		if !is(c.Head) {
			return false
		}
	}
	for _, b := range p.Bundles {
		if !is(b.Version) {
			return false
		}
	}
	return known > 0
}

// knownPackage is the package in the catalog that counts: that of the ManagedOperator, otherwise one that has the
// version, otherwise the first one. It is nil where no catalog has the package.
func (s subject) knownPackage() *Package {
	var first *Package
	operator := s.operator()
	for i := range s.Known.Packages {
		p := &s.Known.Packages[i]
		if p.Name != s.pkg {
			continue
		}
		if operator != nil {
			if p.Catalog == operator.Catalog {
				return p
			}
			continue
		}
		if first == nil {
			first = p
		}
		if s.csv == nil {
			continue
		}
		if _, ok := p.bundle(s.csv.Name); ok {
			return p
		}
	}
	return first
}

// catalog judges whether an OperatorCatalog has what runs.
func (s subject) catalog() []Finding {
	switch {
	case s.pkg == "" && s.csv == nil:
		return nil
	case s.pkg == "":
		return s.unknownPackage()
	}
	p := s.knownPackage()
	if p == nil {
		return s.noPackage()
	}
	var found []Finding
	if s.sub != nil && s.sub.Channel != "" &&
		!slices.ContainsFunc(p.Channels, func(c Channel) bool { return c.Name == s.sub.Channel }) {
		found = append(found, s.noChannel(p))
	}
	if s.csv == nil {
		return found
	}
	if b, ok := p.bundle(s.csv.Name); ok {
		if b.Blocked != "" {
			found = append(found, Finding{Class: Eligible, Reason: "VersionBlocked", Message: fmt.Sprintf(
				"Version %s is blocked in %s: %s. It can be taken over, and should be upgraded then.",
				b.Version, p.catalogText(), trimEnd(b.Blocked))})
		}
		return found
	}
	return append(found, s.noVersion(p)...)
}

// unknownPackage is about a CSV that no Subscription has installed, and that no catalog has.
func (s subject) unknownPackage() []Finding {
	if len(s.Known.NotRead) > 0 {
		return s.notRead()
	}
	return one(NeedsDecision, "NotInCatalog", fmt.Sprintf("No OperatorCatalog is known to have the bundle %s.",
		s.csv.Name), "Add its version to a catalog of yours, and scan again.", leave)
}

const leave = "Leave it as it is. Bellwether changes nothing of it."

func (s subject) notRead() []Finding {
	return one(Unknown, "CatalogNotRead", "It is not known whether a catalog has it: "+
		phrase.First(s.Known.NotRead, 2)+".", "Correct what is wrong with the catalog, and scan again.")
}

// ReasonPackageNotInCatalog is the reason of a finding that others tell apart: fleets that are new have many of it.
const ReasonPackageNotInCatalog = "PackageNotInCatalog"

func (s subject) noPackage() []Finding {
	if other := s.renamed(); other != "" {
		return one(NeedsDecision, "PackageRenamed", s.lacksPackage()+" "+other,
			"Set spec.package of the ManagedOperator to the name that the cluster has, and publish the versions under "+
				"it.",
			leave)
	}
	if len(s.Known.NotRead) > 0 {
		return s.notRead()
	}
	return one(NeedsDecision, ReasonPackageNotInCatalog, s.lacksPackage(),
		fmt.Sprintf("Import the package into a catalog of yours, and publish that: `bellwether catalog init ./ladders "+
			"--package %s --from %s`.", argument(s.pkg, "PACKAGE"), argument(s.image(), "CATALOG")), leave)
}

// lacksPackage says that no catalog has the package, or that the admission is to another one.
func (s subject) lacksPackage() string {
	for _, p := range s.Known.Packages {
		if p.Admitted {
			return fmt.Sprintf("It is package %s, and the cluster is admitted to package %s of %s.", s.pkg, p.Name,
				p.catalogText())
		}
	}
	return fmt.Sprintf("No OperatorCatalog has package %s.", s.pkg)
}

// plain is what can be an argument in a command that people copy, whoever wrote it.
var plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@-]*$`)

// argument is a text that came from a cluster as a part of a command; otherwise is a placeholder.
func argument(text, otherwise string) string {
	if !plain.MatchString(text) {
		return otherwise
	}
	return text
}

// image is what the package can be imported from; empty where that is not known.
func (s subject) image() string {
	if s.sub != nil {
		for _, c := range s.Scan.CatalogSources {
			if c.Name == s.sub.Source && c.Namespace == s.sub.SourceNamespace && c.Image != "" {
				return c.Image
			}
		}
	}
	return ""
}

// renamed says which other package is the same operator; empty where none is known.
func (s subject) renamed() string {
	if s.csv == nil {
		return ""
	}
	for _, p := range s.Known.Packages {
		if _, ok := p.bundle(s.csv.Name); ok {
			return fmt.Sprintf("Package %s in %s has the bundle %s.", p.Name, p.catalogText(), s.csv.Name)
		}
	}
	for _, o := range s.Known.Operators {
		if api := s.shares(o.Provides); api != "" && o.Namespace == s.Found.Namespace {
			return fmt.Sprintf("ManagedOperator %s installs package %s into the same namespace, which provides %s as "+
				"well.", o.Key, o.Package, api)
		}
	}
	return ""
}

// shares returns an API of the operator that is among others; empty where none is.
func (s subject) shares(others []string) string {
	for _, api := range provides(s.csv) {
		if slices.Contains(others, api) {
			return api
		}
	}
	return ""
}

func (s subject) noChannel(p *Package) Finding {
	names := make([]string, len(p.Channels))
	for i, c := range p.Channels {
		names[i] = fmt.Sprintf("%s (%s)", c.Name, c.Head)
	}
	return Finding{Class: NeedsDecision, Reason: "ChannelNotInCatalog", Message: fmt.Sprintf(
		"It follows channel %s, which package %s in %s does not have.", s.sub.Channel, p.Name, p.catalogText()),
		Choices: []string{accepting(ChannelNotInCatalog, "it follows the channel of the ManagedOperator then. The "+
			"package has "+phrase.First(names, 5)+"."),
			"Add the channel to the ladder file of the package, and publish the catalog."}}
}

func (s subject) noVersion(p *Package) []Finding {
	version := s.csv.Version
	add := fmt.Sprintf("Add version %s to the ladder file of package %s, and publish the catalog: `bellwether catalog "+
		"add ./ladders BUNDLE`.", version, p.Name)
	same := slices.IndexFunc(p.Bundles, func(b Bundle) bool { return b.Version == version })
	switch {
	case same >= 0:
		return one(NeedsDecision, "OtherBundle", fmt.Sprintf("%s has version %s as bundle %s, and the "+
			"cluster runs %s: to OLM these are two versions.", upper(p.catalogText()), version, p.Bundles[same].Name,
			s.csv.Name),
			add, leave)
	case p.isNewer(version):
		return one(NeedsDecision, "NewerThanCatalog", fmt.Sprintf("It runs version %s, which is newer than every "+
			"version of package %s in %s.", version, p.Name, p.catalogText()), add,
			"Wait until the catalog has it. Nothing goes back to an older version by a take-over.")
	case p.Complete:
		return one(NeedsDecision, "VersionNotInCatalog", fmt.Sprintf("It runs version %s, which package %s in "+
			"%s does not have.", version, p.Name, p.catalogText()), add,
			"Upgrade it to a version that the catalog has with the means that installed it, and scan again.", leave)
	case slices.ContainsFunc(p.Channels, func(c Channel) bool { return c.Head == version }):
		return nil
	}
	return one(Unknown, "VersionsNotRead", fmt.Sprintf("It runs version %s. It is not known whether package %s in "+
		"%s has it.", version, p.Name, p.catalogText()), "Make it possible to read the catalog from where "+
		"you are, and scan again.")
}
