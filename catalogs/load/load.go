// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package load reads what hub and agent need of a catalog, once: the same question asked by many at the same time is
// answered by one read, and answers are kept within a bound of memory. Answers are kept by digest, so they never go
// stale.
package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/singleflight"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/view"
)

// ErrTooManyPackages says that a bundle's dependencies reach too far into the catalog.
var ErrTooManyPackages = errors.New("too many packages")

// Catalogs is where catalogs come from; *oci.Client is one.
type Catalogs interface {
	Resolve(ctx context.Context, s oci.Source) (string, error)
	Open(ctx context.Context, s oci.Source, digest string) (catalogs.Files, error)
	BundleObjects(ctx context.Context, image string, a oci.Access) ([][]byte, error)
	// Decode calls decode, and records that the digest is being read.
	Decode(digest string, decode func() error) error
}

// Options configure a Loader.
type Options struct {
	// MaxBytes bounds what is kept, by the size of the manifests and metadata; zero means 16 MiB. What is larger by
	// itself is handed out but not kept.
	MaxBytes int
	// Budget bounds what one read of a catalog keeps; zero means catalogs.DefaultBudget.
	Budget catalogs.Budget
	// Timeout bounds one read of a catalog; zero means 10 minutes.
	Timeout time.Duration
	// Now is the clock of the back-off; nil means time.Now.
	Now func() time.Time
}

// Loader reads and keeps packages. Its methods may be called at the same time; what they return is shared and must not
// be changed.
type Loader struct {
	from    Catalogs
	timeout time.Duration
	budget  catalogs.Budget
	// decoding is taken by who decodes bundles: several at a time would take too much memory.
	decoding chan struct{}
	flight   singleflight.Group
	kept     *lru
	failed   *failures
}

// New returns a loader.
func New(from Catalogs, o Options) *Loader {
	now := o.Now
	if now == nil {
		now = time.Now
	}
	return &Loader{from: from, timeout: cmp.Or(o.Timeout, 10*time.Minute), kept: newLRU(cmp.Or(o.MaxBytes, 16<<20)),
		budget: o.Budget, decoding: make(chan struct{}, 1), failed: &failures{now: now, by: map[string]failure{}}}
}

// Resolve returns the digest of what a source holds now. It is never kept.
func (l *Loader) Resolve(ctx context.Context, s oci.Source) (string, error) {
	digest, err := l.from.Resolve(ctx, s)
	logDetail(ctx, err)
	return digest, err
}

// logDetail logs what an error of a registry does not tell those who read it in an object.
func logDetail(ctx context.Context, err error) {
	if detail := oci.Detail(err); detail != "" {
		logr.FromContextOrDiscard(ctx).V(1).Info("Cannot read from registry", "error", err.Error(), "detail", detail)
	}
}

// Summary returns what a catalog offers.
func (l *Loader) Summary(ctx context.Context, s oci.Source, digest string) (catalogs.Summary, error) {
	k := key(s, "summary", digest)
	return once(ctx, l, failureKey(s, digest), k, func(ctx context.Context) (catalogs.Summary, int, error) {
		files, err := l.from.Open(ctx, s, digest)
		if err != nil {
			return catalogs.Summary{}, 0, err
		}
		summary, err := l.budget.ReadSummary(files)
		return summary, sizeOfSummary(summary), err
	})
}

// Package returns a package with its whole graph, and with the manifests of the named bundles only.
func (l *Loader) Package(ctx context.Context, s oci.Source, digest, name string, bundles ...string) (*catalogs.Package,
	error) {
	bundles = slices.DeleteFunc(slices.Clone(bundles), func(b string) bool { return b == "" })
	slices.Sort(bundles)
	k := key(s, append([]string{"package", digest, name}, bundles...)...)
	return once(ctx, l, failureKey(s, digest), k, func(ctx context.Context) (*catalogs.Package, int, error) {
		files, err := l.from.Open(ctx, s, digest)
		if err != nil {
			return nil, 0, err
		}
		p, err := l.budget.ReadPackageWith(files, name, bundles...)
		if err != nil {
			return nil, 0, err
		}
		return p, sizeOfPackage(p), nil
	})
}

// Decode calls decode, which decodes bundles of a catalog with that digest, and waits until nobody else does. If it
// takes the process's memory, the digest is not read again. An error of decode is returned as it is.
func (l *Loader) Decode(ctx context.Context, digest string, decode func() error) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("decode bundles: %w", context.Cause(ctx))
	case l.decoding <- struct{}{}:
	}
	defer func() { <-l.decoding }()
	return l.from.Decode(digest, decode)
}

