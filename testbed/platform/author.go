// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bellwether-dev/bellwether/testbed/echo"
	"github.com/bellwether-dev/bellwether/testbed/echo/bundle"
)

// Names within an author's folder.
const (
	ladders  = "ladders"
	bundles  = "bundles"
	compiled = "catalog"
	key      = "release"
)

// Author is the author of the sample operator at work: a folder with a ladder file, the bundles that were built so far,
// and a key to sign with. All work is done by the command line.
type Author struct {
	// Ref is where the catalog is published.
	Ref string
	// Dir is the author's folder, in which Run runs the command line.
	Dir string
	// Run runs the command line in Dir.
	Run func(ctx context.Context, args ...string) error

	platform *Platform
}

// Command is the command line in Dir, ready to run. Authors' commands do not talk to the hub, and have no namespace.
func (a *Author) Command(ctx context.Context, out io.Writer, args ...string) *exec.Cmd {
	c := a.platform.Program(ctx, out, args...)
	c.Dir = a.Dir
	return c
}

// Author returns the author of a catalog of that name. A new one gets a key and an empty ladder.
func (p *Platform) Author(ctx context.Context, name string) (*Author, error) {
	a := &Author{
		Ref: p.Registry + "/catalogs/" + name + ":latest", Dir: filepath.Join(p.Fleet.Dir(), "catalogs", name),
		platform: p,
	}
	a.Run = func(ctx context.Context, args ...string) error {
		return run(a.Command(ctx, &bytes.Buffer{}, args...))
	}
	if _, err := os.Stat(filepath.Join(a.Dir, key+".pub")); err == nil {
		return a, nil
	}
	if err := os.MkdirAll(a.Dir, 0o750); err != nil {
		return nil, fmt.Errorf("create author's folder: %w", err)
	}
	if err := a.Run(ctx, "catalog", "init", ladders, "--package", bundle.Package); err != nil {
		return nil, err
	}
	return a, a.Run(ctx, "catalog", "keygen", key, "--no-password")
}

// PublicKey returns the key, in PEM, that verifies what the author publishes.
func (a *Author) PublicKey() (string, error) {
	text, err := os.ReadFile(filepath.Join(a.Dir, key+".pub"))
	return string(text), err
}

// Release brings a version of the sample operator to the top of the ladder: its bundle is linted against those before
// it, pushed, added and promoted. A version that is on the ladder is left alone.
func (a *Author) Release(ctx context.Context, version string) error {
	dir := filepath.Join(bundles, version)
	if _, err := os.Stat(filepath.Join(a.Dir, dir)); err == nil {
		return nil
	}
	content, err := fs.Sub(echo.Bundles(), version)
	if err != nil {
		return fmt.Errorf("find bundle %s: %w", version, err)
	}
	if err := os.CopyFS(filepath.Join(a.Dir, dir), content); err != nil {
		return fmt.Errorf("write bundle %s: %w", version, err)
	}
	image := a.platform.Registry + "/bundles/" + bundle.Package + ":" + version
	for _, args := range [][]string{
		{"bundle", "lint", dir, "--history", bundles},
		{"bundle", "push", dir, image},
		{"catalog", "add", ladders, image},
		{"catalog", "promote", filepath.Join(ladders, bundle.Package+".yaml"), version, "--to", bundle.Channel},
	} {
		if err := a.Run(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// Publish compiles, signs and publishes the catalog as the ladder is now.
func (a *Author) Publish(ctx context.Context) error {
	if err := a.Run(ctx, "catalog", "compile", ladders, compiled); err != nil {
		return err
	}
	return a.Run(ctx, "catalog", "publish", compiled, a.Ref, "--key", key+".key")
}
