// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package root_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/root"
)

// shorthands are the letters of flags, which are the same as kubectl's.
var shorthands = map[string]string{"all-namespaces": "A", "output": "o", "namespace": "n", "selector": "l",
	"filename": "f", "watch": "w", "yes": "y", "server": "s", "help": "h"}

// onlyOneFormat are commands whose output has a special format.
var onlyOneFormat = map[string]string{
	"boilerplate check": "text, json, SARIF and GitHub's, as bundle lint",
	"bundle lint":       "text, json and SARIF, for tools that read reports of linters", "catalog graph": "pictures",
	"dashboards write": "files for Grafana", "slo generate": "rules", "slo edge-config": "a configuration",
	"rollout plan": "a table",
}

// ofClusters are lists of objects without a namespace that -n could select.
var ofClusters = []string{"fleet list", "dashboards list", "boilerplate list"}

// TestFlagsMeanTheSameEverywhere looks at the flags of all commands.
func TestFlagsMeanTheSameEverywhere(t *testing.T) {
	var out bytes.Buffer
	usages := map[string]string{}
	walk(root.New(command.NewEnv("bellwether", genericiooptions.IOStreams{Out: &out, ErrOut: &out})),
		func(c *cobra.Command, name string) {
			c.Flags().VisitAll(func(f *pflag.Flag) {
				if want, shared := shorthands[f.Name]; f.Shorthand != want && (shared || f.Shorthand != "") {
					t.Errorf("%s: --%s has the letter %q, want %q", name, f.Name, f.Shorthand, want)
				}
				if f.Name != "all-namespaces" {
					return
				}
				if usage, known := usages[f.Name]; known && usage != f.Usage || f.Value.Type() != "bool" {
					t.Errorf("%s: -A means %q, and elsewhere %q", name, f.Usage, usage)
				}
				usages[f.Name] = f.Usage
			})
			checkOutput(t, c, name)
			isList := c.Name() == "list" || slices.Contains(c.Aliases, "list")
			if isList && !slices.Contains(ofClusters, name) && c.Flags().Lookup("all-namespaces") == nil {
				t.Errorf("%s lists objects of namespaces, and has no -A", name)
			}
			if isList && name != "dashboards list" && !strings.Contains(formats(c), "wide") {
				t.Errorf("%s lists objects, and has no -o wide", name)
			}
		})
}

// checkOutput requires that -o has the formats JSON and YAML.
func checkOutput(t *testing.T, c *cobra.Command, name string) {
	t.Helper()
	allowed := formats(c)
	if allowed == "" || onlyOneFormat[name] != "" {
		return
	}
	for _, want := range []string{command.OutputJSON, command.OutputYAML} {
		if !strings.Contains(allowed, want) {
			t.Errorf("%s has -o %s, without %s", name, allowed, want)
		}
	}
}

// formats are those of -o, as its usage lists them.
func formats(c *cobra.Command) string {
	flag := c.Flags().Lookup("output")
	if flag == nil {
		return ""
	}
	allowed, _ := strings.CutPrefix(flag.Usage, "Output format: ")
	return allowed
}

func walk(c *cobra.Command, visit func(c *cobra.Command, name string)) {
	_, name, _ := strings.Cut(c.CommandPath(), " ")
	if c.Runnable() && !c.HasSubCommands() {
		visit(c, name)
	}
	for _, child := range c.Commands() {
		walk(child, visit)
	}
}

// TestNamespaceOfListsOfAllNamespaces: for commands that show all namespaces, -n selects one
// namespace, and -A is the default.
func TestNamespaceOfListsOfAllNamespaces(t *testing.T) {
	h := clitest.NewHub()
	for _, args := range [][]string{{"slo", "list"}, {"backup", "list"}, {"oncall", "handover"}} {
		got := h.Run(t, append(args, "-A", "-n", "team")...)
		if !strings.Contains(got.Err, "--namespace and --all-namespaces exclude each other\nHint:  set only one") {
			t.Errorf("%v -A -n team: %d %q", args, got.Code, got.Err)
		}
	}
}
