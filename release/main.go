// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release builds what users install: container images, archives of the command line, the chart.
//
//	release images --registry REGISTRY      the images of hub, agent and bellwether
//	release all --version 1.2.3 --registry REGISTRY --output DIR      everything of a release
//
// It runs in the root of the repository, and needs Go and git, but no container engine.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/sign"
	"github.com/bellwether-dev/bellwether/release/image"
	"github.com/bellwether-dev/bellwether/release/notes"
	"github.com/bellwether-dev/bellwether/release/provenance"
	"github.com/bellwether-dev/bellwether/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// options are what both commands take.
type options struct {
	root      string
	version   string
	registry  string
	base      string
	platforms []string
	laptops   []string
	key       string
	insecure  bool
	out       io.Writer
}

func command() *cobra.Command {
	o := options{root: ".", laptops: laptops}
	root := &cobra.Command{Use: "release", Short: "Build what users install", SilenceUsage: true, SilenceErrors: true}
	fs := root.PersistentFlags()
	fs.StringVar(&o.version, "version", "",
		"version of the release, as in 1.2.3 (default for images: that of the commit)")
	fs.StringVar(&o.registry, "registry", "", "where images and chart are pushed below, as in "+image.DefaultRegistry)
	fs.StringVar(&o.base, "base", "",
		"image that the images are built on, best by digest (default: one made of nothing, with certificates)")
	fs.StringSliceVar(&o.platforms, "platforms", image.Platforms, "platforms of the images")
	fs.StringVar(&o.key, "key", "", "private key that signs images and chart; its password is in COSIGN_PASSWORD")
	fs.BoolVar(&o.insecure, "insecure", false,
		"allow plain HTTP and unknown certificates beyond the loopback interface")
	_ = root.MarkPersistentFlagRequired("registry")

	images := &cobra.Command{Use: "images", Short: "Build and push the images", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.out = c.OutOrStdout()
			_, err := o.images(c.Context())
			return err
		}}
	output := "dist"
	all := &cobra.Command{Use: "all", Short: "Build a release", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.out = c.OutOrStdout()
			return o.all(c.Context(), output)
		}}
	all.Flags().StringVar(&output, "output", output, "folder for what is not pushed")
	root.AddCommand(images, all)
	return root
}

// check completes the options.
func (o *options) check() error {
	o.registry = strings.TrimSuffix(o.registry, "/")
	if o.version == "" {
		return nil
	}
	if err := version.Check(o.version); err != nil {
		return fmt.Errorf("--version: %w", err)
	}
	o.version = strings.TrimPrefix(o.version, "v")
	return nil
}

func (o *options) access() oci.Access { return oci.Access{Insecure: o.insecure} }

// target is where images are published, and with which key they and their provenance are signed.
func (o *options) target(ctx context.Context) (image.Target, error) {
	t := image.Target{Client: oci.NewClient(oci.Options{}), Registry: o.registry, Access: o.access()}
	if o.key == "" {
		return t, nil
	}
	text, err := os.ReadFile(o.key)
	if err != nil {
		return t, fmt.Errorf("read private key: %w", err)
	}
	t.Signer, err = sign.NewSigner(text, func() ([]byte, error) { return []byte(os.Getenv("COSIGN_PASSWORD")), nil })
	if errors.Is(err, sign.ErrPassword) {
		return t, fmt.Errorf("%s: %w: set COSIGN_PASSWORD", o.key, err)
	}
	if err != nil {
		return t, err
	}
	commit, err := notes.Head(ctx, o.root)
	if err != nil {
		return t, err
	}
	t.Provenance, err = provenance.Build{Version: o.version, Registry: o.registry, Base: o.base, Platforms: o.platforms,
		Commit: commit, Go: runtime.Version(), Builder: provenance.BuilderOf(os.Getenv)}.Predicate()
	return t, err
}

// images builds the programs for every platform, publishes their images, and prints a line of JSON for each.
func (o *options) images(ctx context.Context) ([]image.Published, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	t, err := o.target(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bellwether-images-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	programs, err := o.compile(ctx, dir)
	if err != nil {
		return nil, err
	}
	base := o.bases(ctx, t)
	var out []image.Published
	for _, name := range image.Names {
		s, err := image.NewSet(slices.DeleteFunc(slices.Clone(programs), func(p image.Program) bool {
			return p.Name != name
		}), base)
		if err != nil {
			return nil, err
		}
		published, err := t.Publish(ctx, s)
		if err != nil {
			return nil, err
		}
		line, err := json.Marshal(published)
		if err != nil {
			return nil, fmt.Errorf("print image: %w", err)
		}
		fmt.Fprintln(o.out, string(line))
		out = append(out, published)
	}
	return out, nil
}

func (o *options) compile(ctx context.Context, dir string) ([]image.Program, error) {
	var out []image.Program
	for _, platform := range o.platforms {
		fmt.Fprintln(os.Stderr, "building for", platform)
		programs, err := image.Compile(ctx, image.Compilation{Root: o.root, Names: image.Names, Platform: platform,
			Release: o.version, Registry: o.linkedRegistry()},
			filepath.Join(dir, strings.ReplaceAll(platform, "/", "-")))
		if err != nil {
			return nil, err
		}
		out = append(out, programs...)
	}
	return out, nil
}

// linkedRegistry is the registry that the command line of a release installs from.
func (o *options) linkedRegistry() string {
	if o.version == "" || o.registry == image.DefaultRegistry {
		return ""
	}
	return o.registry
}

// bases returns the base for a platform, which is made or pulled once.
func (o *options) bases(ctx context.Context, t image.Target) func(v1.Platform) (v1.Image, error) {
	made := map[string]v1.Image{}
	return func(p v1.Platform) (v1.Image, error) {
		key := p.String()
		if o.base == "" {
			key = "" // it is the same for all
		}
		if img, ok := made[key]; ok {
			return img, nil
		}
		img, err := image.DefaultBase()
		if o.base != "" {
			img, err = t.Client.Pull(ctx, o.base, p, t.Access)
		}
		if err != nil {
			return nil, fmt.Errorf("get base: %w", err)
		}
		made[key] = img
		return img, nil
	}
}
