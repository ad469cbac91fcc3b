// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package publish publishes a compiled catalog to a registry, completely or not at all.
//
// Its inputs are a directory, a tag, and the present catalog of the tag. Everything is first pushed by digest:
// bundles, catalog, SBOM, and signature. The tag moves last, and only if it still has the digest with which the
// catalog was compared. So users of the tag see either the old catalog, or the new catalog with everything that
// belongs to it. A publish that was killed or failed half-way has no visible effect, and repeating it completes it.
//
// It does not decide the content of a catalog, which is compiled earlier.
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
	"github.com/bellwether-dev/bellwether/catalogs/agree"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/sbom"
	"github.com/bellwether-dev/bellwether/catalogs/sign"
)

var (
	// ErrContinuity means that something that the tag's catalog offers would be lost.
	ErrContinuity = errors.New("continuity broken")
	// ErrMissingBundles means that registries do not have bundles that the catalog names.
	ErrMissingBundles = errors.New("missing bundles")
	// ErrNoDigest means that a catalog names a bundle by a reference that can change.
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

// Progress is the progress of a publish.
type Progress struct {
	Stage Stage
	// Done and Total count bundles; in other stages both are 1.
	Done, Total int
	// Text describes the completed step.
	Text string
}

// Nothing is the value of Input.Expect if the tag must not exist yet.
const Nothing = "none"

// Input defines what is published and where.
type Input struct {
	// Dir contains the compiled catalog.
	Dir string
	// Ref is the tag under which the catalog is published.
	Ref    string
	Access oci.Access
	// Bundles are local bundle directories by the image that the catalog names: repository@digest. They are
	// pushed first.
	Bundles map[string]string
	// Mirrored are images to copy, by the image that the catalog names, as Mirror returns them.
	Mirrored map[string]string
	// SkipBundleCheck does not check whether the registries have the catalog's bundles.
	SkipBundleCheck bool
	// Signer signs the catalog; nil leaves it unsigned.
	Signer *sign.Signer
	// Expect is the digest that the tag must have, or Nothing; empty accepts the digest that the tag has when
	// publishing begins.
	Expect string
	// Force is the reason to publish in spite of losses; it is kept with the catalog's SBOM. Empty does not
	// permit losses.
	Force string
	// Report is called after each step, from several goroutines but never concurrently; it can be nil.
	Report func(Progress)
}

// Result describes the published catalog.
type Result struct {
	Ref string `json:"ref"`
	// Digest is the digest of the catalog; Previous is the digest that the tag had before, if any.
	Digest   string `json:"digest"`
	Previous string `json:"previous,omitempty"`
	// Changed is false if the tag already had this digest.
	Changed bool `json:"changed"`
	// Packages and Bundles are the numbers of packages and bundles in the catalog.
	Packages int `json:"packages"`
	Bundles  int `json:"bundles"`
	// Pushed, Copied and Checked are the numbers of bundles that were pushed, copied and found in their registry.
	Pushed  int `json:"pushedBundles"`
	Copied  int `json:"copiedBundles"`
	Checked int `json:"checkedBundles"`
	// SBOM is the digest of the manifest of the attached SBOM.
	SBOM string `json:"sbom"`
	// Signed reports whether the catalog has a signature by the signer's key. Unsigned reports that the catalog has
	// no signature although the previous catalog has one.
	Signed   bool `json:"signed"`
	Unsigned bool `json:"unsigned,omitempty"`
	// Losses are the losses that Force permitted.
	Losses []Loss `json:"losses,omitempty"`
}

// forcedAnnotation is an annotation of the SBOM's manifest with the reason why a catalog was published in spite
// of losses.
const forcedAnnotation = "bellwether.dev/forced"

// Publish publishes a catalog. Errors wrap those of this package, those of package oci (oci.ErrMoved if the tag has
// an unexpected digest), or those of reading a catalog. A LossError lists what would be lost.
func Publish(ctx context.Context, client *oci.Client, in Input) (Result, error) {
	p := &publisher{client: client, in: in, result: Result{Ref: in.Ref}}
	if in.Report == nil {
		p.in.Report = func(Progress) {}
	}
	for _, step := range []func(context.Context) error{
		p.readCatalog, p.compareWithTag, p.deliverBundles, p.pushCatalog, p.attachSBOM, p.sign, p.moveTag,
	} {
		if err := step(ctx); err != nil {
			return Result{}, fmt.Errorf("publish %s: %w", in.Ref, err)
		}
	}
	return p.result, nil
}

// LossError lists what publishing would lose.
type LossError struct{ Losses []Loss }

// Error describes the first loss, and the number of further losses.
func (e *LossError) Error() string {
	text := fmt.Sprintf("%v: %v", ErrContinuity, e.Losses[0])
	if more := len(e.Losses) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// Unwrap returns ErrContinuity.
func (e *LossError) Unwrap() error { return ErrContinuity }

type publisher struct {
	client *oci.Client
	in     Input
	result Result

	repository         string
	packages, previous []*catalogs.Package
	image              string // repository@digest
}

func (p *publisher) report(stage Stage, format string, args ...any) {
	p.in.Report(Progress{Stage: stage, Done: 1, Total: 1, Text: fmt.Sprintf(format, args...)})
}

// readCatalog reads and checks the whole catalog. The other steps push it only if it is valid.
func (p *publisher) readCatalog(ctx context.Context) error {
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

// CheckFolder returns an error if the catalog in a folder cannot be published, because it is not a catalog, or opm
// refuses it.
func CheckFolder(ctx context.Context, client *oci.Client, dir string) error {
	_, err := readValid(ctx, client, oci.Source{Directory: dir}, catalogs.ReadEach)
	return err
}

// eachReader is catalogs.ReadEach, or catalogs.ReadWithImages if the images of operators are needed. To find these
// images, each ClusterServiceVersion must be decoded.
type eachReader func(catalogs.Files, func(pkg string, b *catalogs.Bundle) error) ([]*catalogs.Package, error)

// readValid reads a catalog that must be valid for other tools too. If opm refuses it, the error
// wraps catalogs.ErrInvalidPackage.
func readValid(ctx context.Context, client *oci.Client, s oci.Source, read eachReader) ([]*catalogs.Package, error) {
	files, err := openCatalog(ctx, client, s)
	if err != nil {
		return nil, err
	}
	packages, err := read(files, agree.CheckBundleWithOPM)
	if err != nil {
		return nil, err
	}
	problems := make([]error, len(packages))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, p := range packages {
		group.Go(func() error {
			problems[i] = agree.CheckWithOPM(p)
			return nil
		})
	}
	_ = group.Wait() // each has its own error
	return packages, errors.Join(problems...)
}

func readGraphs(ctx context.Context, client *oci.Client, s oci.Source) ([]*catalogs.Package, error) {
	files, err := openCatalog(ctx, client, s)
	if err != nil {
		return nil, err
	}
	return catalogs.ReadGraphs(files)
}

// openCatalog opens the present content of a source.
func openCatalog(ctx context.Context, client *oci.Client, s oci.Source) (catalogs.Files, error) {
	digest, err := client.Resolve(ctx, s)
	if err != nil {
		return nil, err
	}
	return client.Open(ctx, s, digest)
}

// compareWithTag reads the present catalog of the tag and records what would be lost. It returns an error if the tag
// does not have the expected digest, or if there are losses that Force does not permit.
func (p *publisher) compareWithTag(ctx context.Context) error {
	current, err := p.client.TagDigest(ctx, p.in.Ref, p.in.Access)
	if err != nil {
		return err
	}
	p.result.Previous = current
	if p.in.Expect != "" && cmp.Or(current, Nothing) != p.in.Expect {
		return fmt.Errorf("%w: it holds %s, expected was %s", oci.ErrMoved, cmp.Or(current, Nothing), p.in.Expect)
	}
	if current == "" {
		p.report(StageCompare, "%s is new", p.in.Ref)
		return nil
	}
	p.previous, err = readGraphs(ctx, p.client, oci.Source{Image: p.repository + "@" + current, Access: p.in.Access})
	switch {
	case errors.Is(err, catalogs.ErrNotCatalog) || errors.Is(err, catalogs.ErrInvalidPackage):
		if p.in.Force == "" {
			return fmt.Errorf("compare with what the tag holds: %w", err)
		}
		// Force also replaces a catalog that cannot be compared.
		p.previous = nil
	case err != nil:
		return fmt.Errorf("compare with what the tag holds: %w", err)
	}
	p.result.Losses = FindLosses(p.previous, p.packages)
	if len(p.result.Losses) > 0 && p.in.Force == "" {
		return &LossError{Losses: p.result.Losses}
	}
	p.report(StageCompare, "compared with %s, which it replaces", current)
	return nil
}

// deliverBundles pushes or copies bundles to the registries that the catalog names. It checks whether the registries
// have the other bundles, except those that the previous catalog already had.
func (p *publisher) deliverBundles(ctx context.Context) error {
	isKnown := listImages(p.previous)
	var wanted []string
	for _, image := range slices.Sorted(maps.Keys(listImages(p.packages))) {
		if !strings.Contains(image, "@sha256:") {
			return fmt.Errorf("%w: the catalog names the bundle %s, and its content can change", ErrNoDigest, image)
		}
		// An available bundle is always pushed again: this costs one request if the registry still has it.
		if p.in.Bundles[image] != "" || p.in.Mirrored[image] != "" || !isKnown[image] {
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
			if results[i], err = p.deliverBundle(ctx, image); err != nil {
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
	return p.countResults(wanted, results)
}

// countResults adds the results to the counters, and returns an error if bundles are missing.
func (p *publisher) countResults(wanted []string, results []bundleResult) error {
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

// bundleResult is how a bundle was delivered.
type bundleResult string

const (
	bundlePushed  bundleResult = "pushed"
	bundleCopied  bundleResult = "copied"
	bundleFound   bundleResult = "found"
	bundleMissing bundleResult = "missing"
	bundleSkipped bundleResult = "not looked for"
)

// deliverBundle pushes or copies a bundle, or checks that its registry has it.
func (p *publisher) deliverBundle(ctx context.Context, image string) (bundleResult, error) {
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

// copyBundle copies a bundle image to the repository of image, and tags it there.
func (p *publisher) copyBundle(ctx context.Context, image, from string) error {
	repository, err := oci.Repository(image)
	if err != nil {
		return err
	}
	if _, err := p.client.Copy(ctx, from, repository, p.in.Access, p.in.Access); err != nil {
		return fmt.Errorf("mirror a bundle: %w", err)
	}
	return p.client.AddKeepTag(ctx, image, "bundle", p.in.Access)
}

// pushBundle pushes the bundle in a directory, whose digest must be the digest of image.
func (p *publisher) pushBundle(ctx context.Context, image, dir string) error {
	img, err := oci.BundleImage(dir)
	if err != nil {
		return err
	}
	digest, err := img.Digest()
	if err != nil {
		return fmt.Errorf("digest bundle %s: %w", dir, err)
	}
	if want := getDigest(image); want != digest.String() {
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
	return p.client.AddKeepTag(ctx, image, "bundle", p.in.Access)
}

// listImages returns the bundle images of a catalog.
func listImages(packages []*catalogs.Package) map[string]bool {
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

// pushCatalog pushes the catalog by its digest, and adds a tag that keeps it.
func (p *publisher) pushCatalog(ctx context.Context) error {
	img, err := p.client.CatalogImage(p.in.Dir)
	if err != nil {
		return err
	}
	if p.image, err = p.client.PushImage(ctx, img, p.repository, p.in.Access); err != nil {
		return err
	}
	if err := p.client.AddKeepTag(ctx, p.image, "catalog", p.in.Access); err != nil {
		return err
	}
	p.result.Digest = getDigest(p.image)
	p.report(StageCatalog, "pushed the catalog, %s", p.result.Digest)
	return nil
}

// attachSBOM attaches the SBOM of the catalog to its image, with the reason in Force as an annotation.
func (p *publisher) attachSBOM(ctx context.Context) error {
	list, err := sbom.NewCatalogSBOM(p.repository, p.result.Digest, p.packages)
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

// sign signs the catalog. If the catalog already has a signature by this key, it adds no further signature.
// Without a signer, it only records whether a signature is missing.
func (p *publisher) sign(ctx context.Context) error {
	if p.in.Signer == nil {
		return p.recordUnsigned(ctx)
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

// recordUnsigned sets Result.Unsigned to true if clusters that require a signature would refuse the catalog, although
// they accepted the previous catalog.
func (p *publisher) recordUnsigned(ctx context.Context) error {
	if p.result.Previous == "" || p.result.Previous == p.result.Digest {
		return nil
	}
	previous := p.repository + "@" + p.result.Previous
	previousSignatures, err := p.client.ReadArtifacts(ctx, previous, sign.BundleMediaType, p.in.Access)
	if err != nil {
		return fmt.Errorf("look for a signature of what the tag holds: %w", err)
	}
	signatures, err := p.client.ReadArtifacts(ctx, p.image, sign.BundleMediaType, p.in.Access)
	if err != nil {
		return fmt.Errorf("look for a signature: %w", err)
	}
	p.result.Unsigned = len(previousSignatures) > 0 && len(signatures) == 0
	return nil
}

// moveTag moves the tag to the catalog, if it still has the digest with which the catalog was compared.
func (p *publisher) moveTag(ctx context.Context) error {
	p.result.Changed = p.result.Previous != p.result.Digest
	if err := p.client.MoveTag(ctx, p.in.Ref, p.result.Digest, p.result.Previous, p.in.Access); err != nil {
		return err
	}
	p.report(StageTag, "%s holds it", p.in.Ref)
	return nil
}