// Bundles returns a package with the manifests of the named bundles only, also of those that have them in an image. One
// whose image cannot be read has no manifests.
func (l *Loader) Bundles(ctx context.Context, s oci.Source, digest, name string, bundles ...string) (*catalogs.Package,
	error) {
	p, err := l.Package(ctx, s, digest, name, bundles...)
	if err != nil {
		return nil, err
	}
	for _, bundle := range bundles {
		p = l.withObjects(ctx, p, bundle, s.Access)
	}
	return p, nil
}

// key identifies a request. A result without signature verification is not used for a request with it, nor one that was
// read with another login.
func key(s oci.Source, parts ...string) string {
	if login := s.Access.Key(); login != "" {
		parts = append(parts, "with login "+login)
	}
	for _, k := range s.Verification.PublicKeys {
		parts = append(parts, "signed by "+string(k))
	}
	return strings.Join(parts, "\x00")
}

// once returns a kept result, or lets one caller read for all. A caller that gives up does not stop the read: the
// others still wait for it, and he will come back. A read that failed is not repeated for a while, nor is any other of
// the same digest if the digest itself is to blame.
func once[T any](ctx context.Context, l *Loader, digest, key string, read func(context.Context) (T, int, error)) (T,
	error) {
	var none T
	if kept, ok := l.kept.get(key); ok {
		return kept.(T), nil
	}
	done := l.flight.DoChan(key, func() (any, error) {
		if err := l.failed.current(digest, key); err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.timeout)
		defer cancel()
		answer, size, err := read(ctx)
		logDetail(ctx, err)
		l.failed.record(digest, key, err)
		if err != nil {
			return nil, err
		}
		l.kept.put(key, answer, size)
		return answer, nil
	})
	select {
	case <-ctx.Done():
		return none, fmt.Errorf("read catalog: %w", context.Cause(ctx))
	case result := <-done:
		if result.Err != nil {
			return none, result.Err
		}
		return result.Val.(T), nil
	}
}

// Request is for the view of one operator on one cluster; see view.Input for the fields of the same names.
type Request struct {
	Source oci.Source
	Digest string
	// PullBundles reads the manifests of bundles that the catalog only names by image, so that they can be inlined.
	// Where that fails the bundle keeps its image and OLM unpacks it.
	PullBundles bool

	Package   string
	Channel   string
	Installed catalogs.Installed
	Next      string
	Present   []string
	MaxInline int
	// Back is set where Next is older than Installed. Next is served as it returns it, and View.Rollback says what that
	// takes.
	Back Back
	// Blocks are in force besides those of the catalog itself, by package. No dependency is taken in a blocked version,
	// unless it is there already; that Next is not blocked is for whoever admitted it.
	Blocks map[string][]catalogs.Block
	// Permit judges each bundle that OLM would install from the view, by its manifests, or by the image that OLM would
	// unpack them from, which is empty where they are inlined. An error of it is returned as it is. Nil permits
	// everything. Nobody else decodes a bundle while it runs, so it must not wait for anything.
	Permit func(bundle, image string, objects [][]byte) error
}

// View reads what a view needs and builds it.
func (l *Loader) View(ctx context.Context, r Request) (view.View, error) {
	// At rest the installed bundle is served in full, on the way only the next one is.
	if r.Back != nil {
		p, way, err := l.back(ctx, r)
		if err != nil {
			return view.View{}, err
		}
		v, err := l.build(ctx, r, p)
		v.Rollback = &way
		return v, err
	}
	wanted := cmp.Or(r.Next, r.Installed.Name)
	p, err := l.Package(ctx, r.Source, r.Digest, r.Package, wanted)
	if err != nil {
		return view.View{}, err
	}
	if r.Source.Verification.Required() {
		if p, err = covered(p, wanted); err != nil {
			return view.View{}, err
		}
	}
	if r.PullBundles {
		p = l.withObjects(ctx, p, wanted, r.Source.Access)
	}
	return l.build(ctx, r, p)
}

func (l *Loader) build(ctx context.Context, r Request, p *catalogs.Package) (view.View, error) {
	in := view.Input{Package: p, Channel: r.Channel, Installed: r.Installed, Next: r.Next, Present: r.Present,
		MaxInline: r.MaxInline}
	var err error
	if in.Others, err = l.dependencies(ctx, r, p); err == nil {
		in.Others, err = l.chosen(ctx, r, in)
	}
	if err != nil {
		return view.View{}, fmt.Errorf("read dependencies of package %q: %w", r.Package, err)
	}
	var v view.View
	err = l.Decode(ctx, r.Digest, func() (err error) {
		v, err = view.Build(in)
		return err
	})
	if err != nil || r.Permit == nil {
		return v, err
	}
	return v, l.permit(ctx, r, v)
}

