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
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Package is a package of a catalog.
type Package struct {
	// Catalog is the OperatorCatalog, as namespace/name. For an admission, it is the catalog's image or directory.
	Catalog string
	// Admitted is set for the package of an admission, which is the only known package.
	Admitted bool
	Name     string
	// Channels are sorted by name, with the version at the head of each.
	Channels []Channel
	// Bundles are versions of the package. Complete is set if they are all versions.
	Bundles  []Bundle
	Complete bool
}

// Channel is a channel of a package.
type Channel struct{ Name, Head string }

// Bundle is one version of a package.
type Bundle struct {
	Name, Version string
	// Blocked is why no cluster may be upgraded to the bundle; empty if it is not blocked.
	Blocked string
}

// SummarizeCatalog returns the packages in the status of an OperatorCatalog. The versions are complete only for
// packages that a ManagedOperator uses.
func SummarizeCatalog(c *v1alpha1.OperatorCatalog) []Package {
	var out []Package
	for _, p := range c.Status.Packages {
		pkg := Package{Catalog: c.Namespace + "/" + c.Name, Name: p.Name, Complete: hasAllVersions(p)}
		for _, channel := range p.Channels {
			pkg.Channels = append(pkg.Channels, Channel{channel.Name, channel.Head})
		}
		for _, v := range p.Versions {
			if !v.Absent || v.Blocked != "" {
				pkg.Bundles = append(pkg.Bundles, Bundle{v.Bundle, v.Version, v.Blocked})
			}
		}
		out = append(out, pkg)
	}
	return out
}

// hasAllVersions reports whether the hub lists all versions of a package.
func hasAllVersions(p v1alpha1.CatalogPackage) bool {
	return len(p.Versions) > 0 && p.OmittedVersions == 0
}

// formatCatalog returns the catalog for messages.
func (p Package) formatCatalog() string {
	if p.Admitted {
		return "the catalog " + p.Catalog
	}
	return "OperatorCatalog " + p.Catalog
}

