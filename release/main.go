// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release builds the artifacts that users install: container images, archives of the command line, the chart.
// The notes of a release come from its page in docs/releases and the commits since the previous release.
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
	"github.com/bellwether-dev/bellwether/internal/version"
	"github.com/bellwether-dev/bellwether/release/image"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// options are the flags of both commands.
type options struct {
	root         string
	version      string
	registry     string
	base         string
	platforms    []string
	cliPlatforms []string
	key          string
	insecure     bool
	out          io.Writer
}

// newCommand returns the command with its subcommands images and all.
func newCommand() *cobra.Command {
	o := options{root: ".", cliPlatforms: defaultCLIPlatforms}
	root := &cobra.Command{Use: "release", Short: "Build what users install", SilenceUsage: true, SilenceErrors: true}
	fs := root.PersistentFlags()
	fs.StringVar(&o.version, "version", "",
		"version of the release, as in 1.2.3 (default for images: the version of the commit)")
	fs.StringVar(&o.registry, "registry", "", "where images and chart are pushed below, as in "+image.DefaultRegistry)
	fs.StringVar(&o.base, "base", "",
		"image that the images are built on, best by digest (default: an image with only certificates and users)")
	fs.StringSliceVar(&o.platforms, "platforms", image.Platforms, "platforms of the images")
	fs.StringVar(&o.key, "key", "", "private key that signs images and chart; its password is in COSIGN_PASSWORD")
	fs.BoolVar(&o.insecure, "insecure", false,
		"allow plain HTTP and unknown certificates beyond the loopback interface")
	_ = root.MarkPersistentFlagRequired("registry")

	images := &cobra.Command{Use: "images", Short: "Build and push the images", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.out = c.OutOrStdout()
			_, err := o.publishImages(c.Context())
			return err
		}}
	output := "dist"
	all := &cobra.Command{Use: "all", Short: "Build a release", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.out = c.OutOrStdout()
			return o.buildRelease(c.Context(), output)
		}}
	all.Flags().StringVar(&output, "output", output, "folder for the files that are not pushed")
	root.AddCommand(images, all)
	return root
}

// complete normalizes the registry and the version. It returns an error
// if the version is invalid.
func (o *options) complete() error {
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

// newAccess returns how registries are accessed.
func (o *options) newAccess() oci.Access { return oci.Access{Insecure: o.insecure} }

// newTarget returns where images are published, with the signer and the
// provenance if there is a key.
func (o *options) newTarget(ctx context.Context) (image.Target, error) {
	t := image.Target{Client: oci.NewClient(oci.Options{}), Registry: o.registry, Access: o.newAccess()}
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
	commit, err := readHead(ctx, o.root)
	if err != nil {
		return t, err
	}
	t.Provenance, err = image.Build{Version: o.version, Registry: o.registry, Base: o.base, Platforms: o.platforms,
		Commit: commit, Go: runtime.Version(), Builder: image.ReadBuilder(os.Getenv)}.Predicate()
	return t, err
}

// publishImages builds the programs for every platform, publishes their images, and prints a
// line of JSON for each image.
func (o *options) publishImages(ctx context.Context) ([]image.Published, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	t, err := o.newTarget(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bellwether-images-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	programs, err := o.compilePrograms(ctx, dir)
	if err != nil {
		return nil, err
	}
	base := o.newBaseProvider(ctx, t)
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

// compilePrograms builds all programs for all platforms.
func (o *options) compilePrograms(ctx context.Context, dir string) ([]image.Program, error) {
	var out []image.Program
	for _, platform := range o.platforms {
		fmt.Fprintln(os.Stderr, "building for", platform)
		programs, err := image.Compile(ctx, image.Compilation{Root: o.root, Names: image.Names, Platform: platform,
			Release: o.version, Registry: o.getLinkedRegistry()},
			filepath.Join(dir, strings.ReplaceAll(platform, "/", "-")))
		if err != nil {
			return nil, err
		}
		out = append(out, programs...)
	}
	return out, nil
}

// getLinkedRegistry returns the registry from which the command line of this release installs
// images; empty for the default.
func (o *options) getLinkedRegistry() string {
	if o.version == "" || o.registry == image.DefaultRegistry {
		return ""
	}
	return o.registry
}

// newBaseProvider returns a function that returns the base image for a platform. Each
// base is built or pulled once.
func (o *options) newBaseProvider(ctx context.Context, t image.Target) func(v1.Platform) (v1.Image, error) {
	cached := map[string]v1.Image{}
	return func(p v1.Platform) (v1.Image, error) {
		key := p.String()
		if o.base == "" {
			key = "" // all platforms have the same base
		}
		if img, ok := cached[key]; ok {
			return img, nil
		}
		img, err := image.DefaultBase()
		if o.base != "" {
			img, err = t.Client.Pull(ctx, o.base, p, t.Access)
		}
		if err != nil {
			return nil, fmt.Errorf("get base: %w", err)
		}
		cached[key] = img
		return img, nil
	}
}