// permit has each bundle of a view judged that is served in full, by the manifests that are served.
func (l *Loader) permit(ctx context.Context, r Request, v view.View) error {
	packages := map[string]*catalogs.Package{}
	for _, p := range v.Packages {
		packages[p.Name] = p
	}
	for _, served := range v.Bundles {
		if served.Route == view.Stub {
			continue
		}
		b, image := packages[served.Package].Bundles[served.Name], ""
		if served.Route == view.Unpack {
			image = b.Image
			// It may be served like that because it cannot be read.
			if _, err := l.bundleObjects(ctx, image, r.Source.Access); err != nil {
				return fmt.Errorf("read image of bundle %q: %w", b.Name, err)
			}
		}
		judge := func() error { return r.Permit(b.Name, image, b.Objects) }
		if err := l.Decode(ctx, r.Digest, judge); err != nil {
			return err
		}
	}
	return nil
}

// covered makes sure that a signature of the catalog covers what a bundle installs. It does not where the catalog names
// an image by a tag: whoever can push there decides what that is. Such an image is used for nothing; the error, for a
// bundle that has nothing else, wraps oci.ErrUnsigned.
func covered(p *catalogs.Package, bundle string) (*catalogs.Package, error) {
	b, ok := p.Bundles[bundle]
	if !ok || b.Image == "" || strings.Contains(b.Image, "@sha256:") {
		return p, nil
	}
	if !b.Inlined {
		return nil, fmt.Errorf("%w: the catalog names the image of bundle %q by a tag (%s), so its signature does "+
			"not cover what is there: publish the bundle by digest",
			oci.ErrUnsigned, bundle, b.Image)
	}
	inlined := *b
	inlined.Image = ""
	out := *p
	out.Bundles = maps.Clone(p.Bundles)
	out.Bundles[bundle] = &inlined
	return &out, nil
}

// withObjects returns the package with the manifests that a bundle's image holds.
func (l *Loader) withObjects(ctx context.Context, p *catalogs.Package, bundle string, a oci.Access) *catalogs.Package {
	b, ok := p.Bundles[bundle]
	if !ok || b.Image == "" || len(b.Objects) > 0 {
		return p
	}
	objects, err := l.bundleObjects(ctx, b.Image, a)
	if err != nil {
		return p
	}
	filled := *b
	filled.Objects = objects
	out := *p
	out.Bundles = maps.Clone(p.Bundles)
	out.Bundles[bundle] = &filled
	return &out
}

func (l *Loader) bundleObjects(ctx context.Context, image string, a oci.Access) ([][]byte, error) {
	read := func(ctx context.Context) ([][]byte, int, error) {
		objects, err := l.from.BundleObjects(ctx, image, a)
		size := 0
		for _, o := range objects {
			size += len(o)
		}
		return objects, size, err
	}
	if !strings.Contains(image, "@sha256:") {
		// A tag may move, so its content is not kept.
		objects, _, err := read(ctx)
		return objects, err
	}
	return once(ctx, l, failureKey(oci.Source{Access: a}, image), key(oci.Source{Access: a}, "bundle", image), read)
}

// maxDependencies bounds how many packages are read for one view.
const maxDependencies = 50

// dependencies returns the packages that could satisfy what the operator's bundles need, and what those need in turn.
func (l *Loader) dependencies(ctx context.Context, r Request, p *catalogs.Package) ([]*catalogs.Package, error) {
	needs, err := requirements(p, r.Installed.Name, r.Next)
	if err != nil || len(needs) == 0 {
		return nil, err
	}
	summary, err := l.Summary(ctx, r.Source, r.Digest)
	if err != nil {
		return nil, err
	}
	met := map[string]bool{p.Name: true}
	var out []*catalogs.Package
	for len(needs) > 0 {
		names := slices.DeleteFunc(providers(summary, needs), func(name string) bool { return met[name] })
		needs = nil
		for _, name := range names {
			met[name] = true
			dependency, more, err := l.dependency(ctx, r, name)
			if err != nil {
				return nil, err
			}
			if dependency != nil {
				out, needs = append(out, dependency), append(needs, more...)
			}
		}
		if len(out) > maxDependencies {
			return nil, fmt.Errorf("%w: more than %d could be needed", ErrTooManyPackages, maxDependencies)
		}
	}
	return out, nil
}

