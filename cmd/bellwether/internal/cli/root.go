// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli holds the commands of bellwether: each reads flags, reads or
// writes objects on the hub, and prints what package view makes of them.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/view"
)

// app is what all commands share.
type app struct {
	streams genericiooptions.IOStreams
	flags   *genericclioptions.ConfigFlags
	// self is how the user calls this program: bellwether or kubectl bellwether.
	self string
	now  func() time.Time
	// connect returns a client of the hub.
	connect func() (client.WithWatch, error)
	// watch keeps an operator's rollouts in memory and tells of each change.
	watch func(ctx context.Context, operator client.ObjectKey) (client.Reader, <-chan struct{}, error)
	// getenv is os.Getenv.
	getenv func(string) string
}

// Main runs the command line and returns the exit status. args[0] is the
// program's path.
func Main(args []string, streams genericiooptions.IOStreams) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	a := newApp(args[0], streams)
	root := a.root()
	root.SetArgs(args[1:])
	return a.exit(root.ExecuteContext(ctx))
}

func newApp(program string, streams genericiooptions.IOStreams) *app {
	a := &app{streams: streams, flags: configFlags(), self: "bellwether", now: time.Now, getenv: os.Getenv}
	if base := strings.TrimSuffix(filepath.Base(program), ".exe"); base == "kubectl-bellwether" {
		a.self = "kubectl bellwether"
	}
	a.connect, a.watch = a.dial, a.watchRollouts
	return a
}

// configFlags are kubectl's flags, less those that no command here needs.
func configFlags() *genericclioptions.ConfigFlags {
	f := genericclioptions.NewConfigFlags(true)
	f.CacheDir, f.ClusterName, f.AuthInfoName, f.CertFile, f.KeyFile = nil, nil, nil, nil, nil
	f.Username, f.Password, f.ImpersonateUID, f.ImpersonateUserExtra = nil, nil, nil, nil
	f.DisableCompression, f.ProxyURL, f.TLSServerName, f.CAFile, f.Insecure = nil, nil, nil, nil, nil
	return f.WithWrapConfigFn(func(c *rest.Config) *rest.Config {
		c.QPS, c.Burst = 50, 100
		c.UserAgent = "bellwether/" + buildVersion()
		return c
	})
}

// flagUsage says what kubectl's flags mean here, in fewer words.
var flagUsage = map[string]string{ //nolint:gosec // it is about credentials and holds none
	"kubeconfig":      "The kubeconfig `FILE` of the hub. Default: $KUBECONFIG, or ~/.kube/config.",
	"context":         "The context of the kubeconfig to use. Default: its current one.",
	"namespace":       "The namespace on the hub. Default: that of the context.",
	"server":          "The URL of the hub's API server, instead of the kubeconfig's.",
	"token":           "A bearer token for the hub.",
	"as":              "The user to act as.",
	"as-group":        "A group to act as a member of; can be repeated.",
	"request-timeout": "How long one request to the hub may take, as in 30s. 0 is for ever.",
}

const rootLong = `Bellwether manages the operators of a fleet of Kubernetes clusters.

It talks to the hub of the fleet: the cluster that your kubeconfig's current
context points at, or the one given by --kubeconfig and --context.`

func (a *app) root() *cobra.Command {
	log.SetLogger(logr.Discard()) // the CLI speaks for itself
	root := &cobra.Command{
		Use:           "bellwether",
		Short:         "Manage the operators of a fleet of clusters",
		Long:          rootLong,
		Version:       buildVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: a.self},
	}
	onlyHolds(root)
	root.SetIn(a.streams.In)
	root.SetOut(a.streams.Out)
	root.SetErr(a.streams.ErrOut)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return hint(err, "see `"+c.CommandPath()+" --help`")
	})
	root.AddGroup(&cobra.Group{ID: groupFleet, Title: "The fleet:"},
		&cobra.Group{ID: groupChange, Title: "Operators and their rollouts:"},
		&cobra.Group{ID: groupPublish, Title: "Catalogs and bundles:"})
	a.flags.AddFlags(root.PersistentFlags())
	for name, usage := range flagUsage {
		root.PersistentFlags().Lookup(name).Usage = usage
	}
	for group, commands := range map[string][]*cobra.Command{
		groupFleet:   {a.fleetCommand(), a.installCommand(), a.versionsCommand()},
		groupChange:  {a.operatorCommand(), a.rolloutCommand(), a.sloCommand(), a.dashboardsCommand(), a.whyCommand()},
		groupPublish: {a.catalogCommand(), a.bundleCommand(), a.registryCommand()},
		"":           {a.versionCommand(), a.docsCommand()},
	} {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	a.registerCompletions(root)
	return root
}

const (
	groupFleet   = "fleet"
	groupChange  = "change"
	groupPublish = "publish"
)

// say writes to the user. An output that was closed has nobody to tell of it.
func (a *app) say(format string, args ...any) { _, _ = fmt.Fprintf(a.streams.Out, format, args...) }

// warn writes to the user what is no part of the output.
func (a *app) warn(format string, args ...any) { _, _ = fmt.Fprintf(a.streams.ErrOut, format, args...) }

// style decides on colour and width by what the output is.
func (a *app) style() view.Style {
	width, terminal := terminalWidth(a.streams.Out)
	return view.Style{Colour: terminal && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb", Width: width,
		Program: a.self}
}

func terminalWidth(out io.Writer) (int, bool) {
	f, ok := out.(*os.File)
	if !ok {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, false
	}
	return width, true
}

// parent makes a command that only holds others.
func parent(use, short string, aliases []string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Aliases: aliases}
	onlyHolds(c)
	c.AddCommand(children...)
	return c
}

// onlyHolds makes a command show its help, and refuse what is none of its
// children. Cobra alone would show the help for anything and call it a success.
func onlyHolds(c *cobra.Command) {
	c.DisableFlagsInUseLine = true
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		advice := "see `" + c.CommandPath() + " --help`"
		c.SuggestionsMinimumDistance = 2
		if similar := c.SuggestionsFor(args[0]); len(similar) > 0 {
			advice = "did you mean `" + c.CommandPath() + " " + similar[0] + "`?"
		}
		return hintf(advice, "there is no command `%s %s`", c.CommandPath(), args[0])
	}
}
