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
	"github.com/bellwether-dev/bellwether/release/archive"
	"github.com/bellwether-dev/bellwether/release/image"
	"github.com/bellwether-dev/bellwether/release/notes"
	"github.com/bellwether-dev/bellwether/release/provenance"
)

// laptops are the platforms of the archives of the command line, unless options name others.
var laptops = []string{"darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64", "windows/amd64", "windows/arm64"}

// checksums is the file with the SHA-256 of all others, as sha256sum --check reads it.
const checksums = "checksums.txt"

// all builds a release into a folder, and pushes its images and its chart. What users see moves last: the tags of the
// images and of the chart are new ones, so an interrupted release can be built again.
func (o *options) all(ctx context.Context, dir string) error {
	if o.version == "" {
		return errors.New("--version is needed, as in 1.2.3")
	}
	if err := o.check(); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	at, err := notes.CommitTime(ctx, o.root)
	if err != nil {
		return err
	}
	files, err := o.archives(ctx, dir, at)
	if err != nil {
		return err
	}
	images, err := o.images(ctx)
	if err != nil {
		return err
	}
	digests := map[string]string{}
	for _, p := range images {
		digests[p.Name] = p.Digest
	}
	chart, packaged, err := o.chart(ctx, digests, at)
	if err != nil {
		return err
	}
	forOLM, manifest, err := o.olm(ctx, digests)
	if err != nil {
		return err
	}
	crds, err := charts.CRDs()
	if err != nil {
		return err
	}
	text, err := o.releaseNotes(ctx, slices.Concat(images, []image.Published{chart}, forOLM))
	if err != nil {
		return err
	}
	contents := map[string][]byte{
		"bellwether-crds.yaml": crds, "bellwether-" + o.version + ".tgz": packaged, "release-notes.md": []byte(text),
	}
	if len(forOLM) > 0 {
		contents[olmManifest] = manifest
	}
	return o.finish(ctx, dir, files, contents)
}

// finish writes the last files of a release, the checksums of all, and how they were built.
func (o *options) finish(ctx context.Context, dir string, files []string, contents map[string][]byte) error {
	for name, content := range contents {
		if err := write(dir, name, content); err != nil {
			return err
		}
		files = append(files, name)
	}
	if err := sum(dir, files); err != nil {
		return err
	}
	return o.attest(ctx, dir, append(files, checksums))
}

// statement is the file that says how all others were built, signed.
const statement = "provenance.sigstore.json"

// attest writes the provenance of files, if there is a key to sign it with.
func (o *options) attest(ctx context.Context, dir string, names []string) error {
	t, err := o.target(ctx)
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
	bundle, err := t.Signer.Attest(provenance.Type, t.Provenance, subjects...)
	if err != nil {
		return fmt.Errorf("attest the files of the release: %w", err)
	}
	return write(dir, statement, bundle)
}

// releaseNotes are those of what was published.
func (o *options) releaseNotes(ctx context.Context, images []image.Published) (string, error) {
	commits, err := notes.Since(ctx, o.root)
	if err != nil {
		return "", err
	}
	upgrade, err := notes.UpgradeNotes(o.root, o.version)
	if err != nil {
		return "", err
	}
	return notes.Markdown(notes.Release{Version: o.version, Upgrade: upgrade, Commits: commits, Images: images}), nil
}

// archives builds the command line for each platform, with licence and README.
func (o *options) archives(ctx context.Context, dir string, at time.Time) ([]string, error) {
	temp, err := os.MkdirTemp("", "bellwether-archives-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(temp) }()
	var names []string
	for _, platform := range o.laptops {
		fmt.Fprintln(os.Stderr, "building the command line for", platform)
		programs, err := image.Compile(ctx, image.Compilation{Root: o.root, Names: []string{image.Bellwether},
			Platform: platform, Release: o.version, Registry: o.linkedRegistry()},
			filepath.Join(temp, strings.ReplaceAll(platform, "/", "-")))
		if err != nil {
			return nil, err
		}
		p := programs[0].Platform
		name := fmt.Sprintf("bellwether_%s_%s_%s", o.version, p.OS, p.Architecture)
		entries := []archive.Entry{{Name: filepath.Base(programs[0].File), File: programs[0].File, Mode: 0o755}}
		for _, text := range []string{"LICENSE", "README.md"} {
			entries = append(entries, archive.Entry{Name: text, File: filepath.Join(o.root, text), Mode: 0o644})
		}
		var out bytes.Buffer
		pack, suffix := archive.TarGz, ".tar.gz"
		if p.OS == "windows" {
			pack, suffix = archive.Zip, ".zip"
		}
		if err := pack(&out, at, entries); err != nil {
			return nil, fmt.Errorf("make archive %s: %w", name, err)
		}
		if err := write(dir, name+suffix, out.Bytes()); err != nil {
			return nil, err
		}
		names = append(names, name+suffix)
	}
	return names, nil
}

// chart packages the chart with the digests of the images, and pushes it.
func (o *options) chart(ctx context.Context, digests map[string]string, at time.Time) (image.Published, []byte, error) {
	var out bytes.Buffer
	release := charts.Release{Version: o.version, Registry: o.registry, Digests: digests}
	if err := release.Package(&out, at); err != nil {
		return image.Published{}, nil, fmt.Errorf("package chart: %w", err)
	}
	t, err := o.target(ctx)
	if err != nil {
		return image.Published{}, nil, err
	}
	published, err := t.PublishChart(ctx, o.version, out.Bytes(), at)
	if err != nil {
		return image.Published{}, nil, err
	}
	return published, out.Bytes(), nil
}

func write(dir, name string, content []byte) error {
	//nolint:gosec // what is released is for everybody
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// sum writes the checksums of files.
func sum(dir string, names []string) error {
	slices.Sort(names)
	var out strings.Builder
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("sum %s: %w", name, err)
		}
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(content), name)
	}
	return write(dir, checksums, []byte(out.String()))
}
