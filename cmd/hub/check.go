// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/internal/startup"
	"github.com/bellwether-dev/bellwether/version"
)

const checkLong = `Check from within the cluster, with the hub's own permissions, that the API server serves
the hub's API, and that a replica of the hub leads: it has to renew its Lease while this
command waits. ` + "`helm test`" + ` runs it. It changes nothing.`

func checkCommand() *cobra.Command {
	var kubeconfig, namespace string
	var timeout time.Duration
	c := &cobra.Command{
		Use: "check", Short: "Check that the hub's API is served and that a replica leads", Long: checkLong,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			hub, err := checkClient(kubeconfig)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), timeout)
			defer cancel()
			return check(ctx, hub, namespace, func(text string) { c.Println(text) })
		},
	}
	fs := c.Flags()
	fs.StringVar(&kubeconfig, "kubeconfig", "",
		"kubeconfig file of the hub's cluster (default: $KUBECONFIG, or the pod's service account)")
	fs.StringVar(&namespace, "leader-election-namespace", "",
		"namespace of the Lease that replicas agree through; empty: who leads is not checked")
	fs.DurationVar(&timeout, "timeout", 2*time.Minute, "how long to wait until all is well")
	return c
}

func checkClient(kubeconfig string) (client.Reader, error) {
	config, err := startup.Config(kubeconfig, version.UserAgent("bellwether-hub-check"))
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	scheme, err := startup.Scheme()
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}

// checkEvery is how often a check that fails is made again.
const checkEvery = time.Second

// check makes each check until it succeeds or the context ends, and says so.
func check(ctx context.Context, hub client.Reader, namespace string, say func(string)) error {
	first := ""
	for _, step := range []struct {
		name string
		do   func(ctx context.Context) error
		skip bool
	}{
		{"the API server serves FleetClusters", func(ctx context.Context) error {
			return hub.List(ctx, &v1alpha1.FleetClusterList{}, client.Limit(1))
		}, false},
		{"a replica of the hub leads", func(ctx context.Context) error {
			return renews(ctx, hub, namespace, &first)
		}, namespace == ""},
	} {
		if step.skip {
			continue
		}
		var last error
		err := wait.PollUntilContextCancel(ctx, checkEvery, true, func(ctx context.Context) (bool, error) {
			if err := step.do(ctx); err == nil || ctx.Err() == nil {
				last = err
			}
			return last == nil, nil
		})
		if err != nil {
			return fmt.Errorf("not true in time: %s: %w", step.name, errors.Join(last, context.Cause(ctx)))
		}
		say("✓ " + step.name)
	}
	return nil
}

var errNotRenewed = errors.New("the Lease was not renewed meanwhile")

// renews fails until the Lease is seen with another renewal than the first one that was seen. It does not depend on
// clocks.
func renews(ctx context.Context, hub client.Reader, namespace string, first *string) error {
	lease := &coordinationv1.Lease{}
	if err := hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: electionLease}, lease); err != nil {
		return fmt.Errorf("read who leads: %w", err)
	}
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	if holder == "" || lease.Spec.RenewTime == nil {
		return fmt.Errorf("%w: nobody holds Lease %s/%s", errNoLeader, namespace, electionLease)
	}
	renewal := holder + "/" + lease.Spec.RenewTime.Format(time.RFC3339Nano)
	if *first == "" {
		*first = renewal
	}
	if *first == renewal {
		return fmt.Errorf("%w: %s, which %s holds", errNotRenewed, electionLease, holder)
	}
	return nil
}
