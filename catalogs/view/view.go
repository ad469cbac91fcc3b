// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package view decides which part of a catalog one cluster gets for one operator: the installed bundle, the next hop
// to which the cluster was admitted, and their dependencies. OLM can only install bundles that it sees, so the view
// prevents a cluster from moving beyond the bundle that a rollout has admitted.
//
// It is pure: its input are packages of a catalog, its output is a small catalog. Package serve serves that catalog
// to OLM.
//
// The next hop always replaces the installed bundle in the view, independently of its edge in the published graph,
// because OLM refuses a channel whose order does not follow from replaces alone. Build does not check whether the
// next hop is newer; the caller that admitted it must do that.
package view

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
)

// Errors of Build wrap these errors and say what to do.
var (
	// ErrBundleTooLarge means that a bundle does not fit into an InstallPlan and has no image that can be
	// unpacked instead.
	ErrBundleTooLarge = errors.New("bundle too large")
	// ErrNoContent means that a bundle has neither manifests nor an image.
	ErrNoContent = errors.New("bundle without content")
	// ErrWrongCSV means that a bundle's manifests contain no ClusterServiceVersion with the bundle's name.
	ErrWrongCSV = errors.New("bundle without its CSV")
)

// Route is how a bundle's manifests get to the cluster.
type Route string

const (
	// Inline bundles are completely in the catalog: OLM writes their manifests to the InstallPlan and starts no pod.
	Inline Route = "Inline"
	// Unpack bundles are images: OLM starts a Job that unpacks the image.
	Unpack Route = "Unpack"
	// Stub bundles are already on the cluster; the view only needs their names and properties.
	Stub Route = "Stub"
)

// Input is everything that a view depends on.
type Input struct {
	// Package is the operator's package in the published catalog.
	Package *catalogs.Package
	// Channel is the channel to offer; empty means the default channel.
	Channel string
	// Installed is the bundle that the cluster runs; its Name is empty before the first install. It need not be in
	// the catalog.
	Installed catalogs.Installed
	// Next is the bundle to which the cluster was admitted; empty means to stay with Installed.
	Next string
	// Others are further packages of the same catalog, which can satisfy dependencies.
	Others []*catalogs.Package
	// Present are the names of the ClusterServiceVersions in the operator's namespace. A present dependency is kept
	// instead of being replaced by a newer bundle.
	Present []string
	// MaxInline bounds the manifests in one InstallPlan, in bytes as etcd stores them; zero means
	// bundles.MaxInlineBytes, which is also the maximum.
	MaxInline int
}

// View is a catalog for one operator on one cluster.
type View struct {
	Package   string
	Channel   string
	Installed string
	Next      string
	// Packages are the served packages, sorted by name.
	Packages []*catalogs.Package
	// Bundles describe the served bundles, the operator's own bundles first.
	Bundles []Bundle
	// Admitted are the names of the ClusterServiceVersions that an InstallPlan of this view is permitted to
	// contain, sorted.
	Admitted []string
	// Unresolved are requirements that no bundle of the catalog satisfies, sorted. OLM refuses to install unless
	// another catalog on the cluster satisfies them.
	Unresolved []string
	// InlineBytes is the number of bytes that the inlined manifests add to an InstallPlan.
	InlineBytes int
	// Hash changes if, and only if, the served content changes.
	Hash string
	// Rollback describes the requirements of going back to Next; nil if Next is not older than Installed. Build does
	// not set it.
	Rollback *bundles.Rollback
}

// Bundle describes how a bundle is served.
type Bundle struct {
	Package, Channel, Name, Version string
	Route                           Route
	// InlineBytes is the number of bytes that the bundle adds, or would add, to an InstallPlan; zero if its manifests
	// are unknown.
	InlineBytes int
}

// Build returns the view. Errors wrap those of this package, or ErrNoChannel, ErrNoVersion or ErrInvalidPackage of
// package catalogs.
func Build(in Input) (View, error) {
	in = in.removeRedundantNext()
	c, parts, unresolved, err := collectParts(in)
	if err != nil {
		return View{}, err
	}
	inlineBytes, err := chooseRoutes(parts, in.MaxInline)
	if err != nil {
		return View{}, err
	}
	v := View{
		Package: in.Package.Name, Channel: c.Name, Installed: in.Installed.Name, Next: in.Next,
		Packages: buildPackages(parts), Unresolved: unresolved, InlineBytes: inlineBytes,
	}
	for _, p := range parts {
		v.Bundles = append(v.Bundles, p.toBundle())
		if !p.stub {
			v.Admitted = append(v.Admitted, p.bundle.Name)
		}
	}
	slices.Sort(v.Admitted)
	v.Hash, err = hashPackages(v.Packages)
	return v, err
}

// Dependencies returns the names of the bundles that Build takes from Others and serves completely, by package. It
// does not need the manifests of the bundles. Errors are those of Build.
func Dependencies(in Input) (map[string][]string, error) {
	_, parts, _, err := collectParts(in.removeRedundantNext())
	if err != nil {
		return nil, err
	}
	names := map[string][]string{}
	for _, p := range parts {
		if p.pkg.Name != in.Package.Name && !p.stub {
			names[p.pkg.Name] = append(names[p.pkg.Name], p.bundle.Name)
		}
	}
	return names, nil
}

// removeRedundantNext clears Next if that bundle is already installed.
func (in Input) removeRedundantNext() Input {
	if in.Next == in.Installed.Name {
		in.Next = ""
	}
	return in
}