// chosen returns the packages of a view with the manifests of those bundles that the view has of them.
func (l *Loader) chosen(ctx context.Context, r Request, in view.Input) ([]*catalogs.Package, error) {
	if len(in.Others) == 0 {
		return nil, nil
	}
	names, err := view.Dependencies(in)
	if err != nil {
		return nil, err
	}
	out := make([]*catalogs.Package, 0, len(in.Others))
	for _, p := range in.Others {
		if len(names[p.Name]) > 0 {
			if p, err = l.served(ctx, r, p.Name, names[p.Name]); err != nil {
				return nil, err
			}
		}
		if p != nil {
			out = append(out, p)
		}
	}
	return out, nil
}

// served returns a package with the manifests of the named bundles; nil where nothing of it is left.
func (l *Loader) served(ctx context.Context, r Request, name string, bundles []string) (*catalogs.Package, error) {
	p, _, err := l.dependency(ctx, r, name, bundles...)
	if err != nil || p == nil || r.Permit == nil {
		return p, err
	}
	for _, bundle := range bundles { // what OLM unpacks itself is not permitted
		p = l.withObjects(ctx, p, bundle, r.Source.Access)
	}
	return p, nil
}

// dependency returns a package without its blocked versions, with the manifests of the named bundles, and everything
// that any of its bundles needs; nil where nothing else is left of it.
func (l *Loader) dependency(ctx context.Context, r Request, name string, bundles ...string) (*catalogs.Package,
	[]catalogs.Requirement, error) {
	p, err := l.Package(ctx, r.Source, r.Digest, name, bundles...)
	if err != nil {
		return nil, nil, err
	}
	p = unblocked(p, r.Blocks[name], r.Present)
	if p == nil {
		return nil, nil, nil
	}
	if r.Source.Verification.Required() {
		p = onlyCovered(p)
	}
	needs, err := requirements(p, slices.Sorted(maps.Keys(p.Bundles))...)
	return p, needs, err
}

// onlyCovered returns the package without the bundles that a signature of the catalog does not cover; the channels
// still name them.
func onlyCovered(p *catalogs.Package) *catalogs.Package {
	out := *p
	out.Bundles = map[string]*catalogs.Bundle{}
	for name := range p.Bundles {
		if one, err := covered(p, name); err == nil {
			out.Bundles[name] = one.Bundles[name]
		}
	}
	return &out
}

// unblocked returns the package without those of the blocked versions that are not there already: OLM exchanges what is
// there for nothing older.
func unblocked(p *catalogs.Package, blocks []catalogs.Block, present []string) *catalogs.Package {
	blocks = slices.DeleteFunc(slices.Clone(blocks), func(block catalogs.Block) bool {
		return slices.ContainsFunc(present, func(name string) bool {
			b, ok := p.Bundles[name]
			return ok && b.VersionString() == block.Version
		})
	})
	if len(blocks) == 0 && len(p.Blocks) == 0 {
		return p
	}
	good, err := p.WithBlocked(blocks...)
	if err != nil {
		return nil // nothing installable is left
	}
	for name := range good.Blocks {
		if !slices.Contains(present, name) {
			delete(good.Bundles, name)
		}
	}
	return good
}

func requirements(p *catalogs.Package, bundles ...string) ([]catalogs.Requirement, error) {
	var out []catalogs.Requirement
	for _, name := range bundles {
		b, ok := p.Bundles[name]
		if !ok {
			continue
		}
		needs, err := b.Requirements()
		if err != nil {
			return nil, err
		}
		out = append(out, needs...)
	}
	return out, nil
}

// providers are the installable packages that a need could refer to, sorted.
func providers(summary catalogs.Summary, needs []catalogs.Requirement) []string {
	found := map[string]bool{}
	for _, p := range summary.Packages {
		if p.Problem == "" && slices.ContainsFunc(needs, func(n catalogs.Requirement) bool { return concerns(n, p) }) {
			found[p.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func concerns(need catalogs.Requirement, p catalogs.PackageSummary) bool {
	switch {
	case need.Package != "":
		return need.Package == p.Name
	case need.GVK != nil:
		return slices.Contains(p.Provides, *need.GVK)
	default:
		return slices.ContainsFunc(slices.Concat(need.All, need.Any),
			func(n catalogs.Requirement) bool { return concerns(n, p) })
	}
}
