// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slo holds the commands for objectives, their rules and their error
// budgets.
package slo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/alerts/slo/read"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

// app is the environment of the commands in this package.
type app struct{ *command.Env }

// Command returns the command with everything below it.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	return command.Parent("slo", "Objectives of operators, and the alerts that are made of them", []string{"slos"},
		a.sloListCommand(), a.sloGetCommand(), a.sloGenerateCommand(), a.sloSimulateCommand(), a.sloTestCommand())
}

// setOptions say which objectives there are.
type setOptions struct {
	noDefault          bool
	runbook, dashboard string
}

func (o *setOptions) add(c *cobra.Command) {
	c.Flags().BoolVar(&o.noDefault, "no-default", false,
		"Leave out the default profile: only operators in the files have objectives.")
	c.Flags().StringVar(&o.runbook, "runbook-url", "", "The `URL` of a runbook that alerts link to; #SLI is added.")
	c.Flags().StringVar(&o.dashboard, "dashboard-url", "",
		"The `URL` of a dashboard that alerts link to; its variables are added.")
}

// set reads the objectives of files. Operators are in the given namespace, unless
// the file says otherwise.
func (o *setOptions) set(files []string, namespace string) (slo.Set, error) {
	set := slo.Set{RunbookURL: o.runbook, DashboardURL: o.dashboard}
	if !o.noDefault {
		set.Default = slo.DefaultProfile()
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return set, fmt.Errorf("read objectives: %w", err)
		}
		if err := read.File(&set, namespace, text); err != nil {
			return set, sloError(fmt.Errorf("read %s: %w", file, err))
		}
	}
	if o.noDefault && len(files) == 0 {
		return set, exit.Hintf("give a file, or leave out --no-default", "there are no objectives")
	}
	return set, nil
}

// objectives reads the objectives of files, in the namespace of -n.
func (a *app) objectives(o *setOptions, files []string) (slo.Set, error) {
	namespace, err := a.Namespace()
	if err != nil {
		return slo.Set{}, err
	}
	return o.set(files, namespace)
}

// sloError adds what to do about objectives that cannot be.
func sloError(err error) error {
	switch {
	case errors.Is(err, slo.ErrTarget):
		return exit.Hint(err, "targets are percentages like \"99.9\", above 0 and below 100")
	case errors.Is(err, slo.ErrPeriod):
		return exit.Hint(err, "periods are like 30d or 4w")
	case errors.Is(err, read.ErrFormat), errors.Is(err, read.ErrUnsupported), errors.Is(err, slo.ErrSLI):
		return exit.Hint(err, "docs/guides/slos.md shows what files look like and which SLIs there are")
	default:
		return err
	}
}

const sloGenerateLong = `Write the recording and alerting rules for the operators of the whole fleet.

Without a file, every operator has the default profile. Files change that for
the operators that they name: Bellwether's own, OpenSLO v1, or sloth
(prometheus/v1). An operator whose file does not name its namespace is in that of
-n, or of the kubeconfig's context. The output is a rule file of Prometheus 3, or PrometheusRule
objects with -o objects. Neither operators nor clusters make it longer.

What will not work as one may think of an objective is said on standard error.`

const outputObjects = "objects"

func (a *app) sloGenerateCommand() *cobra.Command {
	var set setOptions
	var out command.Output
	var file, namespace string
	c := &cobra.Command{
		Use: "generate [FILE...]", Short: "Write the rules for Prometheus", Long: sloGenerateLong,
		Example: "  bellwether slo generate --file bellwether.rules.yaml\n" +
			"  bellwether slo generate objectives.yaml -o objects | kubectl apply -f -",
		ValidArgsFunction: completeYAML,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			s, err := a.objectives(&set, args)
			if err != nil {
				return err
			}
			rules, err := slo.Build(s)
			if err != nil {
				return sloError(err)
			}
			a.warnInfeasible(s)
			text, err := rulesText(rules, out.Format, namespace)
			if err != nil {
				return err
			}
			return a.Deliver(string(text), file)
		},
	}
	set.add(c)
	out.Add(c, command.OutputYAML, outputObjects)
	c.Flags().StringVar(&file, "file", "", "Write to this `FILE`.")
	c.Flags().StringVar(&namespace, "rules-namespace", "monitoring", "The namespace of PrometheusRule objects.")
	_ = c.MarkFlagFilename("file", "yaml", "yml")
	return c
}

