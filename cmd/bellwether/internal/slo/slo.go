// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slo has the commands for objectives, their rules and their error budgets.
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

// Command returns the command slo with its subcommands.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	return command.NewParent("slo", "Show error budgets, and generate and test SLO rules", []string{"slos"},
		a.newListCommand(), a.newGetCommand(), a.newGenerateCommand(), a.newEdgeConfigCommand(), a.newSimulateCommand(),
		a.newTestCommand())
}

// objectiveFlags are the flags that select the objectives.
type objectiveFlags struct {
	noDefault          bool
	runbook, dashboard string
	withoutAlerts      []string
}

func (o *objectiveFlags) addFlags(c *cobra.Command) {
	c.Flags().BoolVar(&o.noDefault, "no-default", false,
		"Do not use the default profile. Only the operators in the files have objectives.")
	c.Flags().StringVar(&o.runbook, "runbook-url", slo.DefaultRunbooks,
		"The `URL` of the folder with the runbooks that alerts link to. /ALERT.md is appended, and #SLI for an alert "+
			"about one. With an empty URL, alerts have no link.")
	c.Flags().StringVar(&o.dashboard, "dashboard-url", "",
		"The `URL` of the dashboard in alerts. Its variables are appended.")
	c.Flags().StringSliceVar(&o.withoutAlerts, "without-alert", nil,
		"Leave out the alert of this `NAME`. Alerts about budgets are switched off with alerts of an objective.")
	_ = c.RegisterFlagCompletionFunc("without-alert",
		func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return slo.SwitchableAlerts(), cobra.ShellCompDirectiveNoFileComp
		})
}

// readSet reads the objectives of files. namespace is the namespace of the operators for which a file names none.
// SLOs that are invalid are returned in refused and are not in the set. The notes are other findings about the files.
func (o *objectiveFlags) readSet(files []string, namespace string) (all slo.Set, refused []error, notes []string,
	err error) {
	all = slo.Set{RunbookURL: o.runbook, DashboardURL: o.dashboard, WithoutAlerts: o.withoutAlerts}
	if !o.noDefault {
		all.Default = slo.DefaultProfile()
	}
	var references read.Given
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return all, nil, nil, fmt.Errorf("read objectives: %w", err)
		}
		report, err := read.File(&all, namespace, text)
		if err != nil {
			return all, nil, nil, addHint(fmt.Errorf("read %s: %w", file, err))
		}
		for _, err := range report.Refused {
			refused = append(refused, fmt.Errorf("read %s: %w", file, err))
		}
		for _, note := range report.Notes {
			notes = append(notes, file+": "+note)
		}
		references.Add(report.Given)
	}
	notes = append(notes, references.Unknown(all)...)
	if o.noDefault && len(files) == 0 {
		return all, nil, nil, exit.Hintf("set a file, or remove --no-default", "no objectives")
	}
	for _, op := range all.Operators {
		all.Named = append(all.Named, op.ID())
	}
	return all, refused, notes, nil
}

// readObjectives reads the objectives of files, in the namespace of -n, and prints the notes about the files.
func (a *app) readObjectives(o *objectiveFlags, files []string) (all slo.Set, refused []error, err error) {
	namespace, err := a.Namespace()
	if err != nil {
		return all, nil, err
	}
	all, refused, notes, err := o.readSet(files, namespace)
	for _, note := range notes {
		a.Warn("%s\n", note)
	}
	return all, refused, err
}

// reportRefused returns an error if there are invalid SLOs. A single one is this error; several are printed, and the
// error has their number.
func (a *app) reportRefused(refused []error) error {
	switch len(refused) {
	case 0:
		return nil
	case 1:
		return addHint(refused[0])
	}
	for _, err := range refused {
		a.Warn("%v\n", err)
	}
	return exit.Hintf("correct or remove them; the others are not affected", "%d SLOs are left out", len(refused))
}

