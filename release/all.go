// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	intoto "github.com/in-toto/attestation/go/v1"

	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/release/image"
)

// defaultCLIPlatforms are the default platforms of the archives of the command line.
var defaultCLIPlatforms = []string{"darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64", "windows/amd64",
	"windows/arm64"}

// checksumFile is the file with the SHA-256 of all other files, in the
// format of sha256sum --check.
const checksumFile = "checksums.txt"

// buildRelease builds a release into a folder, and pushes its images and its chart. The tags of
// images and chart are new, and users see a tag only after its content was pushed, so an
// interrupted release can be built again.
func (o *options) buildRelease(ctx context.Context, dir string) error {
	if o.version == "" {
		return errors.New("--version is needed, as in 1.2.3")
	}
	if err := o.complete(); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	at, err := readCommitTime(ctx, o.root)
	if err != nil {
		return err
	}
	files, err := o.buildArchives(ctx, dir, at)
	if err != nil {
		return err
	}
	images, err := o.publishImages(ctx)
	if err != nil {
		return err
	}
	digests := map[string]string{}
	for _, p := range images {
		digests[p.Name] = p.Digest
	}
	chart, packaged, err := o.publishChart(ctx, digests, at)
	if err != nil {
		return err
	}
	olmImages, manifest, err := o.publishOLM(ctx, digests)
	if err != nil {
		return err
	}
	crds, err := charts.CRDs()
	if err != nil {
		return err
	}
	text, err := o.buildNotes(ctx, slices.Concat(images, []image.Published{chart}, olmImages))
	if err != nil {
		return err
	}
	contents := map[string][]byte{
		"bellwether-crds.yaml": crds, "bellwether-" + o.version + ".tgz": packaged, "release-notes.md": []byte(text),
	}
	if len(olmImages) > 0 {
		contents[olmManifest] = manifest
	}
	return o.writeRemainingFiles(ctx, dir, files, contents)
}

// writeRemainingFiles writes the last files of a release, the checksums of all
// files, and their provenance.
func (o *options) writeRemainingFiles(ctx context.Context, dir string, files []string,
	contents map[string][]byte) error {
	for name, content := range contents {
		if err := writeFile(dir, name, content); err != nil {
			return err
		}
		files = append(files, name)
	}
	if err := writeChecksums(dir, files); err != nil {
		return err
	}
	return o.writeProvenance(ctx, dir, append(files, checksumFile))
}

// provenanceFile is the file with the signed provenance of all other files.
const provenanceFile = "provenance.sigstore.json"

// writeProvenance writes the signed provenance of files. Without a key, it writes nothing.
func (o *options) writeProvenance(ctx context.Context, dir string, names []string) error {
	t, err := o.newTarget(ctx)
	if err != nil || t.Signer == nil {
		return err
	}
	var subjects []*intoto.ResourceDescriptor
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("attest %s: %w", name, err)
		}
		subjects = append(subjects, &intoto.ResourceDescriptor{Name: name,
			Digest: map[string]string{"sha256": fmt.Sprintf("%x", sha256.Sum256(content))}})
	}
	bundle, err := t.Signer.Attest(image.Type, t.Provenance, subjects...)
	if err != nil {
		return fmt.Errorf("attest the files of the release: %w", err)
	}
	return writeFile(dir, provenanceFile, bundle)
}

// buildNotes returns the release notes as Markdown.
func (o *options) buildNotes(ctx context.Context, images []image.Published) (string, error) {
	commits, err := listCommits(ctx, o.root)
	if err != nil {
		return "", err
	}
	upgrade, err := readUpgradeNotes(o.root, o.version)
	if err != nil {
		return "", err
	}
	return formatNotes(notesInput{Version: o.version, Upgrade: upgrade, Commits: commits, Images: images}), nil
}

// buildArchives builds the command line for each platform, and writes archives with the program,
// the licence and the README. It returns the names of the archives.
func (o *options) buildArchives(ctx context.Context, dir string, at time.Time) ([]string, error) {
	temp, err := os.MkdirTemp("", "bellwether-archives-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(temp) }()
	var names []string
	for _, platform := range o.cliPlatforms {
		fmt.Fprintln(os.Stderr, "building the command line for", platform)
		programs, err := image.Compile(ctx, image.Compilation{Root: o.root, Names: []string{image.Bellwether},
			Platform: platform, Release: o.version, Registry: o.getLinkedRegistry()},
			filepath.Join(temp, strings.ReplaceAll(platform, "/", "-")))
		if err != nil {
			return nil, err
		}
		p := programs[0].Platform
		name := fmt.Sprintf("bellwether_%s_%s_%s", o.version, p.OS, p.Architecture)
		entries := []image.Entry{{Name: filepath.Base(programs[0].File), File: programs[0].File, Mode: 0o755}}
		for _, text := range []string{"LICENSE", "README.md"} {
			entries = append(entries, image.Entry{Name: text, File: filepath.Join(o.root, text), Mode: 0o644})
		}
		var out bytes.Buffer
		pack, suffix := image.TarGz, ".tar.gz"
		if p.OS == "windows" {
			pack, suffix = image.Zip, ".zip"
		}
		if err := pack(&out, at, entries); err != nil {
			return nil, fmt.Errorf("make archive %s: %w", name, err)
		}
		if err := writeFile(dir, name+suffix, out.Bytes()); err != nil {
			return nil, err
		}
		names = append(names, name+suffix)
	}
	return names, nil
}

// publishChart packages the chart with the digests of the images, and pushes it. It also
// returns the packaged chart.
func (o *options) publishChart(ctx context.Context, digests map[string]string, at time.Time) (image.Published, []byte,
	error) {
	var out bytes.Buffer
	release := charts.Release{Version: o.version, Registry: o.registry, Digests: digests}
	if err := release.Package(&out, at); err != nil {
		return image.Published{}, nil, fmt.Errorf("package chart: %w", err)
	}
	t, err := o.newTarget(ctx)
	if err != nil {
		return image.Published{}, nil, err
	}
	published, err := t.PublishChart(ctx, o.version, out.Bytes(), at)
	if err != nil {
		return image.Published{}, nil, err
	}
	return published, out.Bytes(), nil
}

// writeFile writes a file of the release into the folder.
func writeFile(dir, name string, content []byte) error {
	//nolint:gosec // released files are public
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// writeChecksums writes the checksums of files in the folder.
func writeChecksums(dir string, names []string) error {
	slices.Sort(names)
	var out strings.Builder
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("sum %s: %w", name, err)
		}
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(content), name)
	}
	return writeFile(dir, checksumFile, []byte(out.String()))
}