// collectParts returns the channel, the parts of the view, and the requirements that no bundle satisfies. Parts that
// need not be served completely are stubs.
func collectParts(in Input) (*catalogs.Channel, []*part, []string, error) {
	c, err := in.Package.Channel(in.Channel)
	if err != nil {
		return nil, nil, nil, err
	}
	own, err := listOwnParts(in, c)
	if err != nil {
		return nil, nil, nil, err
	}
	parts, unresolved, err := resolveDependencies(own, in.Others, in.Present)
	for _, p := range parts {
		// Without a next hop all bundles are served completely, so that OLM can restore deleted objects. The next hop
		// itself is served completely until it is the installed bundle, because its CSV exists on the cluster long
		// before that.
		present := p.bundle.Name == in.Installed.Name || slices.Contains(in.Present, p.bundle.Name)
		p.stub = p.stub || (in.Next != "" && in.Next != p.bundle.Name && present)
	}
	return c, parts, unresolved, err
}

// All returns a view of whole packages, unchanged.
func All(packages []*catalogs.Package) (View, error) {
	h, err := hashPackages(packages)
	return View{Packages: packages, Hash: h}, err
}

// part is one bundle of the view while it is built.
type part struct {
	pkg     *catalogs.Package
	channel string
	bundle  *catalogs.Bundle
	// replaces is the name of the installed bundle that this bundle replaces.
	replaces string
	stub     bool
	route    Route
	size     int
	// objects are the served manifests, and csv is the ClusterServiceVersion among them; nil if the catalog has none.
	objects [][]byte
	csv     []byte
}

func (p *part) toBundle() Bundle {
	return Bundle{
		Package: p.pkg.Name, Channel: p.channel, Name: p.bundle.Name, Version: p.bundle.VersionString(),
		Route: p.route, InlineBytes: p.size,
	}
}

// listOwnParts returns the parts of the next hop and of the installed bundle, in this order. The error wraps
// catalogs.ErrNoVersion if there is neither, or if the catalog does not have the next hop.
func listOwnParts(in Input, c *catalogs.Channel) ([]*part, error) {
	var parts []*part
	if in.Next != "" {
		next, ok := in.Package.Bundles[in.Next]
		if !ok {
			return nil, fmt.Errorf("%w: package %q has no bundle %q", catalogs.ErrNoVersion, in.Package.Name, in.Next)
		}
		parts = append(parts, &part{pkg: in.Package, channel: c.Name, bundle: next, replaces: in.Installed.Name})
	}
	if in.Installed.Name != "" {
		p, err := newInstalledPart(in)
		if err != nil {
			return nil, err
		}
		p.channel = c.Name
		parts = append(parts, p)
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("%w: package %q is neither installed nor admitted to any bundle", catalogs.ErrNoVersion,
			in.Package.Name)
	}
	return parts, nil
}

// newInstalledPart returns the part of the installed bundle. For a bundle that has left the catalog it creates a
// stub: OLM only needs the name and version of the installed bundle.
func newInstalledPart(in Input) (*part, error) {
	if b, ok := in.Package.Bundles[in.Installed.Name]; ok {
		return &part{pkg: in.Package, bundle: b}, nil
	}
	version, ok := in.Installed.SemVer()
	if !ok {
		return nil, fmt.Errorf("%w: installed bundle %q has left the catalog and its version is not known",
			catalogs.ErrNoVersion, in.Installed.Name)
	}
	value, err := json.Marshal(map[string]string{"packageName": in.Package.Name, "version": version.String()})
	if err != nil {
		return nil, fmt.Errorf("encode package property: %w", err)
	}
	b := &catalogs.Bundle{
		Name: in.Installed.Name, Version: version,
		Properties: []bundles.Property{{Type: bundles.PropertyPackage, Value: value}},
	}
	return &part{pkg: in.Package, bundle: b, stub: true}, nil
}

// buildPackages returns packages with one channel each that contain the parts, sorted by name.
func buildPackages(parts []*part) []*catalogs.Package {
	packages := map[string]*catalogs.Package{}
	for _, p := range parts {
		out, ok := packages[p.pkg.Name]
		if !ok {
			out = &catalogs.Package{
				Name: p.pkg.Name, DefaultChannel: p.channel, Description: p.pkg.Description, Icon: p.pkg.Icon,
				Deprecation: p.pkg.Deprecation, Bundles: map[string]*catalogs.Bundle{},
				Channels: map[string]*catalogs.Channel{p.channel: {Name: p.channel, Deprecation: getDeprecation(p)}},
			}
			packages[p.pkg.Name] = out
		}
		c := out.Channels[p.channel]
		c.Entries = append(c.Entries, catalogs.Entry{Name: p.bundle.Name, Replaces: p.replaces})
		out.Bundles[p.bundle.Name] = p.toServedBundle()
	}
	return slices.SortedFunc(maps.Values(packages), func(a, b *catalogs.Package) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
}

func getDeprecation(p *part) string {
	if c, ok := p.pkg.Channels[p.channel]; ok {
		return c.Deprecation
	}
	return ""
}

// toServedBundle returns the bundle in the form that its route needs: with manifests and without an image, or with an
// image and only the CSV, or without manifests.
func (p *part) toServedBundle() *catalogs.Bundle {
	b := *p.bundle
	switch p.route {
	case Inline:
		b.Image, b.Objects = "", p.objects
		// The CSV among the objects has the same content, and more.
		b.Properties = slices.DeleteFunc(slices.Clone(b.Properties), func(p bundles.Property) bool {
			return p.Type == bundles.PropertyCSVMetadata
		})
	case Unpack:
		// OLM's package server needs the CSV to list the available operators.
		b.Objects = nil
		if p.csv != nil {
			b.Objects = [][]byte{p.csv}
		}
	case Stub:
		b.Objects = nil
	}
	return &b
}

func hashPackages(packages []*catalogs.Package) (string, error) {
	h := sha256.New()
	if err := json.NewEncoder(h).Encode(packages); err != nil {
		return "", fmt.Errorf("hash view: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