// addHint adds to an error about invalid objectives what the user can do.
func addHint(err error) error {
	switch {
	case errors.Is(err, slo.ErrTarget):
		return exit.Hint(err, "use a percentage above 0 and below 100, for example \"99.9\"")
	case errors.Is(err, slo.ErrPart):
		return exit.Hint(err, "use --part edge or --part hub")
	case errors.Is(err, slo.ErrSender):
		return exit.Hint(err, "use --cluster NAME and --remote-write-url URL, as in docs/guides/telemetry.md")
	case errors.Is(err, slo.ErrThreshold):
		return exit.Hint(err, "the thresholds of each SLI are described in docs/guides/slos.md")
	case errors.Is(err, slo.ErrPeriod):
		return exit.Hint(err, "use a period such as 30d or 4w")
	case errors.Is(err, slo.ErrQuery):
		return exit.Hint(err, "use PromQL; check the query with promtool or in Prometheus")
	case errors.Is(err, read.ErrFormat), errors.Is(err, read.ErrUnsupported), errors.Is(err, slo.ErrSLI):
		return exit.Hint(err, "the format and the SLIs are described in docs/guides/slos.md")
	default:
		return err
	}
}

const sloGenerateLong = `Generate the recording and alerting rules for the operators of the fleet.

Without a file, every operator has the default profile. The objectives in a file
apply to the operators that the file names. The formats are OperatorSLO, OpenSLO v1,
and sloth's prometheus/v1 and PrometheusServiceLevel. If a file does not name the namespace of an operator, the
namespace of -n or of the context is used.

The output is a rule file for Prometheus 3 or, with -o objects, PrometheusRule
objects. Its size does not depend on the number of operators and clusters.

By default all rules are for one Prometheus that scrapes the hub and all clusters.
Where each cluster has a Prometheus of its own, use --part edge for those and
--part hub for the one of the hub. The clusters send a few series to it by remote
write, for which ` + "`bellwether slo edge-config`" + ` writes the configuration.

An SLO that cannot be read, for example because its query is not PromQL, is reported
on standard error. The rules of the others are generated, and the command fails.
Objectives whose alerts cannot work as expected are reported too.

The files may also have ManagedOperators and EndpointProbes. Objectives and probes that name
an operator or a probe that is not among them are reported.`

const outputObjects = "objects"

func (a *app) newGenerateCommand() *cobra.Command {
	var set objectiveFlags
	var out command.Output
	var file, namespace, part string
	c := &cobra.Command{
		Use: "generate [FILE...]", Short: "Generate the rules for Prometheus", Long: sloGenerateLong,
		Example: "  bellwether slo generate --file bellwether.rules.yaml\n" +
			"  bellwether slo generate --part edge --file edge.rules.yaml\n" +
			"  bellwether slo generate objectives.yaml -o objects | kubectl apply -f -",
		ValidArgsFunction: completeYAML,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			s, refused, err := a.readObjectives(&set, args)
			if err != nil {
				return err
			}
			p, err := slo.ParsePart(part)
			if err != nil {
				return addHint(err)
			}
			rules, err := slo.BuildPart(s, p)
			if err != nil {
				return addHint(err)
			}
			a.warnInfeasible(s)
			text, err := encodeRules(rules, p, out.Format, namespace)
			if err != nil {
				return err
			}
			if err := a.WriteOutput(string(text), file); err != nil {
				return err
			}
			return a.reportRefused(refused) // after the rules of the valid SLOs are written
		},
	}
	set.addFlags(c)
	out.Add(c, command.OutputYAML, outputObjects)
	c.Flags().StringVar(&file, "file", "", "Write to this `FILE`.")
	c.Flags().StringVar(&namespace, "rules-namespace", "monitoring", "The namespace of PrometheusRule objects.")
	c.Flags().StringVar(&part, "part", "",
		"The part of the rules: edge or hub. Default: all rules, for one Prometheus.")
	_ = c.MarkFlagFilename("file", "yaml", "yml")
	_ = c.RegisterFlagCompletionFunc("part", cobra.FixedCompletions([]string{string(slo.Edge), string(slo.Hub)},
		cobra.ShellCompDirectiveNoFileComp))
	return c
}

