// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/fleet"
)

// checkEvery is how often a running fleet is looked at.
const checkEvery = 2 * time.Second

type upOptions struct {
	name     string
	clusters []string
	images   []string
	noPods   bool
	detach   bool
	// progress is set in a detached child: the descriptor on which its parent listens until the fleet is up.
	progress int
}

func newUp(name *string) *cobra.Command {
	var o upOptions
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a hub and its clusters",
		Long: `Start a hub and its clusters.

In the foreground Ctrl-C stops and removes everything; nothing is left even if this command is killed (on
Linux at once, elsewhere with the next run). With --detach the fleet stays until "testbed down".`,
		Example: `  testbed up --clusters canary,prod-eu,prod-us
  testbed up --name scratch --clusters one --detach
  testbed up --image example.com/acme/operator=./bin/operator`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.name = *name
			if o.detach {
				return detach(cmd.Context(), cmd.OutOrStdout(), o)
			}
			return up(cmd.Context(), cmd.OutOrStdout(), o)
		},
	}
	cmd.Flags().StringSliceVar(&o.clusters, "clusters", fleet.DefaultClusters,
		"names of the fleet's clusters, without the hub")
	cmd.Flags().StringArrayVar(&o.images, "image", nil,
		"IMAGE=PATH: pods of this image run the program at PATH (repeatable); other images are stubs")
	cmd.Flags().BoolVar(&o.noPods, "no-pods", false, "run no pods: workloads stay pending")
	cmd.Flags().BoolVar(&o.detach, "detach", false, "leave the fleet running in the background")
	cmd.Flags().IntVar(&o.progress, "progress-fd", 0, "")
	_ = cmd.Flags().MarkHidden("progress-fd")
	return cmd
}

// up runs the fleet until ctx ends or one of its API servers dies.
func up(ctx context.Context, out io.Writer, o upOptions) error {
	images, err := parseImages(o.images)
	if err != nil {
		return err
	}
	listener := io.WriteCloser(nopCloser{out})
	if o.progress > 0 {
		// The components must not inherit it, or the parent would listen as long as they live.
		syscall.CloseOnExec(o.progress)
		listener = os.NewFile(uintptr(o.progress), "progress")
	}
	f, err := fleet.Start(ctx, fleet.Options{Name: o.name, Clusters: o.clusters, Images: images, WithoutPods: o.noPods,
		Out: listener})
	if err != nil {
		return err
	}
	if o.progress == 0 {
		printKubeconfigs(out, o.name)
		say(out, "\nCtrl-C stops and removes everything.\n")
	}
	_ = listener.Close()
	failure := watch(ctx, f)
	if failure == nil && o.progress == 0 {
		say(out, "\nstopping ...\n")
	}
	if err := f.Stop(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	return failure
}

// watch returns nil when ctx ends, or the failure of a cluster.
func watch(ctx context.Context, f *fleet.Fleet) error {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := f.Failure(); err != nil {
			return err
		}
	}
}

func parseImages(pairs []string) (map[string]cluster.Image, error) {
	images := make(map[string]cluster.Image, len(pairs))
	for _, pair := range pairs {
		image, path, ok := strings.Cut(pair, "=")
		if !ok || image == "" || path == "" {
			return nil, fmt.Errorf("parse --image %q: want IMAGE=PATH", pair)
		}
		path, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("find program of image %s: %w", image, err)
		}
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("find program of image %s: %w", image, err)
		}
		images[image] = cluster.Image{Path: path}
	}
	return images, nil
}

func printKubeconfigs(out io.Writer, name string) {
	state, err := fleet.Read(name)
	if err != nil {
		say(out, "%v\n", err)
		return
	}
	say(out, "\n")
	for _, member := range state.Clusters {
		say(out, "%-12s export KUBECONFIG=%s\n", member.Name, member.Kubeconfig)
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
