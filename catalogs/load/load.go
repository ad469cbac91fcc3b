// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package load reads the parts of a catalog that the hub and the agent need, and caches them: equal requests at the
// same time share one read, and results are kept within a memory limit. Results are kept by digest, so they never
// become stale.
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

// ErrTooManyPackages means that a bundle's dependencies include too many packages of the catalog.
var ErrTooManyPackages = errors.New("too many packages")

// Catalogs reads catalogs from their sources, as *oci.Client does.
type Catalogs interface {
	Resolve(ctx context.Context, s oci.Source) (string, error)
	Open(ctx context.Context, s oci.Source, digest string) (catalogs.Files, error)
	BundleObjects(ctx context.Context, image string, a oci.Access) ([][]byte, error)
	// Decode calls decode, and records that the digest is being read.
	Decode(digest string, decode func() error) error
}

// Options configure a Loader.
type Options struct {
	// MaxBytes bounds the cache, by the size of the manifests and metadata; zero means 16 MiB. A larger single result
	// is returned but not kept.
	MaxBytes int
	// Budget bounds the memory of one read of a catalog; zero means catalogs.DefaultBudget.
	Budget catalogs.Budget
	// Timeout bounds one read of a catalog; zero means 10 minutes.
	Timeout time.Duration
	// Now is the clock of the back-off; nil means time.Now.
	Now func() time.Time
}

// Loader reads and caches packages. Its methods can be called concurrently; their results are shared and must not
// be changed.
type Loader struct {
	source  Catalogs
	timeout time.Duration
	budget  catalogs.Budget
	// decoding is a lock for decoding bundles, because decoding several at a time would need too much memory.
	decoding chan struct{}
	flight   singleflight.Group
	cache    *lru
	failures *failures
}

// New returns a loader that reads from source.
func New(source Catalogs, o Options) *Loader {
	now := o.Now
	if now == nil {
		now = time.Now
	}
	return &Loader{source: source, timeout: cmp.Or(o.Timeout, 10*time.Minute),
		cache:  newLRU(cmp.Or(o.MaxBytes, 16<<20)),
		budget: o.Budget, decoding: make(chan struct{}, 1), failures: &failures{now: now, byKey: map[string]failure{}}}
}

// Resolve returns the present digest of a source. The digest is never cached.
func (l *Loader) Resolve(ctx context.Context, s oci.Source) (string, error) {
	digest, err := l.source.Resolve(ctx, s)
	logDetail(ctx, err)
	return digest, err
}

// logDetail logs the detail of a registry error that must not be in an object.
func logDetail(ctx context.Context, err error) {
	if detail := oci.Detail(err); detail != "" {
		logr.FromContextOrDiscard(ctx).V(1).Info("Cannot read from registry", "error", err.Error(), "detail", detail)
	}
}

// Summary returns what a catalog offers.
func (l *Loader) Summary(ctx context.Context, s oci.Source, digest string) (catalogs.Summary, error) {
	k := buildKey(s, "summary", digest)
	return readOnce(ctx, l, buildFailureKey(s, digest), k, func(ctx context.Context) (catalogs.Summary, int, error) {
		files, err := l.source.Open(ctx, s, digest)
		if err != nil {
			return catalogs.Summary{}, 0, err
		}
		summary, err := l.budget.ReadSummary(files)
		return summary, estimateSummarySize(summary), err
	})
}

// Package returns a package with its whole graph, and with the manifests of the named bundles only.
func (l *Loader) Package(ctx context.Context, s oci.Source, digest, name string, bundles ...string) (*catalogs.Package,
	error) {
	bundles = slices.DeleteFunc(slices.Clone(bundles), func(b string) bool { return b == "" })
	slices.Sort(bundles)
	k := buildKey(s, append([]string{"package", digest, name}, bundles...)...)
	return readOnce(ctx, l, buildFailureKey(s, digest), k, func(ctx context.Context) (*catalogs.Package, int, error) {
		files, err := l.source.Open(ctx, s, digest)
		if err != nil {
			return nil, 0, err
		}
		p, err := l.budget.ReadPackageWithManifests(files, name, bundles...)
		if err != nil {
			return nil, 0, err
		}
		return p, estimatePackageSize(p), nil
	})
}