// Summarize returns the summary of a catalog's package.
func Summarize(catalog string, p *catalogs.Package) Package {
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
	for name, block := range p.Blocks { // a blocked bundle without a newer good version is not in the package
		if p.Bundles[name] == nil {
			out.Bundles = append(out.Bundles, Bundle{name, block.Version, block.Reason})
		}
	}
	slices.SortFunc(out.Bundles, func(a, b Bundle) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// SummarizePackages returns the summary of the packages of an OperatorCatalog, as they were read from its registry,
// without the versions that the OperatorCatalog blocks.
func SummarizePackages(c *v1alpha1.OperatorCatalog, packages []*catalogs.Package) []Package {
	var out []Package
	for _, p := range packages {
		allowed, err := p.WithBlocked(catalogs.BlocksOf(c.Spec.Blocks, p.Name)...)
		if err != nil { // no version is left to install, which the hub reports
			allowed = p
		}
		out = append(out, Summarize(c.Namespace+"/"+c.Name, allowed))
	}
	return out
}

// HasCompleteSummary reports whether SummarizeCatalog returns all versions of those packages in names that the catalog
// has. It is false also if the hub does not list all packages of the catalog and names is not empty.
func HasCompleteSummary(c *v1alpha1.OperatorCatalog, names []string) bool {
	if len(names) > 0 && int(c.Status.PackageCount) > len(c.Status.Packages) {
		return false
	}
	return !slices.ContainsFunc(c.Status.Packages, func(p v1alpha1.CatalogPackage) bool {
		return !hasAllVersions(p) && slices.Contains(names, p.Name)
	})
}

// Has reports whether a bundle is a version of the package.
func (p Package) Has(bundle string) bool {
	_, ok := p.findBundle(bundle)
	return ok
}

// findBundle returns a bundle of the package; false if the package does not have it.
func (p Package) findBundle(name string) (Bundle, bool) {
	i := slices.IndexFunc(p.Bundles, func(b Bundle) bool { return b.Name == name })
	if i < 0 {
		return Bundle{}, false
	}
	return p.Bundles[i], true
}

// isNewer reports whether a version is higher than all known versions of the package. Versions that are not SemVer are
// ignored; the result is false if no version can be compared.
func (p Package) isNewer(version string) bool {
	v, err := semver.Parse(version)
	if err != nil {
		return false
	}
	compared := 0
	isOlder := func(text string) bool {
		o, err := semver.Parse(text)
		if err != nil {
			return true
		}
		compared++
		return v.GT(o)
	}
	for _, c := range p.Channels {
		if !isOlder(c.Head) {
			return false
		}
	}
	for _, b := range p.Bundles {
		if !isOlder(b.Version) {
			return false
		}
	}
	return compared > 0
}

// findKnownPackage returns the known package to compare the operator with. If a ManagedOperator would take the operator
// over, this is the package in its catalog. Otherwise it is a package that has the installed bundle, or else the first
// package with the name. It returns nil if there is none.
func (s subject) findKnownPackage() *Package {
	var firstWithName *Package
	operator := s.findOperator()
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
		if firstWithName == nil {
			firstWithName = p
		}
		if s.csv == nil {
			continue
		}
		if _, ok := p.findBundle(s.csv.Name); ok {
			return p
		}
	}
	return firstWithName
}

// checkCatalog checks whether an OperatorCatalog has the package, the channel and the installed version of the
// operator.
func (s subject) checkCatalog() []Finding {
	switch {
	case s.pkg == "" && s.csv == nil:
		return nil // there is nothing to look up
	case s.pkg == "":
		return s.reportUnknownPackage()
	}
	p := s.findKnownPackage()
	if p == nil {
		return s.reportMissingPackage()
	}
	var found []Finding
	if s.sub != nil && s.sub.Channel != "" &&
		!slices.ContainsFunc(p.Channels, func(c Channel) bool { return c.Name == s.sub.Channel }) {
		found = append(found, s.reportMissingChannel(p))
	}
	if s.csv == nil {
		return found
	}
	if b, ok := p.findBundle(s.csv.Name); ok {
		if b.Blocked != "" {
			found = append(found, Finding{Class: Eligible, Reason: "VersionBlocked", Message: fmt.Sprintf(
				"Version %s is blocked in %s: %s. It can be taken over, and should be upgraded then.",
				b.Version, p.formatCatalog(), trimFullStop(b.Blocked))})
		}
		return found
	}
	return append(found, s.reportMissingVersion(p)...)
}

// reportUnknownPackage reports a CSV without a Subscription that no catalog has.
func (s subject) reportUnknownPackage() []Finding {
	if len(s.Known.NotRead) > 0 {
		return s.reportCatalogNotRead()
	}
	return report(NeedsDecision, "NotInCatalog", fmt.Sprintf("No OperatorCatalog is known to have the bundle %s.",
		s.csv.Name), "Add its version to a catalog of yours, and scan again.", leave)
}

const leave = "Leave it as it is. Bellwether changes nothing of it."

// reportCatalogNotRead reports that a catalog that may have the package could not be read.
func (s subject) reportCatalogNotRead() []Finding {
	return report(Unknown, "CatalogNotRead", "It is not known whether a catalog has it: "+
		phrase.First(s.Known.NotRead, 2)+".", "Correct what is wrong with the catalog, and scan again.")
}

// ReasonPackageNotInCatalog is the reason of a finding that is frequent on new fleets, so that callers can treat
// it separately.
const ReasonPackageNotInCatalog = "PackageNotInCatalog"

// reportMissingPackage reports that no catalog has the package.
func (s subject) reportMissingPackage() []Finding {
	if renamed := s.explainRenamed(); renamed != "" {
		return report(NeedsDecision, "PackageRenamed", s.formatMissingPackage()+" "+renamed,
			"Set spec.package of the ManagedOperator to the name that the cluster has, and publish the versions under "+
				"it.",
			leave)
	}
	if len(s.Known.NotRead) > 0 {
		return s.reportCatalogNotRead()
	}
	return report(NeedsDecision, ReasonPackageNotInCatalog, s.formatMissingPackage(),
		fmt.Sprintf("Import the package into a catalog of yours, and publish that: `bellwether catalog init ./ladders "+
			"--package %s --from %s`.",
			formatArgument(s.pkg, "PACKAGE"), formatArgument(s.findCatalogImage(), "CATALOG")), leave)
}

// formatMissingPackage says that no catalog has the package, or that the admission is for another package.
func (s subject) formatMissingPackage() string {
	for _, p := range s.Known.Packages {
		if p.Admitted {
			return fmt.Sprintf("It is package %s, and the cluster is admitted to package %s of %s.", s.pkg, p.Name,
				p.formatCatalog())
		}
	}
	return fmt.Sprintf("No OperatorCatalog has package %s.", s.pkg)
}

// plainArgument matches texts from a cluster that are safe as an argument in a command that people copy.
var plainArgument = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@-]*$`)

// formatArgument returns a text from a cluster as an argument in a command, or the placeholder if the text is
// not safe.
func formatArgument(text, placeholder string) string {
	if !plainArgument.MatchString(text) {
		return placeholder
	}
	return text
}

// findCatalogImage returns the image of the CatalogSource that has the package; empty if it is not known.
func (s subject) findCatalogImage() string {
	if s.sub != nil {
		for _, c := range s.Scan.CatalogSources {
			if c.Name == s.sub.Source && c.Namespace == s.sub.SourceNamespace && c.Image != "" {
				return c.Image
			}
		}
	}
	return ""
}

// explainRenamed returns a sentence that names another package of the same operator: a package with the installed
// bundle, or a package with the same API that a ManagedOperator installs into the namespace. It returns "" if none is
// known.
func (s subject) explainRenamed() string {
	if s.csv == nil {
		return ""
	}
	for _, p := range s.Known.Packages {
		if _, ok := p.findBundle(s.csv.Name); ok {
			return fmt.Sprintf("Package %s in %s has the bundle %s.", p.Name, p.formatCatalog(), s.csv.Name)
		}
	}
	for _, o := range s.Known.Operators {
		if api := s.findSharedAPI(o.Provides); api != "" && o.Namespace == s.Found.Namespace {
			return fmt.Sprintf("ManagedOperator %s installs package %s into the same namespace, which provides %s as "+
				"well.", o.Key, o.Package, api)
		}
	}
	return ""
}

// findSharedAPI returns the first API of the operator that is in otherAPIs; empty if there is none.
func (s subject) findSharedAPI(otherAPIs []string) string {
	for _, api := range listProvided(s.csv) {
		if slices.Contains(otherAPIs, api) {
			return api
		}
	}
	return ""
}

// reportMissingChannel reports that the package does not have the channel of the Subscription.
func (s subject) reportMissingChannel(p *Package) Finding {
	names := make([]string, len(p.Channels))
	for i, c := range p.Channels {
		names[i] = fmt.Sprintf("%s (%s)", c.Name, c.Head)
	}
	return Finding{Class: NeedsDecision, Reason: "ChannelNotInCatalog", Message: fmt.Sprintf(
		"It follows channel %s, which package %s in %s does not have.", s.sub.Channel, p.Name, p.formatCatalog()),
		Choices: []string{accept(ChannelNotInCatalog, "it follows the channel of the ManagedOperator then. The "+
			"package has "+phrase.First(names, 5)+"."),
			"Add the channel to the ladder file of the package, and publish the catalog."}}
}

// reportMissingVersion reports that the package does not have the installed bundle, or that it is not known whether it
// has the bundle. It returns nil if the version is the head of a channel and the list of the bundles is not complete.
func (s subject) reportMissingVersion(p *Package) []Finding {
	version := s.csv.Version
	add := fmt.Sprintf("Add version %s to the ladder file of package %s, and publish the catalog: `bellwether catalog "+
		"add ./ladders BUNDLE`.", version, p.Name)
	index := slices.IndexFunc(p.Bundles, func(b Bundle) bool { return b.Version == version })
	switch {
	case index >= 0:
		return report(NeedsDecision, "OtherBundle", fmt.Sprintf("%s has version %s as bundle %s, and the "+
			"cluster runs %s: to OLM these are two versions.", capitalize(p.formatCatalog()), version,
			p.Bundles[index].Name,
			s.csv.Name),
			add, leave)
	case p.isNewer(version):
		return report(NeedsDecision, "NewerThanCatalog", fmt.Sprintf("It runs version %s, which is newer than every "+
			"version of package %s in %s.", version, p.Name, p.formatCatalog()), add,
			"Wait until the catalog has it. Nothing goes back to an older version by a take-over.")
	case p.Complete:
		return report(NeedsDecision, "VersionNotInCatalog", fmt.Sprintf("It runs version %s, which package %s in "+
			"%s does not have.", version, p.Name, p.formatCatalog()), add,
			"Upgrade it to a version that the catalog has with the means that installed it, and scan again.", leave)
	case slices.ContainsFunc(p.Channels, func(c Channel) bool { return c.Head == version }):
		return nil
	}
	return report(Unknown, "VersionsNotRead", fmt.Sprintf("It runs version %s. It is not known whether package %s in "+
		"%s has it.", version, p.Name, p.formatCatalog()), "Make it possible to read the catalog from where "+
		"you are, and scan again.")
}
