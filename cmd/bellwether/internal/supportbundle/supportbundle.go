// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package supportbundle has the command that collects data to diagnose an installation: objects, events, logs, metrics
// and versions. It must not read Secrets or ConfigMaps.
package supportbundle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	observe "github.com/bellwether-dev/bellwether/cmd/bellwether/internal/doctor"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/helm"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/explain/doctor"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/internal/version"
)

const long = `Collect what is needed to find out what is wrong into one file: the objects of Bellwether,
their events, the Deployments, pods, logs and metrics of the hub, permissions and webhooks,
the versions, and what ` + "`bellwether doctor`" + ` finds. With --cluster-kubeconfig also those of the
agent and of OLM on that cluster.

The file is a tar.gz. Its README.md and index.json list what is in it, what is missing and
why: what cannot be read does not end the command.

Secrets and ConfigMaps are never read. What looks like a credential is removed from
everything else, and so are the values of environment variables. Look through the files
before you pass them on: names of clusters, hosts and people are in there.`

// app is the environment of the commands in this package.
type app struct{ *command.Env }

type options struct {
	target observe.Target
	file   string
	since  time.Duration
}

// Command returns the command support-bundle.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	var o options
	c := &cobra.Command{
		Use: "support-bundle", Short: "Collect objects, events, logs and metrics into one file, without secrets",
		Long: long,
		Example: "  bellwether support-bundle\n" +
			"  bellwether support-bundle --cluster-kubeconfig prod-2.kubeconfig --since 2h --file bundle.tar.gz",
		Args: command.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.writeBundle(c.Context(), o) },
	}
	helm.AddSystemNamespace(c, &o.target.Namespace)
	o.target.Cluster.Add(c)
	c.Flags().StringVar(&o.file, "file", "", "The `FILE` to write. Default: bellwether-support-TIME.tar.gz.")
	c.Flags().DurationVar(&o.since, "since", 24*time.Hour, "How old the log lines may be.")
	_ = c.MarkFlagFilename("file", "tar.gz")
	return c
}

// writeBundle collects the data and writes the bundle. It writes to a temporary file in the same folder and renames
// this file at the end, so that a file with the final name is always complete.
func (a *app) writeBundle(ctx context.Context, o options) error {
	if o.since < time.Second {
		return exit.Hintf("use a duration such as 2h", "invalid value %s of --since", o.since)
	}
	if info, err := os.Stat(o.file); err == nil && info.IsDir() {
		return exit.Hintf("name a file in it", "%s is a folder", o.file)
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	if o.file == "" {
		o.file = "bellwether-support-" + formatStamp(a.Now()) + ".tar.gz"
	}
	out, err := os.CreateTemp(filepath.Dir(o.file), ".bellwether-support-*")
	if err != nil {
		return fmt.Errorf("make file: %w", err)
	}
	defer func() { _ = os.Remove(out.Name()) }() // it does not exist if the rename succeeded
	b := newBundle(out, a.Now(), version.Get().Version)
	a.collect(ctx, b, c, o)
	if err := errors.Join(b.close(), out.Close(), ctx.Err()); err != nil {
		return err
	}
	if err := os.Rename(out.Name(), o.file); err != nil {
		return fmt.Errorf("name file: %w", err)
	}
	a.Say("%s", formatSummary(b.index, o.file, a.Style()))
	if !b.hasClusterFile() {
		return exit.Hintf("check --kubeconfig and --context, and that the hub is running", "no cluster could be read")
	}
	return nil
}

// formatSummary returns the path of the bundle and the list of missing data.
func formatSummary(i Index, file string, s term.Style) string {
	text := s.Paint(term.Good, term.Mark(term.Good)) + fmt.Sprintf(" Wrote %s with %s.\n", file,
		phrase.Count(len(i.Files), "file"))
	if len(i.Missing) > 0 {
		text += fmt.Sprintf("%s could not be read. README.md in the bundle says why:\n",
			phrase.Count(len(i.Missing), "item"))
	}
	const maxItems = 10
	for n, m := range i.Missing {
		if n == maxItems {
			text += fmt.Sprintf("  - and %d more\n", len(i.Missing)-maxItems)
			break
		}
		text += "  - " + m.What + "\n"
	}
	return text + "No Secret was read. Look through the files before you pass them on.\n"
}

// collect adds the data of this program, of the hub and, if the user selected one, of a fleet cluster to the bundle.
func (a *app) collect(ctx context.Context, b *bundle, c client.Reader, o options) {
	a.collectVersions(b)
	in, err := observe.Observe(ctx, a.Env, o.target)
	if err != nil {
		b.addMissing("what `bellwether doctor` finds", err)
	} else {
		report := doctor.Examine(in)
		b.addObject("doctor.json", "what `bellwether doctor` finds, as data", "", report)
		b.addText("doctor.txt", "what `bellwether doctor` finds", "", observe.Render(report, term.Style{}))
	}
	config, err := a.ClusterConfig()
	s := apiServer{folder: "hub", name: "the hub", objects: c, namespaces: []string{o.target.Namespace}, since: o.since}
	s.kube, s.kubeErr = newKubeClient(config, err)
	s.collect(ctx, b, listHubKinds())
	if !o.target.Cluster.IsSet() {
		return
	}
	fleet, err := newFleetServer(ctx, o)
	if err != nil {
		b.addMissing("everything of the fleet cluster", err)
		return
	}
	fleet.collect(ctx, b, listFleetKinds())
}

// newFleetServer returns the API server of the fleet cluster that the user selected.
func newFleetServer(ctx context.Context, o options) (*apiServer, error) {
	config, err := o.target.Cluster.Flags("").ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("read the cluster's kubeconfig: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: hub.Scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	s := &apiServer{folder: "cluster", name: "the fleet cluster", objects: c, since: o.since,
		namespaces: append([]string{o.target.Namespace}, observe.FindOLMNamespaces(ctx, c)...)}
	s.kube, s.kubeErr = newKubeClient(config, nil)
	return s, nil
}

// newKubeClient returns a client for the configuration. err is the error of reading the configuration; if it is not
// nil, newKubeClient returns it.
func newKubeClient(config *rest.Config, err error) (kubernetes.Interface, error) {
	if err != nil {
		return nil, err
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return c, nil
}

func (a *app) collectVersions(b *bundle) {
	versions := map[string]string{"bellwether": version.Get().Version}
	if chart, err := charts.Load(); err == nil {
		versions["chart"] = chart.AppVersion()
	}
	b.addObject("versions.json", "versions of this program and of its built-in chart", "", versions)
}