// RunDecoding calls decode, which decodes bundles of a catalog with that digest, when no other call decodes. If decode
// exhausts the memory of the process, the digest is not read again. An error of decode is returned unchanged.
func (l *Loader) RunDecoding(ctx context.Context, digest string, decode func() error) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("decode bundles: %w", context.Cause(ctx))
	case l.decoding <- struct{}{}:
	}
	defer func() { <-l.decoding }()
	return l.source.Decode(digest, decode)
}

// Bundles returns a package with the manifests of the named bundles only, including bundles whose manifests are in an
// image. A bundle whose image cannot be read has no manifests.
func (l *Loader) Bundles(ctx context.Context, s oci.Source, digest, name string, bundles ...string) (*catalogs.Package,
	error) {
	p, err := l.Package(ctx, s, digest, name, bundles...)
	if err != nil {
		return nil, err
	}
	for _, bundle := range bundles {
		p = l.addObjects(ctx, p, bundle, s.Access)
	}
	return p, nil
}

// buildKey returns the key of a request. It contains the login and the public keys, so that a result without
// signature verification, or with another login, is not used for the request.
func buildKey(s oci.Source, parts ...string) string {
	if login := s.Access.Key(); login != "" {
		parts = append(parts, "with login "+login)
	}
	for _, k := range s.Verification.PublicKeys {
		parts = append(parts, "signed by "+string(k))
	}
	return strings.Join(parts, "\x00")
}

// readOnce returns a cached result, or reads once for all concurrent callers. If a caller gives up, the read
// continues for the other callers and for a retry. read returns a result and its size in bytes. A failed read is not
// repeated for a while; if the digest itself is the cause, other reads with the same digestKey are not repeated either.
func readOnce[T any](ctx context.Context, l *Loader, digestKey, key string,
	read func(context.Context) (T, int, error)) (T, error) {
	var zero T
	if cached, ok := l.cache.get(key); ok {
		return cached.(T), nil
	}
	done := l.flight.DoChan(key, func() (any, error) {
		if err := l.failures.getError(digestKey, key); err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.timeout)
		defer cancel()
		result, size, err := read(ctx)
		logDetail(ctx, err)
		l.failures.record(digestKey, key, err)
		if err != nil {
			return nil, err
		}
		l.cache.put(key, result, size)
		return result, nil
	})
	select {
	case <-ctx.Done():
		return zero, fmt.Errorf("read catalog: %w", context.Cause(ctx))
	case result := <-done:
		if result.Err != nil {
			return zero, result.Err
		}
		return result.Val.(T), nil
	}
}

// Request describes the view of one operator on one cluster; see view.Input for the fields with the same names.
type Request struct {
	Source oci.Source
	Digest string
	// PullBundles reads the manifests of bundles that the catalog names only by image, so that they can be inlined.
	// If that fails, the bundle keeps its image and OLM unpacks it.
	PullBundles bool

	Package   string
	Channel   string
	Installed catalogs.Installed
	Next      string
	Present   []string
	MaxInline int
	// Back is set if Next is older than Installed. The view then contains the bundle that Back returns, and
	// View.Rollback its requirements.
	Back Back
	// Blocks are blocks by package, besides those of the catalog itself. A dependency is never installed in a blocked
	// version, unless that version is already present. The caller must check that Next is not blocked.
	Blocks map[string][]catalogs.Block
	// Permit checks each bundle that OLM would install from the view, by its manifests, or by the image from which
	// OLM would unpack them; the image is empty if the manifests are inlined. An error of Permit is returned
	// unchanged. Nil permits every bundle. The loader decodes no other bundle while Permit runs, so it must not wait
	// for anything.
	Permit func(bundle, image string, objects [][]byte) error
}

// View reads the content of a view and builds it. The error wraps oci.ErrUnsigned if the source requires a signature
// and the signature does not cover the bundle that is served completely.
func (l *Loader) View(ctx context.Context, r Request) (view.View, error) {
	if r.Back != nil {
		p, rollback, err := l.loadRollback(ctx, r)
		if err != nil {
			return view.View{}, err
		}
		v, err := l.build(ctx, r, p)
		v.Rollback = &rollback
		return v, err
	}
	// During an upgrade only the next bundle is served completely, and otherwise only the installed bundle.
	wanted := cmp.Or(r.Next, r.Installed.Name)
	p, err := l.Package(ctx, r.Source, r.Digest, r.Package, wanted)
	if err != nil {
		return view.View{}, err
	}
	if r.Source.Verification.Required() {
		if p, err = requireCovered(p, wanted); err != nil {
			return view.View{}, err
		}
	}
	if r.PullBundles {
		p = l.addObjects(ctx, p, wanted, r.Source.Access)
	}
	return l.build(ctx, r, p)
}

