// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package root_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/root"
)

func TestOutputs(t *testing.T) {
	w := clitest.NewWorld(clitest.Cluster("prod-1", map[string]string{"env": "prod"}),
		clitest.Cluster("canary-1", map[string]string{"env": "canary"}), clitest.Operator("echo", "1.1.0"))
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"names": {[]string{"fleet", "list", "-o", "name"},
			"fleetcluster.bellwether.dev/canary-1\nfleetcluster.bellwether.dev/prod-1\n"},
		"selected": {[]string{"fleet", "list", "-o", "name", "-l", "env=prod"},
			"fleetcluster.bellwether.dev/prod-1\n"},
		"operators by name": {[]string{"operator", "list", "-o", "name"}, "managedoperator.bellwether.dev/echo\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(clitest.Result{Out: test.want}, w.Run(t, test.args...)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
	for _, format := range []string{"json", "yaml"} {
		got := w.Run(t, "operator", "get", "echo", "-o", format)
		if !strings.Contains(got.Out, "ManagedOperator") || !strings.Contains(got.Out, "bellwether.dev/v1alpha1") {
			t.Errorf("-o %s has no kind and version:\n%s", format, got.Out)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	w := clitest.NewWorld(clitest.Operator("echo", "1.1.0"),
		clitest.Rollout("echo", "echo-1", 1, v1alpha1.RolloutSucceeded),
		clitest.Cluster("prod-1", nil))
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"unknown operator": {
			[]string{"operator", "get", "ecko"},
			"Error: there is no operator \"ecko\" in namespace \"default\"\nHint:  there is echo\n",
		},
		"unknown rollout": {
			[]string{"rollout", "get", "ecko"},
			"Error: there is no rollout and no operator \"ecko\" in namespace \"default\"\nHint:  there is echo\n",
		},
		"unknown cluster": {[]string{"why", "prod-9", "echo"},
			"Error: there is no cluster \"prod-9\" in the fleet\nHint:  there is prod-1\n"},
		"unknown command": {[]string{"rollout", "paus", "echo"},
			"Error: there is no command `bellwether rollout paus`\nHint:  did you mean `bellwether rollout pause`?\n"},
		"unknown flag": {[]string{"fleet", "list", "--wide"},
			"Error: unknown flag: --wide\nHint:  see `bellwether fleet list --help`\n"},
		"unknown format": {
			[]string{"fleet", "list", "-o", "xml"},
			"Error: -o xml is not an output format of this command\nHint:  choose one of [wide json yaml name], or " +
				"leave it out for a table\n",
		},
		"too few arguments": {[]string{"why", "prod-1"},
			"Error: give the operator's name\nHint:  usage: bellwether why CLUSTER OPERATOR [flags]\n"},
		"no reason": {[]string{"rollout", "abort", "echo"},
			"Error: say why\nHint:  add --reason \"…\"; it is kept with the rollout\n"},
		"ended": {
			[]string{"rollout", "pause", "echo"},
			"Error: rollout echo-1 has already ended (Succeeded)\nHint:  start another one with `rollout " +
				"restart echo`, or change the ManagedOperator\n",
		},
		"bad selector": {[]string{"fleet", "list", "-l", "a=b=c"}, "Hint:  write it as env=prod,region!=eu\n"},
		"no kubeconfig to join": {
			[]string{"fleet", "join", "prod-2"},
			"Error: give the cluster's kubeconfig with --cluster-kubeconfig FILE\nHint:  or --write-kubeconfig FILE " +
				"to install the agent by other means\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.Run(t, test.args...)
			if got.Code != exit.Error || !strings.HasSuffix(got.Err, test.want) {
				t.Errorf("exit code %d and\n%s\nwant %d and\n%s", got.Code, got.Err, exit.Error, test.want)
			}
		})
	}
}

func TestAsAKubectlPlugin(t *testing.T) {
	w := clitest.NewWorld()
	if got := w.RunAs(t, "/usr/local/bin/kubectl-bellwether", "rollout", "status", "--help"); !strings.Contains(got.Out,
		"kubectl bellwether rollout status NAME") {
		t.Errorf("the usage does not say how to call a plugin:\n%s", got.Out)
	}
	if got := w.RunAs(t, "kubectl-bellwether", "why", "a"); !strings.Contains(got.Err,
		"usage: kubectl bellwether why") {
		t.Errorf("the hint does not say how to call a plugin:\n%s", got.Err)
	}
}

func TestCompletion(t *testing.T) {
	w := clitest.NewWorld(clitest.Operator("echo", "1.1.0"), clitest.Gated(),
		clitest.Cluster("prod-1", map[string]string{"region": "eu"}))
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"clusters":        {[]string{"fleet", "get", ""}, "prod-1\teu\n"},
		"rollouts":        {[]string{"rollout", "get", ""}, "echo\techo-operator\necho-2\t1.1.0 Progressing\n"},
		"second argument": {[]string{"why", "prod-1", ""}, "echo\techo-operator\n"},
		"waves":           {[]string{"rollout", "approve", "echo", "--wave", ""}, "rest\n"},
		"formats":         {[]string{"fleet", "list", "-o", ""}, "wide\njson\nyaml\nname\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.Run(t, append([]string{"__complete"}, test.args...)...)
			if !strings.HasPrefix(got.Out, test.want) {
				t.Errorf("completes to\n%s\nwant\n%s", got.Out, test.want)
			}
		})
	}
}

func TestDocs(t *testing.T) {
	dir := t.TempDir()
	if got := clitest.NewWorld().Run(t, "docs", dir, "--reasons",
		filepath.Join(dir, "reasons.md")); got.Code != exit.OK {
		t.Fatal(got.Err)
	}
	for _, name := range []string{"bellwether.md", "bellwether_rollout_status.md", "bellwether_why.md", "reasons.md"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("no %s: %v", name, err)
		}
	}
}

// TestEveryCommandIsDocumented holds the help to a shape: what each command
// does in a phrase, and flags as sentences.
func TestEveryCommandIsDocumented(t *testing.T) {
	a := command.NewEnv("bellwether", genericiooptions.IOStreams{Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}})
	commands := root.New(a).Commands()
	for len(commands) > 0 {
		c := commands[0]
		commands = append(commands[1:], c.Commands()...)
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || strings.ToUpper(c.Short[:1]) != c.Short[:1] {
			t.Errorf("%s: its short help is no phrase: %q", c.CommandPath(), c.Short)
		}
	}
}
