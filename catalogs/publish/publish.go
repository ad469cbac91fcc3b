// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package publish brings a compiled catalog to a registry, whole or not at all.
//
// Its inputs are a directory, a tag, and what the tag holds now. Everything goes to the registry by digest first:
// bundles, catalog, the list of what is in it, and the signature. The tag moves last, and only if it still holds what
// was compared with. So whoever follows the tag sees the old catalog or the new one with everything that belongs to it;
// a publish that was killed or failed half-way has changed nothing for anybody, and repeating it finishes it.
//
// It does not decide what a catalog says: that is compiled before.
package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/opm"
	"github.com/bellwether-dev/bellwether/catalogs/sbom"
	"github.com/bellwether-dev/bellwether/catalogs/sign"
)

var (
	// ErrContinuity says that something which the tag's catalog offers would be lost.
	ErrContinuity = errors.New("continuity broken")
	// ErrMissingBundles says that the catalog names bundles which their registries do not have.
	ErrMissingBundles = errors.New("missing bundles")
	// ErrNoDigest says that a catalog names a bundle by something that can change.
	ErrNoDigest = errors.New("no digest")
)

// Stage is a part of publishing.
type Stage string

// The stages, in their order.
const (
	StageCompare   Stage = "compare"
	StageBundles   Stage = "bundles"
	StageCatalog   Stage = "catalog"
	StageSBOM      Stage = "sbom"
	StageSignature Stage = "signature"
	StageTag       Stage = "tag"
)

// Progress is how far a publish got.
type Progress struct {
	Stage Stage
	// Done and Total count bundles; elsewhere both are 1.
	Done, Total int
	// Text describes what was done.
	Text string
}

// Nothing is what Input.Expect says where the tag must not exist yet.
const Nothing = "none"

// Input says what to publish and where.
type Input struct {
	// Dir holds the compiled catalog.
	Dir string
	// Ref is the tag to publish as.
	Ref    string
	Access oci.Access
	// Bundles are local bundle directories by the image that the catalog names: repository@digest. They are pushed
	// first.
	Bundles map[string]string
	// Mirrored are images to copy, by the image that the catalog names, as Mirror returns them.
	Mirrored map[string]string
	// SkipBundleCheck leaves out the look at whether the registries have the catalog's bundles.
	SkipBundleCheck bool
	// Signer signs the catalog; nil leaves it unsigned.
	Signer *sign.Signer
	// Expect is the digest that the tag must hold, or Nothing; empty accepts what it holds when publishing begins.
	Expect string
	// Force publishes in spite of losses, for the reason given; it is kept with the catalog's SBOM.
	Force string
	// Report is called after each step, from several goroutines but never at the same time; it may be nil.
	Report func(Progress)
}

// Result says what was published.
type Result struct {
	Ref string `json:"ref"`
	// Digest is the catalog's; Previous is what the tag held before, if anything.
	Digest   string `json:"digest"`
	Previous string `json:"previous,omitempty"`
	// Changed is false where the tag held this very catalog already.
	Changed bool `json:"changed"`
	// Packages and Bundles count what the catalog has.
	Packages int `json:"packages"`
	Bundles  int `json:"bundles"`
	// Pushed, Copied and Checked count the bundles that were written, copied and looked for.
	Pushed  int `json:"pushedBundles"`
	Copied  int `json:"copiedBundles"`
	Checked int `json:"checkedBundles"`
	// SBOM is the digest of the manifest that attaches the list of what is in the catalog.
	SBOM string `json:"sbom"`
	// Signed reports whether the catalog has a signature by the signer's key; Unsigned, that it replaces one with a
	// signature and there was no signer.
	Signed   bool `json:"signed"`
	Unsigned bool `json:"unsigned,omitempty"`
	// Losses are what was forced through.
	Losses []Loss `json:"losses,omitempty"`
}

// forcedAnnotation holds, on the manifest of the SBOM, why a catalog was published in spite of losses.
const forcedAnnotation = "bellwether.dev/forced"

