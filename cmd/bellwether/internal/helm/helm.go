// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package helm installs and removes the charts of the hub and the agent.
package helm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/spf13/cobra"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	helmcli "helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/cli/values"
	"helm.sh/helm/v3/pkg/getter"
	"helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// SystemNamespace is the default namespace of the hub and the agent.
const SystemNamespace = "bellwether-system"

// AddSystemNamespace adds the flag for the namespace of the hub or the agent. The flag differs from -n, which selects
// the namespace in which users have their operators.
func AddSystemNamespace(c *cobra.Command, into *string) {
	c.Flags().StringVar(into, "system-namespace", SystemNamespace,
		"The namespace where the hub or the agent is installed.")
}

// ValueFlags are Helm's flags for a chart's values.
type ValueFlags struct{ values.Options }

// Add adds the flags to a command.
func (v *ValueFlags) Add(c *cobra.Command) {
	c.Flags().StringArrayVar(&v.Values, "set", nil,
		"A chart value as `KEY=VALUE`, for example agent.resources.limits.memory=256Mi. Can be repeated.")
	c.Flags().StringArrayVar(&v.ValueFiles, "values", nil, "A `FILE` with chart values. Can be repeated.")
	_ = c.MarkFlagFilename("values", "yaml", "yml", "json")
}

// Merge reads all values. As in Helm, later values override earlier values.
func (v *ValueFlags) Merge() (map[string]any, error) {
	merged, err := v.MergeValues(getter.All(helmcli.New()))
	if err != nil {
		return nil, fmt.Errorf("read chart values: %w", err)
	}
	return merged, nil
}

// Release is a Helm release on one cluster.
type Release struct {
	Name      string
	Namespace string
	Cluster   genericclioptions.RESTClientGetter
}

// newConfiguration returns Helm's configuration for the cluster and the namespace of the release.
func (r Release) newConfiguration() (*action.Configuration, error) {
	log.SetOutput(io.Discard) // the libraries of Helm write warnings to this log
	c := &action.Configuration{}
	if err := c.Init(r.Cluster, r.Namespace, "secret", func(string, ...any) {}); err != nil {
		return nil, fmt.Errorf("prepare Helm: %w", err)
	}
	if k, ok := c.KubeClient.(*kube.Client); ok {
		k.Namespace = r.Namespace // the default is the namespace of the kubeconfig
	}
	return c, nil
}

// isInstalled reports whether the release exists.
func (r Release) isInstalled(c *action.Configuration) (bool, error) {
	history := action.NewHistory(c)
	history.Max = 1
	_, err := history.Run(r.Name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for release %s: %w", r.Name, err)
	}
	return true, nil
}

// Apply installs or upgrades the release, with its CRDs. An upgrade keeps the earlier values, unless given has new
// values. It waits until the objects are ready, up to wait; 0 means that it does not wait.
func (r Release) Apply(ctx context.Context, ch *chart.Chart, given map[string]any, wait time.Duration) error {
	c, err := r.newConfiguration()
	if err != nil {
		return err
	}
	installed, err := r.isInstalled(c)
	if err != nil {
		return err
	}
	if installed {
		u := action.NewUpgrade(c)
		u.Namespace, u.ResetThenReuseValues, u.MaxHistory = r.Namespace, true, 5
		u.Wait, u.Timeout = wait > 0, max(wait, time.Minute)
		_, err = u.RunWithContext(ctx, r.Name, ch, given)
	} else {
		i := action.NewInstall(c)
		i.Namespace, i.ReleaseName, i.CreateNamespace = r.Namespace, r.Name, true
		i.Wait, i.Timeout = wait > 0, max(wait, time.Minute)
		_, err = i.RunWithContext(ctx, ch, given)
	}
	if err != nil {
		return fmt.Errorf("install release %s in namespace %s: %w", r.Name, r.Namespace, err)
	}
	return nil
}

// Remove uninstalls the release and reports whether the release existed.
func (r Release) Remove(wait time.Duration) (bool, error) {
	c, err := r.newConfiguration()
	if err != nil {
		return false, err
	}
	installed, err := r.isInstalled(c)
	if err != nil || !installed {
		return false, err
	}
	u := action.NewUninstall(c)
	u.Wait, u.Timeout = true, wait
	if _, err := u.Run(r.Name); err != nil {
		return false, fmt.Errorf("uninstall release %s: %w", r.Name, err)
	}
	return true, nil
}