// completeYAML completes files.
func completeYAML(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

func rulesText(rules *slo.Rules, format, namespace string) ([]byte, error) {
	if format != outputObjects {
		return slo.File(rules.All())
	}
	var out []byte
	for _, o := range rules.PrometheusRules(namespace, "bellwether-slo",
		map[string]string{"app.kubernetes.io/managed-by": "bellwether"}) {
		text, err := objectText(o)
		if err != nil {
			return nil, err
		}
		out = append(append(out, "---\n"...), text...)
	}
	return out, nil
}

func objectText(o *monitoringv1.PrometheusRule) ([]byte, error) {
	// The type's status is written even when empty, and a client must not send it.
	text, err := yaml.Marshal(struct {
		APIVersion string                          `json:"apiVersion"`
		Kind       string                          `json:"kind"`
		Metadata   map[string]any                  `json:"metadata"`
		Spec       monitoringv1.PrometheusRuleSpec `json:"spec"`
	}{o.APIVersion, o.Kind, map[string]any{"namespace": o.Namespace, "name": o.Name, "labels": o.Labels}, o.Spec})
	if err != nil {
		return nil, fmt.Errorf("write PrometheusRule: %w", err)
	}
	return text, nil
}

// warnInfeasible says what of the files' objectives will not work as one may
// think. The default profile is known to.
func (a *app) warnInfeasible(s slo.Set) {
	for _, op := range s.Operators {
		for _, o := range op.Objectives {
			for _, f := range slo.Feasible(o) {
				a.Warn("%s: %s\n", op.ID(), f.Message)
			}
		}
	}
}

const sloTestLong = `Write unit tests of the rules, and run them with promtool if it is on the PATH.

The tests play stories of clusters: total outages, partial ones above and below
each tier, recovery, single bad samples, missing data and NaN, clusters that come
and go, upgrades in the middle of an outage, bad releases, edited objectives.
Rules and tests are written to a folder as rules.yaml and tests.yaml. promtool
evaluates more than three days minute by minute, which takes a minute or two.`

func (a *app) sloTestCommand() *cobra.Command {
	var set setOptions
	var dir string
	c := &cobra.Command{
		Use: "test [FILE...]", Short: "Test the rules with promtool", Long: sloTestLong,
		Example:           "  bellwether slo test --dir ./out\n  bellwether slo test objectives.yaml --dir ./out",
		ValidArgsFunction: completeYAML,
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.objectives(&set, args)
			if err != nil {
				return err
			}
			if err := writeRuleTests(s, dir); err != nil {
				return err
			}
			a.Warn("wrote %s and %s\n", filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "tests.yaml"))
			return a.runPromtool(c.Context(), dir)
		},
	}
	set.add(c)
	c.Flags().StringVar(&dir, "dir", ".", "The `FOLDER` to write to.")
	_ = c.MarkFlagDirname("dir")
	return c
}

func writeRuleTests(s slo.Set, dir string) error {
	rules, err := slo.Build(s)
	if err != nil {
		return sloError(err)
	}
	tests, err := slo.Tests(s, "rules.yaml")
	if err != nil {
		return sloError(err)
	}
	text, err := slo.File(rules.All())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // rules are for everybody
		return fmt.Errorf("make folder: %w", err)
	}
	for name, content := range map[string][]byte{"rules.yaml": text, "tests.yaml": tests} {
		if err := os.WriteFile(filepath.Join(dir, name), content,
			0o644); err != nil { //nolint:gosec // rules are for everybody
			return fmt.Errorf("write rules: %w", err)
		}
	}
	return nil
}

// runPromtool checks and tests the rules in a folder. Without promtool it says how to.
func (a *app) runPromtool(ctx context.Context, dir string) error {
	path, _ := exec.LookPath("promtool")
	if path == "" {
		a.Warn("promtool of Prometheus 3 is not on the PATH; where it is, run `promtool test rules tests.yaml` there\n")
		return nil
	}
	for _, args := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "tests.yaml"}} {
		promtool := exec.CommandContext(ctx, path, args...) //nolint:gosec // the program that was just found, and constants
		promtool.Dir, promtool.Stdout, promtool.Stderr = dir, a.Streams.Out, a.Streams.ErrOut
		if err := promtool.Run(); err != nil {
			return exit.Hint(fmt.Errorf("promtool %s: %w", args[0], err),
				"its output above says what failed; it has to be of Prometheus 3")
		}
	}
	return nil
}
