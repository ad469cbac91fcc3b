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
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/helm"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/internal/kubeconfig"
	"github.com/bellwether-dev/bellwether/controllers/discovery/sources"
	"github.com/bellwether-dev/bellwether/phrase"
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

func (a *app) fleetJoinDiscoveredCommand() *cobra.Command {
	var o discoveredOptions
	c := &cobra.Command{
		Use: "join-discovered [NAME...]", Short: "Install the agent on discovered clusters",
		Long: fleetJoinDiscoveredLong,
		Example: "  bellwether fleet join-discovered prod-1\n" +
			"  bellwether fleet join-discovered --all -l stage=prod --hub-server https://hub.example.com:6443",
		ValidArgsFunction: a.CompleteFirst(command.ClusterNames),
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
	command.Timeout(c, &o.timeout, 5*time.Minute, "The timeout of each step for one cluster.")
	helm.AddSystemNamespace(c, &o.namespace)
	o.values.Add(c)
	return c
}

func (a *app) joinDiscovered(ctx context.Context, o *discoveredOptions, names []string) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	if o.all {
		if names, err = a.discovered(ctx, h, o.selector); err != nil || len(names) == 0 {
			return err
		}
	}
	// Administrators' kubeconfigs are in a folder of this command's own while agents are
	// installed, since Helm reads them from files.
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

// discovered returns the clusters that --all means, and tells of those that are left out.
func (a *app) discovered(ctx context.Context, h *hub.Client, selector string) ([]string, error) {
	parsed, err := command.ParseSelector(selector)
	if err != nil {
		return nil, err
	}
	list := &v1alpha1.FleetClusterList{}
	if err := h.List(ctx, list, client.MatchingLabelsSelector{Selector: parsed}); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	var names []string
	skipped := map[string]int{}
	for i := range list.Items {
		c := &list.Items[i]
		switch reason := notJoinable(c); {
		case c.Spec.SourceRef == nil:
		case reason != "":
			skipped[reason]++
		default:
			names = append(names, c.Name)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(skipped)) {
		a.Say("%s %s: left alone.\n", phrase.Count(skipped[reason], "discovered cluster"), reason)
	}
	if len(names) == 0 {
		a.Say("There is no discovered cluster to join.\n")
	}
	return names, nil
}

// notJoinable says why a discovered cluster is left alone; empty if it is not.
func notJoinable(c *v1alpha1.FleetCluster) string {
	source := c.Status.Source
	switch {
	case c.DeletionTimestamp != nil:
		return "being removed from the fleet"
	case meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionOnline):
		return "already online"
	case c.Status.IsHibernating():
		return "hibernating"
	case source != nil && source.State != "" && source.State != v1alpha1.SourcePresent:
		return "whose source is " + strings.ToLower(string(source.State))
	}
	return ""
}

// joinMany joins clusters, several at a time, and says of each how it went. It begins with
// none after it was interrupted.
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
				err = a.quietly().joinOne(ctx, h, o, name, folder)
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
	_ = group.Wait() // the functions keep their errors
	if len(failed) == 0 {
		return nil
	}
	slices.Sort(failed)
	return exit.Hintf("correct what the messages name, and run the command again: it joins the missing clusters",
		"%s %s not joined: %s", phrase.Part(len(failed), len(names), "cluster"),
		phrase.Word(len(names), "was", "were"), phrase.First(failed, 10))
}

// quietly is the app without the output of single steps.
func (a *app) quietly() *app {
	streams := a.Streams
	streams.Out, streams.ErrOut = &bytes.Buffer{}, &bytes.Buffer{}
	return &app{&command.Env{Streams: streams, Flags: a.Flags, Self: a.Self, Now: a.Now, Connect: a.Connect,
		Watch: a.Watch, Getenv: a.Getenv}}
}

// joinOne joins a cluster with the kubeconfig that its source names.
func (a *app) joinOne(ctx context.Context, h *hub.Client, o *discoveredOptions, name, folder string) error {
	text, err := adminKubeconfig(ctx, h, name)
	if err != nil {
		return err
	}
	file := filepath.Join(folder, name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("keep the kubeconfig of cluster %s: %w", name, err)
	}
	defer func() { _ = os.Remove(file) }()
	own := o.joinOptions
	own.name, own.target = name, hub.ClusterIn(file)
	return a.join(ctx, &own)
}

// adminKubeconfig reads the administrator's kubeconfig of a discovered cluster, and checks
// it.
func adminKubeconfig(ctx context.Context, h *hub.Client, name string) ([]byte, error) {
	cluster, err := h.Cluster(ctx, name)
	if err != nil {
		return nil, err
	}
	byHand := "join it with `" + h.Self + " fleet join " + name + " --cluster-kubeconfig FILE`"
	ref := cluster.Spec.SourceRef
	if ref == nil {
		return nil, exit.Hintf(byHand, "cluster %s was not discovered: its spec.sourceRef is not set", name)
	}
	kind, known := sources.Of(*ref)
	if !known {
		return nil, exit.Hintf(byHand, "the source of cluster %s is a %s of %s, which has no kubeconfig that is known",
			name, ref.Kind, ref.APIVersion)
	}
	source := &unstructured.Unstructured{}
	source.SetAPIVersion(ref.APIVersion)
	source.SetKind(ref.Kind)
	if err := h.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, source); err != nil {
		return nil, fmt.Errorf("get %s, the source of cluster %s: %w", sources.Describe(*ref), name, err)
	}
	where, err := kind.AdminKubeconfig(source)
	if err != nil {
		return nil, exit.Hintf(byHand, "there is no kubeconfig for cluster %s: %w", name, err)
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: ref.Namespace, Name: where.Secret}
	if err := h.Get(ctx, key, secret); err != nil {
		return nil, exit.Hintf("you need permission to read Secrets in namespace "+ref.Namespace+", or "+byHand,
			"get the kubeconfig of cluster %s from Secret %s: %w", name, key, err)
	}
	if len(secret.Data[where.Key]) == 0 {
		return nil, exit.Hintf(byHand, "Secret %s has no %q, which would be the kubeconfig of cluster %s", key,
			where.Key, name)
	}
	text, err := kubeconfig.Check(secret.Data[where.Key])
	if errors.Is(err, kubeconfig.ErrRefused) {
		return nil, exit.Hintf("if you trust it, "+byHand, "Secret %s, key %s: %w", key, where.Key, err)
	}
	if err != nil {
		return nil, exit.Hintf(byHand, "Secret %s, key %s, cannot be used: %w", key, where.Key, err)
	}
	return text, nil
}