// completeYAML completes arguments with the names of YAML files.
func completeYAML(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

// encodeRules returns the rules as a rule file or, in the format objects, as PrometheusRule objects in a namespace.
func encodeRules(rules *slo.Rules, part slo.Part, format, namespace string) ([]byte, error) {
	out := []byte(part.Comment())
	if format != outputObjects {
		text, err := slo.RuleFile(rules.All())
		return append(out, text...), err
	}
	name := "bellwether-slo"
	if part != slo.Whole {
		name += "-" + string(part)
	}
	for _, o := range rules.PrometheusRules(namespace, name,
		map[string]string{"app.kubernetes.io/managed-by": "bellwether"}) {
		text, err := encodeRule(o)
		if err != nil {
			return nil, err
		}
		out = append(append(out, "---\n"...), text...)
	}
	return out, nil
}

// encodeRule returns a PrometheusRule as YAML, without its status.
func encodeRule(o *monitoringv1.PrometheusRule) ([]byte, error) {
	// The type would encode an empty status, and a client must not send a status.
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

// warnInfeasible prints the objectives of the files whose alerts cannot work as expected. The default
// profile has no such objectives.
func (a *app) warnInfeasible(s slo.Set) {
	for _, op := range s.Operators {
		for _, o := range op.Objectives {
			for _, f := range slo.Feasible(o) {
				a.Warn("%s: %s\n", op.ID(), f.Message)
			}
		}
	}
}

const sloTestLong = `Write unit tests for the rules, and run them with promtool if it is on the PATH.

The tests cover total outages, partial outages above and below each tier, recovery,
single bad samples, missing data and NaN, added and removed clusters, upgrades during
an outage, bad releases, and edited objectives.

The rules are written to rules.yaml and the tests to tests.yaml. promtool evaluates
more than three days minute by minute, which takes one or two minutes.`

func (a *app) newTestCommand() *cobra.Command {
	var set objectiveFlags
	var dir string
	c := &cobra.Command{
		Use: "test [FILE...]", Short: "Test the rules with promtool", Long: sloTestLong,
		Example:           "  bellwether slo test --dir ./out\n  bellwether slo test objectives.yaml --dir ./out",
		ValidArgsFunction: completeYAML,
		RunE: func(c *cobra.Command, args []string) error {
			s, refused, err := a.readObjectives(&set, args)
			if err != nil {
				return err
			}
			if err := a.reportRefused(refused); err != nil {
				return err
			}
			if err := writeRuleTests(s, dir); err != nil {
				return err
			}
			a.Warn("Wrote %s and %s.\n", filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "tests.yaml"))
			return a.runPromtool(c.Context(), dir)
		},
	}
	set.addFlags(c)
	c.Flags().StringVar(&dir, "dir", ".", "The `FOLDER` to write to.")
	_ = c.MarkFlagDirname("dir")
	return c
}

// writeRuleTests writes the rules and their unit tests for promtool to a folder.
func writeRuleTests(s slo.Set, dir string) error {
	rules, err := slo.Build(s)
	if err != nil {
		return addHint(err)
	}
	tests, err := slo.Tests(s, "rules.yaml")
	if err != nil {
		return addHint(err)
	}
	text, err := slo.RuleFile(rules.All())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // all users may read rules
		return fmt.Errorf("make folder: %w", err)
	}
	for name, content := range map[string][]byte{"rules.yaml": text, "tests.yaml": tests} {
		//nolint:gosec // all users may read rules
		if err := os.WriteFile(filepath.Join(dir, name), content,
			0o644); err != nil {
			return fmt.Errorf("write rules: %w", err)
		}
	}
	return nil
}

// runPromtool checks and tests the rules in a folder. If promtool is not installed, it prints how to run the tests.
func (a *app) runPromtool(ctx context.Context, dir string) error {
	path, _ := exec.LookPath("promtool")
	if path == "" {
		a.Warn("promtool (Prometheus 3) is not on the PATH. To run the tests, use `promtool test rules tests.yaml`.\n")
		return nil
	}
	for _, args := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "tests.yaml"}} {
		promtool := exec.CommandContext(ctx, path, args...) //nolint:gosec // the path from LookPath, and constants
		promtool.Dir, promtool.Stdout, promtool.Stderr = dir, a.Streams.Out, a.Streams.ErrOut
		if err := promtool.Run(); err != nil {
			return exit.Hint(fmt.Errorf("promtool %s: %w", args[0], err),
				"see its output above; the version must be Prometheus 3")
		}
	}
	return nil
}
