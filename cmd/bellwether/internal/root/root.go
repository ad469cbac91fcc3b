// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package root builds the command line from all commands.
package root

import (
	"context"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/backup"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/boilerplate"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/bundle"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/catalog"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/dashboards"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/demo"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/doctor"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fleet"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/install"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/oncall"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/operator"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/page"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/query"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/rollout"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/silence"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/slo"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/supportbundle"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/why"
	"github.com/bellwether-dev/bellwether/cmd/internal/interrupt"
	"github.com/bellwether-dev/bellwether/internal/version"
)

// Main runs the command line and returns the exit status. args[0] is the path of the program.
func Main(args []string, streams genericiooptions.IOStreams) int {
	a := command.NewEnv(args[0], streams)
	signals := interrupt.Watch(interrupt.Options{Grace: interruptGrace, CleansUp: a.CleansUp.Load,
		PrintWord: func() { a.ReportInterrupt(nil) }, Exit: os.Exit})
	defer signals.Stop()
	root := New(a)
	root.SetArgs(args[1:])
	err := root.ExecuteContext(signals.Context())
	if signals.Interrupted() {
		return a.ReportInterrupt(err)
	}
	return a.Exit(err)
}

// interruptGrace is how long a command may take to end after an interrupt. Commands never leave incomplete files, so
// they can be ended at any time.
const interruptGrace = 900 * time.Millisecond

const rootLong = `Bellwether manages the operators of a fleet of Kubernetes clusters.

Commands about the fleet talk to its hub, which is the cluster of the current
context in your kubeconfig. Use --kubeconfig and --context to choose another one.
Commands that only read and write files and registries do not have these flags.

Exit codes:
  0    success
  1    an error
  130  interrupted, with Ctrl-C

Some commands have more exit codes. Their help lists them.`

// app is the environment of the commands in this package.
type app struct{ *command.Env }

// New returns the root command with all other commands.
func New(env *command.Env) *cobra.Command {
	a := &app{env}
	log.SetLogger(logr.Discard()) // the commands print their own messages
	root := &cobra.Command{
		Use:           "bellwether",
		Short:         "Manage the operators of a fleet of clusters",
		Long:          rootLong,
		Version:       version.Get().String(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: a.Self},
	}
	command.RequireSubcommand(root)
	root.SetIn(a.Streams.In)
	root.SetOut(a.Streams.Out)
	root.SetErr(a.Streams.ErrOut)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(command.ExplainFlagError)
	root.AddGroup(&cobra.Group{ID: groupFleet, Title: "Fleet:"},
		&cobra.Group{ID: groupChange, Title: "Operators and rollouts:"},
		&cobra.Group{ID: groupPublish, Title: "Catalogs and bundles:"})
	run := func(ctx context.Context, args ...string) error {
		newRoot := New(env) // a new root command, because a command keeps the values of its flags
		newRoot.SetArgs(args)
		return newRoot.ExecuteContext(ctx)
	}
	for group, commands := range map[string][]*cobra.Command{
		groupFleet: {a.AddHubFlags(fleet.Command(env)), a.AddHubFlags(install.Command(env)),
			a.AddHubFlags(operator.VersionsCommand(env)), a.AddHubFlags(doctor.Command(env)),
			a.AddHubFlags(supportbundle.Command(env)), a.AddClusterFlags(query.Command(env)),
			a.AddClusterFlags(demo.Command(env, run))},
		groupChange: {operator.Command(env), a.AddHubFlags(rollout.Command(env)), a.AddHubFlags(slo.Command(env)),
			dashboards.Command(env), a.AddHubFlags(backup.Command(env)), a.AddHubFlags(why.Command(env)),
			page.Command(env), a.AddHubFlags(silence.Command(env)), a.AddHubFlags(oncall.Command(env))},
		groupPublish: {catalog.Command(env), bundle.Command(env), registry.Command(env), boilerplate.Command(env)},
		"":           {a.newVersionCommand(), a.newDocsCommand()},
	} {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
			hideEmptyDefaults(c)
		}
	}
	addAgeWarnings(env, root)
	return root
}

// hideEmptyDefaults removes the default [] of flags with key-value pairs from the help.
func hideEmptyDefaults(c *cobra.Command) {
	hide := func(f *pflag.Flag) {
		if f.Value.Type() == "stringToString" && f.DefValue == "[]" {
			f.DefValue = ""
		}
	}
	c.Flags().VisitAll(hide)
	for _, child := range c.Commands() {
		hideEmptyDefaults(child)
	}
}

const (
	groupFleet   = "fleet"
	groupChange  = "change"
	groupPublish = "publish"
)