// build reads the dependencies of a package, builds the view, and checks its bundles with r.Permit.
func (l *Loader) build(ctx context.Context, r Request, p *catalogs.Package) (view.View, error) {
	in := view.Input{Package: p, Channel: r.Channel, Installed: r.Installed, Next: r.Next, Present: r.Present,
		MaxInline: r.MaxInline}
	var err error
	if in.Others, err = l.findDependencies(ctx, r, p); err == nil {
		in.Others, err = l.loadChosen(ctx, r, in)
	}
	if err != nil {
		return view.View{}, fmt.Errorf("read dependencies of package %q: %w", r.Package, err)
	}
	var v view.View
	err = l.RunDecoding(ctx, r.Digest, func() (err error) {
		v, err = view.Build(in)
		return err
	})
	if err != nil || r.Permit == nil {
		return v, err
	}
	return v, l.checkPermitted(ctx, r, v)
}

// checkPermitted calls Permit for each bundle that the view serves completely.
func (l *Loader) checkPermitted(ctx context.Context, r Request, v view.View) error {
	packages := map[string]*catalogs.Package{}
	for _, p := range v.Packages {
		packages[p.Name] = p
	}
	for _, served := range v.Bundles {
		if served.Route == view.Stub { // OLM does not install a stub
			continue
		}
		b, image := packages[served.Package].Bundles[served.Name], ""
		if served.Route == view.Unpack {
			image = b.Image
			// A bundle is also served by image if its image could not be read. Permit must then not be called.
			if _, err := l.readObjects(ctx, image, r.Source.Access); err != nil {
				return fmt.Errorf("read image of bundle %q: %w", b.Name, err)
			}
		}
		permit := func() error { return r.Permit(b.Name, image, b.Objects) }
		if err := l.RunDecoding(ctx, r.Digest, permit); err != nil {
			return err
		}
	}
	return nil
}

