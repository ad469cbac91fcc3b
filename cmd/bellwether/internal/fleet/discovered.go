// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/helm"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/internal/kubeconfig"
	"github.com/bellwether-dev/bellwether/fleet"
	"github.com/bellwether-dev/bellwether/fleet/discovery"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// discoveredOptions are the flags of fleet join-discovered.
type discoveredOptions struct {
	joinOptions
	all      bool
	selector string
	parallel int
}

const fleetJoinDiscoveredLong = `Install the agent on clusters that were discovered.

The hub makes a FleetCluster of each Hive ClusterDeployment, ClusterProfile or Cluster
API Cluster, as its discovery is configured. This command installs the agent there. It
reads the administrator's kubeconfig of each cluster from the Secret that its source
names, with your permissions: the hub itself never reads these Secrets.

With --all it takes every cluster that was discovered, several at a time. Clusters that
are online already and clusters that hibernate are left alone, so that you can run it
again at any time. One that fails does not stop the others.

A kubeconfig that would run a program or read a file is refused.`

func (a *app) newJoinDiscoveredCommand() *cobra.Command {
	var o discoveredOptions
	c := &cobra.Command{
		Use: "join-discovered [NAME...]", Short: "Install the agent on discovered clusters",
		Long: fleetJoinDiscoveredLong,
		Example: "  bellwether fleet join-discovered prod-1\n" +
			"  bellwether fleet join-discovered --all -l stage=prod --hub-server https://hub.example.com:6443",
		ValidArgsFunction: a.CompleteFirst(command.ListClusterNames),
		Args: func(_ *cobra.Command, names []string) error {
			switch {
			case o.all && len(names) > 0:
				return exit.Hintf("name clusters or set --all", "unexpected argument %q with --all", names[0])
			case !o.all && len(names) == 0:
				return exit.Hintf("name clusters or set --all", "no cluster is named")
			case !o.all && o.selector != "":
				return exit.Hintf("set --all too", "--selector has no effect without --all")
			case o.parallel < 1:
				return exit.Hintf("use a number from 1", "invalid value %d of --parallel", o.parallel)
			}
			return nil
		},
		RunE: func(c *cobra.Command, names []string) error { return a.joinDiscovered(c.Context(), &o, names) },
	}
	c.Flags().BoolVar(&o.all, "all", false, "Join all clusters that were discovered and are not online.")
	c.Flags().StringVarP(&o.selector, "selector", "l", "",
		"With --all: only the clusters with these labels, for example env=prod,region!=eu.")
	c.Flags().IntVar(&o.parallel, "parallel", 8, "The number of clusters that are joined at a time.")
	c.Flags().StringVar(&o.hubServer, "hub-server", "",
		"The URL at which the clusters reach the hub's API server. Default: the URL in your kubeconfig.")
	command.AddTimeout(c, &o.timeout, 5*time.Minute, "The timeout of each step for one cluster.")
	helm.AddSystemNamespace(c, &o.namespace)
	o.values.Add(c)
	return c
}

// joinDiscovered joins the named clusters, or all discovered clusters with --all.
func (a *app) joinDiscovered(ctx context.Context, o *discoveredOptions, names []string) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	if o.all {
		if names, err = a.selectDiscovered(ctx, h, o.selector); err != nil || len(names) == 0 {
			return err
		}
	}
	// Helm reads kubeconfigs from files, so they are in a temporary folder while agents are installed. An interrupt
	// must not end the program before the folder is removed.
	a.CleansUp.Store(true)
	folder, err := os.MkdirTemp("", "bellwether-join-")
	if err != nil {
		return fmt.Errorf("make a folder for kubeconfigs: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if len(names) == 1 {
		return a.joinOne(ctx, h, o, names[0], folder)
	}
	return a.joinMany(ctx, h, o, names, folder)
}

// selectDiscovered returns the names of the discovered clusters that --all joins,
// and prints how many clusters are skipped and why.
func (a *app) selectDiscovered(ctx context.Context, h *hub.Client, selector string) ([]string, error) {
	parsed, err := command.ParseSelector(selector)
	if err != nil {
		return nil, err
	}
	list := &v1alpha1.FleetClusterList{}
	if err := h.List(ctx, list, client.MatchingLabelsSelector{Selector: parsed}); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	names, skipped := fleet.SelectToJoin(list.Items)
	for _, reason := range slices.Sorted(maps.Keys(skipped)) {
		a.Say("%s %s: left alone.\n", phrase.Count(skipped[reason], "discovered cluster"), reason)
	}
	if len(names) == 0 {
		a.Say("There is no discovered cluster to join.\n")
	}
	return names, nil
}

