// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dashboards provides the commands that list and write the Grafana dashboards.
package dashboards

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/dashboards"
)

// app is the environment of the commands in this package.
type app struct{ *command.Env }

// Command returns the command dashboards with its subcommands.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	return command.NewParent("dashboards", "List and write the Grafana dashboards", []string{"dashboard"},
		a.newListCommand(), a.newWriteCommand())
}

func (a *app) newListCommand() *cobra.Command {
	var out command.Output
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the dashboards", Args: command.NoArgs,
		Example: "  bellwether dashboards list",
		RunE: func(*cobra.Command, []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			all := dashboards.All()
			if !out.Table() {
				return out.Value(a.Streams.Out, summarize(all))
			}
			a.Table(&out, buildTable(all))
			return nil
		},
	}
	out.Add(c, command.OutputJSON, command.OutputYAML)
	return c
}

// dashboardSummary is a row of dashboards list.
type dashboardSummary struct {
	UID         string   `json:"uid"`
	Title       string   `json:"title"`
	Panels      int      `json:"panels"`
	Variables   []string `json:"variables"`
	Description string   `json:"description"`
}

// summarize returns the summaries of the dashboards.
func summarize(all []dashboards.Dashboard) []dashboardSummary {
	out := make([]dashboardSummary, 0, len(all))
	for _, d := range all {
		s := dashboardSummary{UID: ptr.Deref(d.Uid, ""), Title: ptr.Deref(d.Title, ""),
			Description: ptr.Deref(d.Description, "")}
		for _, p := range d.Panels {
			if p.Panel != nil {
				s.Panels++
			}
		}
		for _, v := range d.Templating.List {
			s.Variables = append(s.Variables, v.Name)
		}
		out = append(out, s)
	}
	return out
}

// buildTable returns the table of dashboards list.
func buildTable(all []dashboards.Dashboard) *term.Table {
	t := &term.Table{Header: []string{"UID", "TITLE", "PANELS", "VARIABLES"}, Wrap: true}
	for _, s := range summarize(all) {
		t.Add(term.Cell{Text: s.UID}, term.Cell{Text: s.Title}, term.Cell{Text: strconv.Itoa(s.Panels)},
			term.Cell{Text: strings.Join(s.Variables, ", ")})
	}
	return t
}

const dashboardsWriteLong = `Write the dashboards to a folder. Without UID, all dashboards are written.

The default format is JSON, which Grafana can import or provision from files. Use
-o configmap to write ConfigMaps for the sidecar of Grafana's chart, and
-o grafanadashboard to write objects for grafana-operator. The chart of the hub
installs the same ConfigMaps.

In each dashboard you can choose the data source: the Prometheus that evaluates the
rules of ` + "`bellwether slo`" + ` and scrapes hub and agents.`

const (
	outputConfigMap        = "configmap"
	outputGrafanaDashboard = "grafanadashboard"
)

// dashboardsOptions set the format in which dashboards are written.
type dashboardsOptions struct {
	out       command.Output
	namespace string
	instances map[string]string
}

func (a *app) newWriteCommand() *cobra.Command {
	var f dashboardsOptions
	c := &cobra.Command{
		Use: "write FOLDER [UID...]", Short: "Write the dashboards to a folder", Long: dashboardsWriteLong,
		Example: "  bellwether dashboards write ./dashboards\n" +
			"  bellwether dashboards write ./objects bellwether-fleet -o configmap && kubectl apply -f ./objects",
		Args:              checkFolderArgument,
		ValidArgsFunction: completeDashboards,
		RunE: func(_ *cobra.Command, args []string) error {
			if !slices.Contains(f.out.Allowed, f.out.Format) {
				return exit.Hintf("use one of "+strings.Join(f.out.Allowed, ", "),
					"dashboards cannot be written as %s",
					f.out.Format)
			}
			selected, err := selectDashboards(args[1:])
			if err != nil {
				return err
			}
			return a.writeDashboards(selected, args[0], f)
		},
	}
	f.out.Add(c, command.OutputJSON, outputConfigMap, outputGrafanaDashboard)
	f.out.Format = command.OutputJSON
	c.Flags().StringVar(&f.namespace, "dashboards-namespace", "monitoring",
		"The namespace of ConfigMaps and GrafanaDashboards.")
	c.Flags().StringToStringVar(&f.instances, "grafana", map[string]string{"dashboards": "grafana"},
		"The labels of the Grafana instances that show the GrafanaDashboards, as `KEY=VALUE`.")
	return c
}

// checkFolderArgument requires a folder as the first argument.
func checkFolderArgument(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return exit.Hintf("usage: "+c.UseLine(), "missing argument: the folder")
	}
	return nil
}

// completeDashboards completes first a folder and then UIDs.
func completeDashboards(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	var uids []string
	for _, s := range summarize(dashboards.All()) {
		if !slices.Contains(args[1:], s.UID) {
			uids = append(uids, s.UID+"\t"+s.Title)
		}
	}
	return uids, cobra.ShellCompDirectiveNoFileComp
}

// selectDashboards returns the dashboards with the UIDs; all dashboards if uids is empty.
func selectDashboards(uids []string) ([]dashboards.Dashboard, error) {
	all := dashboards.All()
	if len(uids) == 0 {
		return all, nil
	}
	var out []dashboards.Dashboard
	for _, uid := range uids {
		i := slices.IndexFunc(all, func(d dashboards.Dashboard) bool { return ptr.Deref(d.Uid, "") == uid })
		if i < 0 {
			return nil, exit.Hintf("run `bellwether dashboards list` to see all dashboards", "unknown dashboard %s",
				uid)
		}
		out = append(out, all[i])
	}
	return out, nil
}

// writeDashboards writes each dashboard to a file in dir.
func (a *app) writeDashboards(selected []dashboards.Dashboard, dir string, f dashboardsOptions) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // dashboards are for everybody
		return fmt.Errorf("make folder: %w", err)
	}
	for _, d := range selected {
		text, err := f.encode(d)
		if err != nil {
			return err
		}
		file := dashboards.FileName(d)
		if f.out.Format != command.OutputJSON {
			file = strings.TrimSuffix(file, ".json") + ".yaml"
		}
		//nolint:gosec // dashboards are for everybody
		if err := os.WriteFile(filepath.Join(dir, file), text,
			0o644); err != nil {
			return fmt.Errorf("write dashboard: %w", err)
		}
	}
	a.Warn("Wrote %d dashboards to %s.\n", len(selected), dir)
	return nil
}

// encode returns a dashboard in the selected format.
func (f dashboardsOptions) encode(d dashboards.Dashboard) ([]byte, error) {
	var object any
	var err error
	switch f.out.Format {
	case outputConfigMap:
		object, err = dashboards.ConfigMap(d, f.namespace)
	case outputGrafanaDashboard:
		object, err = dashboards.NewGrafanaDashboard(d, f.namespace, f.instances)
	default:
		return dashboards.JSON(d)
	}
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("write object: %w", err)
	}
	return text, nil
}
