// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command compile-catalog compiles every package of a file-based catalog anew: it reads the bundles out of the
// catalog's files, computes all edges, has OLM v0's resolver and v1's rules judge them, compares the result with what
// was there, and writes it. Benchmarks compare that with what else validates the same files.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/compile"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
)

func main() {
	in := flag.String("in", "", "folder that holds the catalog, with one file for each package")
	out := flag.String("out", "", "folder to write to")
	flag.Parse()
	debug.SetGCPercent(400) // as `bellwether catalog compile` does
	if err := run(*in, *out); err != nil {
		fmt.Fprintln(os.Stderr, "compile-catalog:", err)
		os.Exit(1)
	}
}

func run(in, out string) error {
	// One package for each processor is in memory at a time.
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	err := filepath.WalkDir(in, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		group.Go(func() error {
			if err := compileFile(path, out); err != nil {
				return fmt.Errorf("compile %s: %w", path, err)
			}
			return nil
		})
		return nil
	})
	return errors.Join(err, group.Wait())
}

func compileFile(path, out string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	packages, err := catalogs.ReadAll(catalogs.SingleFile(path, f))
	if err != nil {
		return err
	}
	for _, p := range packages {
		if err := compilePackage(p, out); err != nil {
			return err
		}
	}
	return nil
}

func compilePackage(p *catalogs.Package, out string) error {
	l := &ladder.Ladder{
		APIVersion: ladder.APIVersion, Kind: ladder.Kind, Package: p.Name, Channels: []string{p.DefaultChannel},
		Policy: ladder.Policy{Content: ladder.Inline},
	}
	contents := compile.ContentMap{}
	for name, b := range p.Bundles {
		version := b.VersionString()
		bundle, err := bundles.FromManifests(b.Objects, map[string]string{bundles.AnnotationPackage: p.Name})
		if err != nil {
			return fmt.Errorf("read bundle %s: %w", name, err)
		}
		contents[version] = compile.Content{Bundle: bundle}
		l.Bundles = append(l.Bundles, ladder.Bundle{Version: version, Name: name, Path: version,
			Channel: p.DefaultChannel})
	}
	result, err := compile.Compile(compile.Input{Ladder: l, Contents: contents, Previous: p, Now: time.Now()})
	if err != nil {
		return err
	}
	dir := filepath.Join(out, p.Name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, "catalog.json"))
	if err != nil {
		return err
	}
	return errors.Join(result.Write(f), f.Close())
}