// joinMany joins clusters in parallel and prints the result of each. After an interrupt it starts no further cluster.
func (a *app) joinMany(ctx context.Context, h *hub.Client, o *discoveredOptions, names []string, folder string) error {
	var (
		group  errgroup.Group
		mu     sync.Mutex
		failed []string
		done   int
	)
	group.SetLimit(o.parallel)
	for _, name := range names {
		group.Go(func() error {
			err := ctx.Err()
			if err == nil {
				err = a.copyWithoutOutput().joinOne(ctx, h, o, name, folder)
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			if err != nil {
				failed = append(failed, name)
				a.Say("✗ %s: %s (%d of %d)\n", name, phrase.OneLine(err.Error()), done, len(names))
			} else {
				a.Step("%s is online (%d of %d)", name, done, len(names))
			}
			return nil
		})
	}
	_ = group.Wait() // the functions collect their errors in failed
	if len(failed) == 0 {
		return nil
	}
	slices.Sort(failed)
	return exit.Hintf("correct what the messages name, and run the command again: it joins the missing clusters",
		"%s %s not joined: %s", phrase.Part(len(failed), len(names), "cluster"),
		phrase.Word(len(names), "was", "were"), phrase.First(failed, 10))
}

// copyWithoutOutput returns a copy of the app that discards its output,
// because the steps of parallel joins would mix.
func (a *app) copyWithoutOutput() *app {
	streams := a.Streams
	streams.Out, streams.ErrOut = &bytes.Buffer{}, &bytes.Buffer{}
	return &app{&command.Env{Streams: streams, Flags: a.Flags, Self: a.Self, Now: a.Now, Connect: a.Connect,
		Watch: a.Watch, Getenv: a.Getenv}}
}

// joinOne joins a cluster with the administrator's kubeconfig that the cluster's source names. Until the join ends,
// the kubeconfig is a file in folder.
func (a *app) joinOne(ctx context.Context, h *hub.Client, o *discoveredOptions, name, folder string) error {
	text, err := readAdminKubeconfig(ctx, h, name)
	if err != nil {
		return err
	}
	file := filepath.Join(folder, name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("keep the kubeconfig of cluster %s: %w", name, err)
	}
	defer func() { _ = os.Remove(file) }()
	options := o.joinOptions
	options.name, options.target = name, hub.NewClusterFlags(file)
	return a.join(ctx, &options)
}

// readAdminKubeconfig reads the administrator's kubeconfig of a discovered cluster, and refuses a kubeconfig that
// would run a program or read a file.
func readAdminKubeconfig(ctx context.Context, h *hub.Client, name string) ([]byte, error) {
	cluster, err := h.Cluster(ctx, name)
	if err != nil {
		return nil, err
	}
	manualJoin := "join it with `" + h.Self + " fleet join " + name + " --cluster-kubeconfig FILE`"
	ref := cluster.Spec.SourceRef
	if ref == nil {
		return nil, exit.Hintf(manualJoin, "cluster %s was not discovered: its spec.sourceRef is not set", name)
	}
	kind, known := discovery.KindOf(*ref)
	if !known {
		return nil, exit.Hintf(manualJoin,
			"the source of cluster %s is a %s of %s, which has no kubeconfig that is known",
			name, ref.Kind, ref.APIVersion)
	}
	source := &unstructured.Unstructured{}
	source.SetAPIVersion(ref.APIVersion)
	source.SetKind(ref.Kind)
	if err := h.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, source); err != nil {
		return nil, fmt.Errorf("get %s, the source of cluster %s: %w", discovery.DescribeSource(*ref), name, err)
	}
	location, err := kind.AdminKubeconfig(source)
	if err != nil {
		return nil, exit.Hintf(manualJoin, "there is no kubeconfig for cluster %s: %w", name, err)
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: ref.Namespace, Name: location.Secret}
	if err := h.Get(ctx, key, secret); err != nil {
		return nil, exit.Hintf("you need permission to read Secrets in namespace "+ref.Namespace+", or "+manualJoin,
			"get the kubeconfig of cluster %s from Secret %s: %w", name, key, err)
	}
	if len(secret.Data[location.Key]) == 0 {
		return nil, exit.Hintf(manualJoin, "Secret %s has no %q, which would be the kubeconfig of cluster %s", key,
			location.Key, name)
	}
	text, err := kubeconfig.Check(secret.Data[location.Key])
	if errors.Is(err, kubeconfig.ErrRefused) {
		return nil, exit.Hintf("if you trust it, "+manualJoin, "Secret %s, key %s: %w", key, location.Key, err)
	}
	if err != nil {
		return nil, exit.Hintf(manualJoin, "Secret %s, key %s, cannot be used: %w", key, location.Key, err)
	}
	return text, nil
}
