// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package view decides what one cluster gets to see of a catalog for one operator: the installed bundle, the next hop
// it was admitted to, and what that needs. OLM can only install what it sees, so the view is what keeps a cluster from
// moving past what a rollout has admitted.
//
// It is pure: packages of a catalog come in, a small catalog comes out. Package serve gives it to OLM.
//
// The next hop always replaces the installed bundle in the view, whatever edge of the published graph led there: OLM
// refuses a channel whose order does not follow from replaces alone. Build does not ask whether the next hop is the
// newer one; that is for whoever admitted it.
package view

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/catalogs"
)

// Errors of Build; they wrap these and say what to do.
var (
	// ErrBundleTooLarge says that a bundle fits into no InstallPlan and has no image to unpack instead.
	ErrBundleTooLarge = errors.New("bundle too large")
	// ErrNoContent says that a bundle has neither manifests nor an image.
	ErrNoContent = errors.New("bundle without content")
	// ErrWrongCSV says that a bundle's manifests hold no ClusterServiceVersion of the bundle's name.
	ErrWrongCSV = errors.New("bundle without its CSV")
)

// Route is how a bundle's manifests get to the cluster.
type Route string

const (
	// Inline bundles travel in the catalog itself: OLM writes their manifests into the InstallPlan and starts no pod.
	Inline Route = "Inline"
	// Unpack bundles stay an image: OLM starts its own Job that unpacks it.
	Unpack Route = "Unpack"
	// Stub bundles are on the cluster already; the view only needs their names and properties.
	Stub Route = "Stub"
)

// Input is everything that a view depends on.
type Input struct {
	// Package is the operator's package in the published catalog.
	Package *catalogs.Package
	// Channel is the channel to offer; empty means the default channel.
	Channel string
	// Installed is what the cluster runs; its Name is empty before the first install. It need not be in the catalog.
	Installed catalogs.Installed
	// Next is the bundle the cluster was admitted to; empty means to stay with Installed.
	Next string
	// Others are further packages of the same catalog, from which dependencies are taken.
	Others []*catalogs.Package
	// Present names the ClusterServiceVersions in the operator's namespace. A dependency that is there already is
	// kept rather than exchanged for a newer one.
	Present []string
	// MaxInline bounds the manifests that one InstallPlan carries, in bytes as etcd stores them; zero means
	// registryv1.MaxInlineBytes, and anything above that is lowered to it.
	MaxInline int
}

// View is a catalog for one operator on one cluster.
type View struct {
	Package   string
	Channel   string
	Installed string
	Next      string
	// Packages are what is served, sorted by name.
	Packages []*catalogs.Package
	// Bundles tell about each served bundle, the operator's own first.
	Bundles []Bundle
	// Admitted are the names of the ClusterServiceVersions that an InstallPlan of this view may contain, sorted.
	Admitted []string
	// Unresolved are requirements that nothing in the catalog satisfies, sorted. OLM refuses to install unless another
	// catalog that it can see does.
	Unresolved []string
	// InlineBytes is what the inlined manifests add to an InstallPlan.
	InlineBytes int
	// Hash changes when, and only when, what is served changes.
	Hash string
	// Rollback says what it takes to go back to Next; nil where Next is not older than Installed. Build does not know.
	Rollback *registryv1.Rollback
}

// Bundle tells how a bundle is served.
type Bundle struct {
	Package, Channel, Name, Version string
	Route                           Route
	// InlineBytes is what the bundle adds, or would add, to an InstallPlan; zero if its manifests are not known.
	InlineBytes int
}

// Build makes the view. Errors wrap those of this package, or ErrNoChannel, ErrNoVersion or ErrInvalidPackage of
// package catalogs.
func Build(in Input) (View, error) {
	in = in.withoutHop()
	c, parts, unresolved, err := partsOf(in)
	if err != nil {
		return View{}, err
	}
	inlineBytes, err := choose(parts, in.MaxInline)
	if err != nil {
		return View{}, err
	}
	v := View{
		Package: in.Package.Name, Channel: c.Name, Installed: in.Installed.Name, Next: in.Next,
		Packages: serve(parts), Unresolved: unresolved, InlineBytes: inlineBytes,
	}
	for _, p := range parts {
		v.Bundles = append(v.Bundles, p.describe())
		if !p.stub {
			v.Admitted = append(v.Admitted, p.bundle.Name)
		}
	}
	slices.Sort(v.Admitted)
	v.Hash, err = hash(v.Packages)
	return v, err
}

