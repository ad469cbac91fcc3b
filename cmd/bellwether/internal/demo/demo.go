// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package demo provides the command that shows Bellwether on a cluster of the user. It reads the state of the
// cluster, has package plan decide, and carries out the plan: commands of this command line, and a few objects.
package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/demo/plan"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

const demoLong = `Try Bellwether on a cluster that you have, such as one of kind or k3d, or in a cloud.

The command installs the hub, joins the cluster to it as the only member of the fleet,
publishes a catalog with a sample operator within the cluster, installs version 1.0.0
of it, and upgrades it to 1.1.0 by a rollout. It first prints everything that it will
create and the commands that it will run, and asks for a confirmation; --dry-run
prints only that.

The cluster is the one of --kubeconfig and --context. It needs OLM v0, which is not
installed by this command, and you need the rights of a cluster administrator. The
command changes nothing on a cluster that has Bellwether already.

Everything stays on the cluster until --remove. If the command fails or is interrupted,
run it again to go on, or with --remove.

The nodes pull the images hub, agent and bellwether of the release that this program is
of. Use --registry and --image-tag for images of your own ("make images").`

const demoExample = `  bellwether demo --context kind-dev
  bellwether demo --context kind-dev --registry registry.example.com/bellwether --image-tag 1.2.3
  bellwether demo --remove --context kind-dev`

// Runner runs a command of this command line in the same environment.
type Runner func(ctx context.Context, args ...string) error

// app is the environment of the command.
type app struct {
	*command.Env
	run Runner
}

// options are the flags of demo.
type options struct {
	registry, tag  string
	skipImageCheck bool
	hubServer      string
	values         []string
	remove, dryRun bool
	confirmation   command.Confirmation
	timeout        time.Duration
	access         registry.Flags
}

// Command returns the command demo, which runs other commands with run.
func Command(env *command.Env, run Runner) *cobra.Command {
	a := &app{Env: env, run: run}
	var o options
	c := &cobra.Command{
		Use: "demo", Short: "Try Bellwether on a cluster that you have", Long: demoLong, Example: demoExample,
		Args: command.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.runDemo(c.Context(), &o) },
	}
	f := c.Flags()
	f.StringVar(&o.registry, "registry", "",
		"The `REPOSITORY` below which the images are. Default: that of the release.")
	f.StringVar(&o.tag, "image-tag", "", "The tag of the images. Default: the version of the release, or with "+
		"--registry that of this program.")
	f.BoolVar(&o.skipImageCheck, "skip-image-check", false, "Do not look for the images in their registry from this "+
		"machine, and name them by their tag. For images that only the nodes can read, or have.")
	f.StringVar(&o.hubServer, "hub-server", plan.HubServer, "The URL at which pods reach the API server.")
	f.StringArrayVar(&o.values, "set", nil,
		"A chart value for hub and agent as `KEY=VALUE`, for example imagePullSecrets[0].name=login. "+
			"Can be repeated.")
	f.BoolVar(&o.remove, "remove", false, "Remove everything that the demo created.")
	o.confirmation.Add(c)
	f.BoolVar(&o.dryRun, "dry-run", false, "Print what would be done, and change nothing.")
	command.AddTimeout(c, &o.timeout, 5*time.Minute, "The timeout of each step.")
	o.access.Add(c)
	return c
}

// runDemo plans the installation or the removal, shows the plan, and carries it out after a confirmation.
func (a *app) runDemo(ctx context.Context, o *options) error {
	planOptions := plan.Options{Program: a.Self, HubServer: o.hubServer, Values: o.values, Timeout: o.timeout.String()}
	if a.Flags.KubeConfig != nil {
		planOptions.Kubeconfig = *a.Flags.KubeConfig
	}
	t, err := a.connect()
	if err != nil {
		return err
	}
	observation, err := a.observeCluster(ctx, t, o)
	if err != nil {
		return err
	}
	buildPlan, endText := plan.Install, plan.RenderNextSteps(observation, planOptions)
	if o.remove {
		buildPlan, endText = plan.Remove, "\nEverything that the demo created is removed.\n"
	}
	steps, problems := buildPlan(observation, planOptions)
	if len(problems) > 0 {
		return a.reportProblems(problems)
	}
	a.Say("%s", plan.RenderPlan(observation, planOptions, steps))
	if o.dryRun {
		a.Say("\nNothing was changed.\n")
		return nil
	}
	if err := a.Confirm(o.confirmation, "\n"); err != nil {
		return err
	}
	e := executor{app: a, target: t, timeout: o.timeout, planSteps: func(planOptions plan.Options) []plan.Step {
		steps, _ := buildPlan(observation, planOptions)
		return steps
	}}
	if err := e.executeAll(ctx, planOptions); err != nil {
		return a.reportFailure(err, planOptions, o)
	}
	a.Say("%s", endText)
	return nil
}

// reportProblems returns an error for the problems. It prints them if there are several.
func (a *app) reportProblems(problems []plan.Problem) error {
	if len(problems) == 1 {
		return exit.Hint(errors.New(problems[0].Text), problems[0].Remedy)
	}
	for _, p := range problems {
		a.Warn("%s %s\n  - %s\n", a.Style().Paint(term.Bad, "✗"), p.Text, p.Remedy)
	}
	return fmt.Errorf("%d problems, and nothing was changed", len(problems))
}

// reportFailure prints how the user can continue after an error, and returns the error.
func (a *app) reportFailure(err error, planOptions plan.Options, o *options) error {
	formatCommand := func(args ...string) string { return "`" + planOptions.CommandLine(args) + "`" }
	if o.remove {
		a.Warn("What is left stays on the cluster. To go on with the removal, run %s again.\n",
			formatCommand("demo", "--remove"))
		return err
	}
	a.Warn("What was created stays on the cluster. To go on, run the same command again. To remove it, run %s.\n",
		formatCommand("demo", "--remove"))
	return err
}
