// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lab gives benchmarks what they measure on: a hub's API server, a cluster with OLM and pods, and agents, all
// of them processes of their own on this machine. It measures nothing.
package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/platform"
	"github.com/bellwether-dev/bellwether/testbed/process"
	"github.com/bellwether-dev/bellwether/testbed/runs"
)

// ClusterName is the name of the one cluster of the fleet.
const ClusterName = "bench"

// Lab is a hub without controllers, so that the benchmark itself admits, and one cluster.
type Lab struct {
	// Hub and Cluster have full access.
	Hub, Cluster client.WithWatch

	run          *runs.Run
	etcd         *cluster.Etcd
	binaries     map[string]string
	hub, cluster *cluster.Cluster
}

// Start builds what is missing and starts everything; out receives a line per step. images maps the images whose pods
// run to the programs of package build; other pods are stubs that are simply Ready.
func Start(ctx context.Context, out io.Writer, name string, images map[string]string) (*Lab, error) {
	run, err := runs.Claim(ctx, fmt.Sprintf("bench-%s-%d", name, os.Getpid()))
	if err != nil {
		return nil, err
	}
	l := &Lab{run: run}
	if err := l.start(ctx, out, images); err != nil {
		return nil, errors.Join(fmt.Errorf("start lab (logs stay in %s for a day): %w", run.Dir(), err),
			l.Stop(context.WithoutCancel(ctx), ctx.Err() == nil))
	}
	return l, nil
}

func (l *Lab) start(ctx context.Context, out io.Writer, images map[string]string) error {
	if err := l.build(ctx, out, images); err != nil {
		return err
	}
	etcd, err := cluster.StartEtcd(ctx, filepath.Join(l.run.Dir(), "etcd"), l.binaries[build.Etcd])
	if err != nil {
		return err
	}
	l.etcd = etcd
	if err := l.startClusters(ctx, out, images); err != nil {
		return err
	}
	root, err := build.Root()
	if err != nil {
		return err
	}
	if err := l.hub.InstallCRDs(filepath.Join(root, "charts", "bellwether", "files", "crds")); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterNamespace(ClusterName)}}
	if err := l.Hub.Create(ctx, namespace); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	return nil
}

func (l *Lab) build(ctx context.Context, out io.Writer, images map[string]string) error {
	binaries, err := build.Ensure(ctx, out, cluster.Options{OLM: true}.Components()...)
	if err != nil {
		return err
	}
	programs := []string{build.Agent, build.PodRunner}
	for _, program := range images {
		programs = append(programs, program)
	}
	own, err := build.Local(ctx, out, filepath.Join(l.run.Dir(), "bin"), programs...)
	if err != nil {
		return err
	}
	maps.Copy(binaries, own)
	l.binaries = binaries
	return nil
}

func (l *Lab) startClusters(ctx context.Context, out io.Writer, images map[string]string) error {
	table := map[string]cluster.Image{}
	for image, program := range images {
		table[image] = cluster.Image{Path: l.binaries[program]}
	}
	group, ctx := errgroup.WithContext(ctx)
	start := func(to **cluster.Cluster, reach *client.WithWatch, o cluster.Options) {
		o.Dir, o.Binaries, o.Etcd, o.Out = filepath.Join(l.run.Dir(), o.Name), l.binaries, l.etcd, out
		group.Go(func() (err error) {
			if *to, err = cluster.Start(ctx, o); err != nil {
				return err
			}
			*reach, err = connect(*to)
			return err
		})
	}
	start(&l.hub, &l.Hub, cluster.Options{Name: "hub", APIServerOnly: true})
	start(&l.cluster, &l.Cluster, cluster.Options{Name: ClusterName, OLM: true, Pods: true, Images: table})
	return group.Wait()
}

func connect(c *cluster.Cluster) (client.WithWatch, error) {
	scheme := platform.Scheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("build scheme: %w", err)
	}
	k, err := client.NewWithWatch(c.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make client of %s: %w", c.Name(), err)
	}
	return k, nil
}

// Dir is a folder for the benchmark's own files; it is removed with the lab.
func (l *Lab) Dir() string { return l.run.Dir() }

// Stop ends everything and removes the files, but for logs if keepLogs is set.
func (l *Lab) Stop(ctx context.Context, keepLogs bool) error {
	for _, c := range []*cluster.Cluster{l.hub, l.cluster} {
		if c != nil {
			c.Stop(ctx)
		}
	}
	if l.etcd != nil {
		l.etcd.Stop(ctx)
	}
	return l.run.Release(keepLogs)
}

// ClusterKubeconfig is the path of a kubeconfig with full access to the cluster.
func (l *Lab) ClusterKubeconfig() string { return l.cluster.Kubeconfig() }

// StartAgent runs an agent as its chart does, but for the addresses; args come besides. It ends with the lab at the
// latest.
func (l *Lab) StartAgent(args ...string) (*process.Process, error) {
	dir := filepath.Join(l.run.Dir(), "agent")
	for _, folder := range []string{filepath.Join(dir, "logs"), filepath.Join(dir, "cache")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, fmt.Errorf("create folder: %w", err)
		}
	}
	return process.Start(process.Spec{
		Name: build.Agent, Path: l.binaries[build.Agent], Dir: dir, Log: process.LogPath(dir, build.Agent),
		Args: append([]string{
			"--cluster", ClusterName, "--hub-kubeconfig", l.hub.Kubeconfig(), "--kubeconfig", l.cluster.Kubeconfig(),
			"--view-bind-address", "127.0.0.1", "--view-ports", "50100-59999", "--cache-dir",
			filepath.Join(dir, "cache"),
			"--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0",
		}, args...),
	})
}
