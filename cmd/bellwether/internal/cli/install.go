// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/view"
)

const fieldOwner = client.FieldOwner("bellwether-cli")

const hubRelease = "bellwether"

const installHubLong = `Install the hub on the cluster of your kubeconfig, or upgrade it: the CRDs,
then the hub's part of the Helm chart that this program carries.

It can be run again at any time. Values that were given before are kept.`

func (a *app) installCommand() *cobra.Command {
	return parent("install", "Install the parts of Bellwether", nil, a.installHubCommand())
}

func (a *app) installHubCommand() *cobra.Command {
	var v valueFlags
	var namespace string
	var wait bool
	var timeout time.Duration
	c := &cobra.Command{
		Use: "hub", Short: "Install or upgrade the hub on the current cluster", Long: installHubLong,
		Args:    cobra.NoArgs,
		Example: "  bellwether install hub --set hub.replicas=1",
		RunE: func(c *cobra.Command, _ []string) error {
			given, err := v.merge()
			if err != nil {
				return err
			}
			return a.installHub(c.Context(), namespace, given, wait, timeout)
		},
	}
	v.add(c)
	addSystemNamespace(c, &namespace)
	c.Flags().BoolVar(&wait, "wait", true, "Wait until the hub is up.")
	c.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "How long to wait.")
	return c
}

func (a *app) installHub(ctx context.Context, namespace string, given map[string]any, wait bool,
	timeout time.Duration) error {
	ch, err := charts.Load()
	if err != nil {
		return err
	}
	c, err := a.connect()
	if err != nil {
		return err
	}
	if err := applyCRDs(ctx, c, ch, timeout); err != nil {
		return err
	}
	a.step("CRDs %s are in place", ch.AppVersion())
	r := release{name: hubRelease, namespace: namespace, cluster: a.flags}
	values := chartutil.MergeTables(given, map[string]any{"hub": map[string]any{"enabled": true}})
	done := "hub %s runs in namespace %s"
	if !wait {
		done, timeout = "hub %s is installed in namespace %s", 0
	}
	if err := r.apply(ctx, ch, values, timeout); err != nil {
		return hint(err, fmt.Sprintf("look at the hub with kubectl -n %s get pods, and run this again", r.namespace))
	}
	a.step(done, ch.AppVersion(), r.namespace)
	a.say("Add a cluster with `%s fleet join NAME --cluster-kubeconfig FILE`.\n", a.self)
	return nil
}

// step tells of a step that is done.
func (a *app) step(format string, args ...any) {
	a.say("%s %s\n", a.style().Paint(view.Good, "✓"), fmt.Sprintf(format, args...))
}

// applyCRDs applies the chart's CRDs, or those with the given names.
func applyCRDs(ctx context.Context, c client.Client, ch *chart.Chart, timeout time.Duration, names ...string) error {
	for _, crd := range ch.CRDObjects() {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(crd.File.Data, u); err != nil {
			return fmt.Errorf("read %s: %w", crd.Filename, err)
		}
		if len(names) > 0 && !slices.Contains(names, u.GetName()) {
			continue
		}
		if err := applyCRD(ctx, c, u, timeout); err != nil {
			return err
		}
	}
	return nil
}

// applyCRD applies a CRD, which Helm would only ever create, and waits until
// the API server serves it.
func applyCRD(ctx context.Context, c client.Client, u *unstructured.Unstructured, timeout time.Duration) error {
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), fieldOwner,
		client.ForceOwnership); err != nil {
		return fmt.Errorf("apply CRD %s: %w", u.GetName(), err)
	}
	return poll(ctx, timeout, func() (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return false, fmt.Errorf("get CRD %s: %w", u.GetName(), err)
		}
		return established(u), nil
	})
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Established" && m["status"] == "True" {
			return true
		}
	}
	return false
}

const pollInterval = 300 * time.Millisecond

// poll asks again until done, until an error that asking again will not mend,
// or until the timeout, whose error wraps context.DeadlineExceeded and the last
// one that done returned.
func poll(ctx context.Context, timeout time.Duration, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		ok, err := done()
		if ok {
			return nil
		}
		if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsUnauthorized(err) {
			return err
		}
		select {
		case <-ctx.Done():
			if err != nil {
				return fmt.Errorf("%w: %w", context.Cause(ctx), err)
			}
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