// Publish publishes a catalog. Errors wrap those of this package, of package oci (oci.ErrMoved where the tag holds
// something unexpected), or those of reading a catalog. A LossError lists what would be lost.
func Publish(ctx context.Context, client *oci.Client, in Input) (Result, error) {
	p := &publisher{client: client, in: in, result: Result{Ref: in.Ref}}
	if in.Report == nil {
		p.in.Report = func(Progress) {}
	}
	for _, step := range []func(context.Context) error{
		p.read, p.compare, p.bundles, p.catalog, p.sbom, p.signature, p.tag,
	} {
		if err := step(ctx); err != nil {
			return Result{}, fmt.Errorf("publish %s: %w", in.Ref, err)
		}
	}
	return p.result, nil
}

// LossError lists what publishing would lose.
type LossError struct{ Losses []Loss }

// Error names the first loss, and how many there are.
func (e *LossError) Error() string {
	text := fmt.Sprintf("%v: %v", ErrContinuity, e.Losses[0])
	if more := len(e.Losses) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// Unwrap makes it an ErrContinuity.
func (e *LossError) Unwrap() error { return ErrContinuity }

type publisher struct {
	client *oci.Client
	in     Input
	result Result

	repository       string
	packages, before []*catalogs.Package
	image            string // repository@digest
}

func (p *publisher) report(stage Stage, format string, args ...any) {
	p.in.Report(Progress{Stage: stage, Done: 1, Total: 1, Text: fmt.Sprintf(format, args...)})
}

// read reads what is to be published. Nothing is sent before all of it is known to be good.
func (p *publisher) read(ctx context.Context) error {
	var err error
	if p.repository, err = oci.Repository(p.in.Ref); err != nil {
		return err
	}
	if p.packages, err = readValid(ctx, p.client, oci.Source{Directory: p.in.Dir},
		catalogs.ReadWithImages); err != nil {
		return err
	}
	p.result.Packages = len(p.packages)
	for _, pkg := range p.packages {
		p.result.Bundles += len(pkg.Bundles)
	}
	return nil
}

// CheckFolder reports why the catalog in a folder cannot be published anywhere: it is none, or opm refuses it.
func CheckFolder(ctx context.Context, client *oci.Client, dir string) error {
	_, err := readValid(ctx, client, oci.Source{Directory: dir}, catalogs.ReadEach)
	return err
}

// eachReader is catalogs.ReadEach, or catalogs.ReadWithImages where the images of operators are needed: to find them
// means to decode each ClusterServiceVersion.
type eachReader func(catalogs.Files, func(pkg string, b *catalogs.Bundle) error) ([]*catalogs.Package, error)

// readValid reads what must be a catalog for other tools too. The error of what opm refuses wraps
// catalogs.ErrInvalidPackage.
func readValid(ctx context.Context, client *oci.Client, s oci.Source, read eachReader) ([]*catalogs.Package, error) {
	files, err := open(ctx, client, s)
	if err != nil {
		return nil, err
	}
	packages, err := read(files, opm.CheckBundle)
	if err != nil {
		return nil, err
	}
	problems := make([]error, len(packages))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, p := range packages {
		group.Go(func() error {
			problems[i] = opm.Check(p)
			return nil
		})
	}
	_ = group.Wait() // each has its own error
	return packages, errors.Join(problems...)
}

func readGraphs(ctx context.Context, client *oci.Client, s oci.Source) ([]*catalogs.Package, error) {
	files, err := open(ctx, client, s)
	if err != nil {
		return nil, err
	}
	return catalogs.ReadGraphs(files)
}

// open opens what a source holds now.
func open(ctx context.Context, client *oci.Client, s oci.Source) (catalogs.Files, error) {
	digest, err := client.Resolve(ctx, s)
	if err != nil {
		return nil, err
	}
	return client.Open(ctx, s, digest)
}

// compare reads what the tag holds and finds what would be lost.
func (p *publisher) compare(ctx context.Context) error {
	held, err := p.client.Held(ctx, p.in.Ref, p.in.Access)
	if err != nil {
		return err
	}
	p.result.Previous = held
	if p.in.Expect != "" && cmp.Or(held, Nothing) != p.in.Expect {
		return fmt.Errorf("%w: it holds %s, expected was %s", oci.ErrMoved, cmp.Or(held, Nothing), p.in.Expect)
	}
	if held == "" {
		p.report(StageCompare, "%s is new", p.in.Ref)
		return nil
	}
	p.before, err = readGraphs(ctx, p.client, oci.Source{Image: p.repository + "@" + held, Access: p.in.Access})
	switch {
	case errors.Is(err, catalogs.ErrNotCatalog) || errors.Is(err, catalogs.ErrInvalidPackage):
		if p.in.Force == "" {
			return fmt.Errorf("compare with what the tag holds: %w", err)
		}
		p.before = nil
	case err != nil:
		return fmt.Errorf("compare with what the tag holds: %w", err)
	}
	p.result.Losses = Losses(p.before, p.packages)
	if len(p.result.Losses) > 0 && p.in.Force == "" {
		return &LossError{Losses: p.result.Losses}
	}
	p.report(StageCompare, "compared with %s, which it replaces", held)
	return nil
}

// bundles brings the catalog's bundles to where it says they are, and looks for those that are said to be there
// already, except those that the former catalog had as well.
func (p *publisher) bundles(ctx context.Context) error {
	known := images(p.before)
	var wanted []string
	for _, image := range slices.Sorted(maps.Keys(images(p.packages))) {
		if !strings.Contains(image, "@sha256:") {
			return fmt.Errorf("%w: the catalog names the bundle %s, and what that is can change", ErrNoDigest, image)
		}
		// A bundle that is at hand is brought again: that costs one question if the registry still has it.
		if p.in.Bundles[image] != "" || p.in.Mirrored[image] != "" || !known[image] {
			wanted = append(wanted, image)
		}
	}
	results := make([]bundleResult, len(wanted))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	var mu sync.Mutex
	done := 0
	for i, image := range wanted {
		group.Go(func() error {
			var err error
			if results[i], err = p.bundle(ctx, image); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			p.in.Report(Progress{Stage: StageBundles, Done: done, Total: len(wanted), Text: string(results[i]) + " " +
				image})
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return p.count(wanted, results)
}

func (p *publisher) count(wanted []string, results []bundleResult) error {
	var missing []string
	for i, r := range results {
		switch r {
		case bundlePushed:
			p.result.Pushed++
		case bundleCopied:
			p.result.Copied++
		case bundleFound:
			p.result.Checked++
		case bundleMissing:
			missing = append(missing, wanted[i])
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: there is no %s", ErrMissingBundles, strings.Join(missing, ", no "))
	}
	return nil
}

// bundleResult describes what was done with a bundle.
type bundleResult string

const (
	bundlePushed  bundleResult = "pushed"
	bundleCopied  bundleResult = "copied"
	bundleFound   bundleResult = "found"
	bundleMissing bundleResult = "missing"
	bundleSkipped bundleResult = "not looked for"
)

func (p *publisher) bundle(ctx context.Context, image string) (bundleResult, error) {
	if dir := p.in.Bundles[image]; dir != "" {
		return bundlePushed, p.pushBundle(ctx, image, dir)
	}
	if from := p.in.Mirrored[image]; from != "" {
		return bundleCopied, p.copyBundle(ctx, image, from)
	}
	if p.in.SkipBundleCheck {
		return bundleSkipped, nil
	}
	err := p.client.Exists(ctx, image, p.in.Access)
	if errors.Is(err, oci.ErrNotFound) {
		return bundleMissing, nil
	}
	if err != nil {
		return "", fmt.Errorf("look for a bundle: %w", err)
	}
	return bundleFound, nil
}

func (p *publisher) copyBundle(ctx context.Context, image, from string) error {
	repository, err := oci.Repository(image)
	if err != nil {
		return err
	}
	if _, err := p.client.Copy(ctx, from, repository, p.in.Access, p.in.Access); err != nil {
		return fmt.Errorf("mirror a bundle: %w", err)
	}
	return p.client.Keep(ctx, image, "bundle", p.in.Access)
}

func (p *publisher) pushBundle(ctx context.Context, image, dir string) error {
	img, err := oci.BundleImage(dir)
	if err != nil {
		return err
	}
	digest, err := img.Digest()
	if err != nil {
		return fmt.Errorf("digest bundle %s: %w", dir, err)
	}
	if want := digestOf(image); want != digest.String() {
		return fmt.Errorf("push bundle %s: %w: the catalog names %s, and the folder is %s", dir, oci.ErrDigestMismatch,
			want, digest)
	}
	repository, err := oci.Repository(image)
	if err != nil {
		return err
	}
	if _, err = p.client.PushImage(ctx, img, repository, p.in.Access); err != nil {
		return err
	}
	return p.client.Keep(ctx, image, "bundle", p.in.Access)
}

// images are the bundle images of a catalog.
func images(packages []*catalogs.Package) map[string]bool {
	out := map[string]bool{}
	for _, p := range packages {
		for _, b := range p.Bundles {
			if b.Image != "" {
				out[b.Image] = true
			}
		}
	}
	return out
}

func (p *publisher) catalog(ctx context.Context) error {
	img, err := p.client.CatalogImage(p.in.Dir)
	if err != nil {
		return err
	}
	if p.image, err = p.client.PushImage(ctx, img, p.repository, p.in.Access); err != nil {
		return err
	}
	if err := p.client.Keep(ctx, p.image, "catalog", p.in.Access); err != nil {
		return err
	}
	p.result.Digest = digestOf(p.image)
	p.report(StageCatalog, "pushed the catalog, %s", p.result.Digest)
	return nil
}

func (p *publisher) sbom(ctx context.Context) error {
	list, err := sbom.Of(p.repository, p.result.Digest, p.packages)
	if err != nil {
		return err
	}
	artifact := oci.Artifact{Type: sbom.MediaType, Content: list}
	if p.in.Force != "" {
		artifact.Annotations = map[string]string{forcedAnnotation: p.in.Force}
	}
	if p.result.SBOM, err = p.client.Attach(ctx, p.image, artifact, p.in.Access); err != nil {
		return fmt.Errorf("attach SBOM: %w", err)
	}
	p.report(StageSBOM, "attached the SBOM")
	return nil
}

// signature signs the catalog, unless that key has signed it before: signing again would add a further signature.
func (p *publisher) signature(ctx context.Context) error {
	if p.in.Signer == nil {
		return p.unsigned(ctx)
	}
	p.result.Signed = true
	source := oci.Source{Image: p.image, Access: p.in.Access,
		Verification: oci.Verification{PublicKeys: [][]byte{p.in.Signer.PublicKey()}}}
	err := p.client.Verify(ctx, source, p.result.Digest)
	if err == nil {
		p.report(StageSignature, "it was signed by this key before")
		return nil
	}
	if !errors.Is(err, oci.ErrUnsigned) && !errors.Is(err, oci.ErrBadSignature) {
		return err
	}
	bundle, err := p.in.Signer.Sign(p.result.Digest)
	if err != nil {
		return err
	}
	if _, err := p.client.Attach(ctx, p.image, oci.SignatureArtifact(bundle), p.in.Access); err != nil {
		return fmt.Errorf("attach signature: %w", err)
	}
	p.report(StageSignature, "signed")
	return nil
}

// unsigned checks whether clusters that require a signature would refuse the catalog.
func (p *publisher) unsigned(ctx context.Context) error {
	if p.result.Previous == "" || p.result.Previous == p.result.Digest {
		return nil
	}
	former, err := p.client.Attached(ctx, p.repository+"@"+p.result.Previous, sign.BundleMediaType, p.in.Access)
	if err != nil {
		return fmt.Errorf("look for a signature of what the tag holds: %w", err)
	}
	own, err := p.client.Attached(ctx, p.image, sign.BundleMediaType, p.in.Access)
	if err != nil {
		return fmt.Errorf("look for a signature: %w", err)
	}
	p.result.Unsigned = len(former) > 0 && len(own) == 0
	return nil
}

func (p *publisher) tag(ctx context.Context) error {
	p.result.Changed = p.result.Previous != p.result.Digest
	if err := p.client.MoveTag(ctx, p.in.Ref, p.result.Digest, p.result.Previous, p.in.Access); err != nil {
		return err
	}
	p.report(StageTag, "%s holds it", p.in.Ref)
	return nil
}