// Dependencies returns the names of the bundles that Build takes from Others and serves in full, by package. Their
// manifests need not be known. Errors are those of Build.
func Dependencies(in Input) (map[string][]string, error) {
	_, parts, _, err := partsOf(in.withoutHop())
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

// withoutHop leaves the next version out where it is what is installed.
func (in Input) withoutHop() Input {
	if in.Next == in.Installed.Name {
		in.Next = ""
	}
	return in
}

// partsOf returns the channel, what the view consists of, and which requirements nothing satisfies.
func partsOf(in Input) (*catalogs.Channel, []*part, []string, error) {
	c, err := in.Package.Channel(in.Channel)
	if err != nil {
		return nil, nil, nil, err
	}
	own, err := ownParts(in, c)
	if err != nil {
		return nil, nil, nil, err
	}
	parts, unresolved, err := resolve(own, in.Others, in.Present)
	for _, p := range parts {
		// Without a next hop everything is served in full, so that OLM can put back what somebody deleted. The next hop
		// itself is served in full until it is what is installed: its CSV is there long before that.
		present := p.bundle.Name == in.Installed.Name || slices.Contains(in.Present, p.bundle.Name)
		p.stub = p.stub || (in.Next != "" && in.Next != p.bundle.Name && present)
	}
	return c, parts, unresolved, err
}

// All is a view of whole packages, as they are in the catalog.
func All(packages []*catalogs.Package) (View, error) {
	h, err := hash(packages)
	return View{Packages: packages, Hash: h}, err
}

// part is one bundle on its way into the view.
type part struct {
	pkg     *catalogs.Package
	channel string
	bundle  *catalogs.Bundle
	// replaces is the name of the installed bundle that this one follows.
	replaces string
	stub     bool
	route    Route
	size     int
	// objects are the manifests as they are served, and csv is the one of the ClusterServiceVersion; nil where the
	// catalog has none.
	objects [][]byte
	csv     []byte
}

func (p *part) describe() Bundle {
	return Bundle{
		Package: p.pkg.Name, Channel: p.channel, Name: p.bundle.Name, Version: p.bundle.VersionString(),
		Route: p.route, InlineBytes: p.size,
	}
}

// ownParts returns the next hop, then the installed bundle.
func ownParts(in Input, c *catalogs.Channel) ([]*part, error) {
	var parts []*part
	if in.Next != "" {
		next, ok := in.Package.Bundles[in.Next]
		if !ok {
			return nil, fmt.Errorf("%w: package %q has no bundle %q", catalogs.ErrNoVersion, in.Package.Name, in.Next)
		}
		parts = append(parts, &part{pkg: in.Package, channel: c.Name, bundle: next, replaces: in.Installed.Name})
	}
	if in.Installed.Name != "" {
		p, err := installedPart(in)
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

// installedPart invents a stub for a bundle that has left the catalog: with its name and version in place OLM is
// content with what is installed.
func installedPart(in Input) (*part, error) {
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
		Properties: []registryv1.Property{{Type: registryv1.PropertyPackage, Value: value}},
	}
	return &part{pkg: in.Package, bundle: b, stub: true}, nil
}

// serve turns the parts into packages of one channel each.
func serve(parts []*part) []*catalogs.Package {
	packages := map[string]*catalogs.Package{}
	for _, p := range parts {
		out, ok := packages[p.pkg.Name]
		if !ok {
			out = &catalogs.Package{
				Name: p.pkg.Name, DefaultChannel: p.channel, Description: p.pkg.Description, Icon: p.pkg.Icon,
				Deprecation: p.pkg.Deprecation, Bundles: map[string]*catalogs.Bundle{},
				Channels: map[string]*catalogs.Channel{p.channel: {Name: p.channel, Deprecation: deprecation(p)}},
			}
			packages[p.pkg.Name] = out
		}
		c := out.Channels[p.channel]
		c.Entries = append(c.Entries, catalogs.Entry{Name: p.bundle.Name, Replaces: p.replaces})
		out.Bundles[p.bundle.Name] = p.served()
	}
	return slices.SortedFunc(maps.Values(packages), func(a, b *catalogs.Package) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
}

func deprecation(p *part) string {
	if c, ok := p.pkg.Channels[p.channel]; ok {
		return c.Deprecation
	}
	return ""
}

// served is the bundle as its route needs it.
func (p *part) served() *catalogs.Bundle {
	b := *p.bundle
	switch p.route {
	case Inline:
		b.Image, b.Objects = "", p.objects
		// The CSV among the objects says the same, and more.
		b.Properties = slices.DeleteFunc(slices.Clone(b.Properties), func(p registryv1.Property) bool {
			return p.Type == registryv1.PropertyCSVMetadata
		})
	case Unpack:
		// The CSV alone is for OLM's package server, which shows what is on offer.
		b.Objects = nil
		if p.csv != nil {
			b.Objects = [][]byte{p.csv}
		}
	case Stub:
		b.Objects = nil
	}
	return &b
}

func hash(packages []*catalogs.Package) (string, error) {
	h := sha256.New()
	if err := json.NewEncoder(h).Encode(packages); err != nil {
		return "", fmt.Errorf("hash view: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
