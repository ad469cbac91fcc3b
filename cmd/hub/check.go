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
	"github.com/bellwether-dev/bellwether/internal/version"
)

const checkLong = `Check from within the cluster, with the hub's own permissions, that the API server serves
the hub's API, and that a replica of the hub leads: it must renew its Lease while this
command waits. ` + "`helm test`" + ` runs it. It changes nothing.`

// newCheckCommand returns the command that checks a running hub.
func newCheckCommand() *cobra.Command {
	var kubeconfig, namespace string
	var timeout time.Duration
	c := &cobra.Command{
		Use: "check", Short: "Check that the hub's API is served and that a replica leads", Long: checkLong,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			hub, err := newCheckClient(kubeconfig)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), timeout)
			defer cancel()
			return runChecks(ctx, hub, namespace, func(text string) { c.Println(text) })
		},
	}
	fs := c.Flags()
	fs.StringVar(&kubeconfig, "kubeconfig", "",
		"kubeconfig file of the hub's cluster (default: $KUBECONFIG, or the pod's service account)")
	fs.StringVar(&namespace, "leader-election-namespace", "",
		"namespace of the Lease of the leader election; empty: the leader is not checked")
	fs.DurationVar(&timeout, "timeout", 2*time.Minute, "how long to wait until all is well")
	return c
}

// newCheckClient returns a client of the hub's cluster.
func newCheckClient(kubeconfig string) (client.Reader, error) {
	config, err := startup.LoadConfig(kubeconfig, version.UserAgent("bellwether-hub-check"))
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	scheme, err := startup.NewScheme()
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}

// checkInterval is how often a failed check is repeated.
const checkInterval = time.Second

// runChecks repeats each check until it succeeds or the context ends, and reports each success.
// Without the namespace of the Lease, it does not check the leader.
func runChecks(ctx context.Context, hub client.Reader, namespace string, report func(string)) error {
	firstRenewal := ""
	for _, step := range []struct {
		name string
		do   func(ctx context.Context) error
		skip bool
	}{
		{name: "the API server serves FleetClusters", do: func(ctx context.Context) error {
			return hub.List(ctx, &v1alpha1.FleetClusterList{}, client.Limit(1))
		}},
		{name: "a replica of the hub leads", do: func(ctx context.Context) error {
			return checkRenewal(ctx, hub, namespace, &firstRenewal)
		}, skip: namespace == ""},
	} {
		if step.skip {
			continue
		}
		var lastErr error
		err := wait.PollUntilContextCancel(ctx, checkInterval, true, func(ctx context.Context) (bool, error) {
			// An error that the end of ctx causes must not replace the error that explains the failure.
			err := step.do(ctx)
			if ctx.Err() == nil {
				lastErr = err
			}
			return err == nil, nil
		})
		if err != nil {
			return fmt.Errorf("not true in time: %s: %w", step.name, errors.Join(lastErr, context.Cause(ctx)))
		}
		report("✓ " + step.name)
	}
	return nil
}

var errNotRenewed = errors.New("the Lease was not renewed meanwhile")

// checkRenewal returns an error until the Lease has a different renewal than at the first call.
// first stores the renewal of the first call. The check does not depend on clocks.
func checkRenewal(ctx context.Context, hub client.Reader, namespace string, firstRenewal *string) error {
	lease := &coordinationv1.Lease{}
	if err := hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: electionLease}, lease); err != nil {
		return fmt.Errorf("read who leads: %w", err)
	}
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	if holder == "" || lease.Spec.RenewTime == nil {
		return fmt.Errorf("%w: no replica holds Lease %s/%s", errNoLeader, namespace, electionLease)
	}
	renewal := holder + "/" + lease.Spec.RenewTime.Format(time.RFC3339Nano)
	if *firstRenewal == "" {
		*firstRenewal = renewal
	}
	if *firstRenewal == renewal {
		return fmt.Errorf("%w: %s, which %s holds", errNotRenewed, electionLease, holder)
	}
	return nil
}