// requireCovered returns a package in which the content of a bundle is covered by the signature of the catalog. The
// signature does not cover an image that the catalog names by a tag, because the tag can be moved. Such an image is
// removed from the bundle; if the bundle has no other content, the error wraps oci.ErrUnsigned.
func requireCovered(p *catalogs.Package, bundle string) (*catalogs.Package, error) {
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

// addObjects returns the package with the manifests in a bundle's image. If they cannot be read, it returns the
// package unchanged.
func (l *Loader) addObjects(ctx context.Context, p *catalogs.Package, bundle string, a oci.Access) *catalogs.Package {
	b, ok := p.Bundles[bundle]
	if !ok || b.Image == "" || len(b.Objects) > 0 {
		return p
	}
	objects, err := l.readObjects(ctx, b.Image, a)
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

// readObjects returns the manifests in a bundle image, and caches them if the image has a digest.
func (l *Loader) readObjects(ctx context.Context, image string, a oci.Access) ([][]byte, error) {
	read := func(ctx context.Context) ([][]byte, int, error) {
		objects, err := l.source.BundleObjects(ctx, image, a)
		size := 0
		for _, o := range objects {
			size += len(o)
		}
		return objects, size, err
	}
	if !strings.Contains(image, "@sha256:") {
		// A tag can be moved, so its content is not cached.
		objects, _, err := read(ctx)
		return objects, err
	}
	source := oci.Source{Access: a}
	return readOnce(ctx, l, buildFailureKey(source, image), buildKey(source, "bundle", image), read)
}

// maxDependencies bounds how many packages are read for one view.
const maxDependencies = 50

// findDependencies returns the packages that could satisfy the requirements of the operator's bundles, directly
// or transitively.
func (l *Loader) findDependencies(ctx context.Context, r Request, p *catalogs.Package) ([]*catalogs.Package, error) {
	needs, err := listRequirements(p, r.Installed.Name, r.Next)
	if err != nil || len(needs) == 0 {
		return nil, err
	}
	summary, err := l.Summary(ctx, r.Source, r.Digest)
	if err != nil {
		return nil, err
	}
	isRead := map[string]bool{p.Name: true}
	var out []*catalogs.Package
	for len(needs) > 0 {
		names := slices.DeleteFunc(listProviders(summary, needs), func(name string) bool { return isRead[name] })
		needs = nil
		for _, name := range names {
			isRead[name] = true
			dependency, more, err := l.loadDependency(ctx, r, name)
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

// loadChosen returns the packages in.Others, with the manifests of the bundles that the view contains. It omits a
// package that has no installable bundle left.
func (l *Loader) loadChosen(ctx context.Context, r Request, in view.Input) ([]*catalogs.Package, error) {
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
			if p, err = l.loadServed(ctx, r, p.Name, names[p.Name]); err != nil {
				return nil, err
			}
		}
		if p != nil {
			out = append(out, p)
		}
	}
	return out, nil
}

// loadServed returns a package with the manifests of the named bundles; nil if it has no bundle left.
func (l *Loader) loadServed(ctx context.Context, r Request, name string, bundles []string) (*catalogs.Package, error) {
	p, _, err := l.loadDependency(ctx, r, name, bundles...)
	if err != nil || p == nil || r.Permit == nil {
		return p, err
	}
	for _, bundle := range bundles { // Permit cannot check images that OLM unpacks itself
		p = l.addObjects(ctx, p, bundle, r.Source.Access)
	}
	return p, nil
}

// loadDependency returns a package without its blocked versions, with the manifests of the named bundles, and the
// requirements of all its bundles. The package is nil if it has no bundle left.
func (l *Loader) loadDependency(ctx context.Context, r Request, name string, bundles ...string) (*catalogs.Package,
	[]catalogs.Requirement, error) {
	p, err := l.Package(ctx, r.Source, r.Digest, name, bundles...)
	if err != nil {
		return nil, nil, err
	}
	p = removeBlocked(p, r.Blocks[name], r.Present)
	if p == nil {
		return nil, nil, nil
	}
	if r.Source.Verification.Required() {
		p = removeUncovered(p)
	}
	needs, err := listRequirements(p, slices.Sorted(maps.Keys(p.Bundles))...)
	return p, needs, err
}

// removeUncovered returns the package without the bundles that a signature of the catalog does not cover; the
// channels still name these bundles.
func removeUncovered(p *catalogs.Package) *catalogs.Package {
	out := *p
	out.Bundles = map[string]*catalogs.Bundle{}
	for name := range p.Bundles {
		if covered, err := requireCovered(p, name); err == nil {
			out.Bundles[name] = covered.Bundles[name]
		}
	}
	return &out
}

// removeBlocked returns the package without its blocked versions. It keeps blocked versions that are already present,
// because OLM does not replace a present bundle by an older bundle. It returns nil if no installable bundle is left.
func removeBlocked(p *catalogs.Package, blocks []catalogs.Block, present []string) *catalogs.Package {
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
		return nil // no installable bundle is left
	}
	for name := range good.Blocks {
		if !slices.Contains(present, name) {
			delete(good.Bundles, name)
		}
	}
	return good
}

// listRequirements returns the requirements of the named bundles. It ignores bundles that the package does not have.
func listRequirements(p *catalogs.Package, bundles ...string) ([]catalogs.Requirement, error) {
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

// listProviders returns the installable packages that could satisfy a requirement, sorted.
func listProviders(summary catalogs.Summary, needs []catalogs.Requirement) []string {
	found := map[string]bool{}
	for _, p := range summary.Packages {
		isNeeded := func(n catalogs.Requirement) bool { return canProvide(n, p) }
		if p.Problem == "" && slices.ContainsFunc(needs, isNeeded) {
			found[p.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// canProvide reports whether a package could satisfy a requirement, or a part of it.
func canProvide(need catalogs.Requirement, p catalogs.PackageSummary) bool {
	switch {
	case need.Package != "":
		return need.Package == p.Name
	case need.GVK != nil:
		return slices.Contains(p.Provides, *need.GVK)
	default:
		return slices.ContainsFunc(slices.Concat(need.All, need.Any),
			func(n catalogs.Requirement) bool { return canProvide(n, p) })
	}
}
