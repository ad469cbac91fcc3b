// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package root_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/root"
)

func TestOutputs(t *testing.T) {
	h := clitest.NewHub(clitest.Cluster("prod-1", map[string]string{"env": "prod"}),
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
			if diff := cmp.Diff(clitest.Result{Out: test.want}, h.Run(t, test.args...)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
	for _, format := range []string{"json", "yaml"} {
		got := h.Run(t, "operator", "get", "echo", "-o", format)
		if !strings.Contains(got.Out, "ManagedOperator") || !strings.Contains(got.Out, "bellwether.dev/v1alpha1") {
			t.Errorf("-o %s has no kind and version:\n%s", format, got.Out)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	h := clitest.NewHub(clitest.Operator("echo", "1.1.0"),
		clitest.Rollout("echo", "echo-1", 1, v1alpha1.RolloutSuperseded),
		clitest.Cluster("prod-1", nil))
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"unknown operator": {
			[]string{"operator", "get", "ecko"},
			"Error: there is no operator \"ecko\" in namespace \"default\"\nHint:  available: echo\n",
		},
		"unknown rollout": {
			[]string{"rollout", "get", "ecko"},
			"Error: there is no rollout and no operator \"ecko\" in namespace \"default\"\nHint:  available: echo\n",
		},
		"unknown cluster": {[]string{"why", "prod-9", "echo"},
			"Error: there is no cluster \"prod-9\" in the fleet\nHint:  available: prod-1\n"},
		"unknown command": {[]string{"rollout", "paus", "echo"},
			"Error: there is no command `bellwether rollout paus`\nHint:  did you mean `bellwether rollout pause`?\n"},
		"unknown flag": {[]string{"fleet", "list", "--wide"},
			"Error: unknown flag: --wide\nHint:  see `bellwether fleet list --help`\n"},
		"unknown format": {
			[]string{"fleet", "list", "-o", "xml"},
			"Error: invalid value \"xml\" of -o\nHint:  use one of wide, json, yaml, name\n",
		},
		"too few arguments": {[]string{"why", "prod-1"},
			"Error: missing argument: the operator's name\nHint:  usage: bellwether why CLUSTER OPERATOR [flags]\n"},
		"too many arguments": {[]string{"fleet", "list", "prod"},
			"Error: unexpected argument \"prod\"\nHint:  usage: bellwether fleet list [flags]\n"},
		"no reason": {[]string{"rollout", "abort", "echo"},
			"Error: no reason given\nHint:  set --reason, which is stored in the rollout\n"},
		"ended": {
			[]string{"rollout", "pause", "echo"},
			"Error: rollout echo-1 has already ended (Superseded)\nHint:  start another one with `rollout " +
				"restart echo`, or change the ManagedOperator\n",
		},
		"bad selector": {[]string{"fleet", "list", "-l", "a=b=c"}, "Hint:  use the form env=prod,region!=eu\n"},
		"no kubeconfig to join": {
			[]string{"fleet", "join", "prod-2"},
			"Error: no kubeconfig for the cluster: set --cluster-kubeconfig\nHint:  or set --write-manifest or " +
				"--write-kubeconfig to install the agent with another tool\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := h.Run(t, test.args...)
			if got.Code != exit.Error || !strings.HasSuffix(got.Err, test.want) {
				t.Errorf("exit code %d and\n%s\nwant %d and\n%s", got.Code, got.Err, exit.Error, test.want)
			}
		})
	}
}

func TestAsAKubectlPlugin(t *testing.T) {
	h := clitest.NewHub()
	if got := h.RunAs(t, "/usr/local/bin/kubectl-bellwether", "rollout", "status", "--help"); !strings.Contains(got.Out,
		"kubectl bellwether rollout status NAME") {
		t.Errorf("the usage does not say how to call a plugin:\n%s", got.Out)
	}
	if got := h.RunAs(t, "kubectl-bellwether", "why", "a"); !strings.Contains(got.Err,
		"usage: kubectl bellwether why") {
		t.Errorf("the hint does not say how to call a plugin:\n%s", got.Err)
	}
}

func TestCompletion(t *testing.T) {
	in := func(namespace string, o client.Object) client.Object {
		o.SetNamespace(namespace)
		return o
	}
	catalog := &v1alpha1.OperatorCatalog{ObjectMeta: metav1.ObjectMeta{Name: "main"}}
	catalog.Spec.Source.Image = "registry.example.com/main"
	silence := &v1alpha1.AlertSilence{ObjectMeta: metav1.ObjectMeta{Name: "quiet"},
		Spec: v1alpha1.AlertSilenceSpec{Reason: "disks"}}
	conditions.Set(&silence.Status.Conditions, 1, v1alpha1.ConditionActive, true, v1alpha1.ReasonInForce, "")
	backup := &v1alpha1.OperatorBackup{ObjectMeta: metav1.ObjectMeta{Name: "team.storage.1"}}
	backup.Spec.Operator = v1alpha1.OperatorReference{Namespace: "team", Name: "storage"}
	h := clitest.NewHub(clitest.Operator("echo", "1.1.0"), clitest.GatedRollout(),
		clitest.Cluster("prod-1", map[string]string{"region": "eu"}), in("team", clitest.Operator("storage", "1.0.0")),
		in("team", clitest.Operator("twice", "1.0.0")), in("tools", clitest.Operator("twice", "1.0.0")),
		in("team", catalog), in("team", silence), in("bellwether-prod-1", backup))
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"clusters": {[]string{"fleet", "get", ""}, "prod-1\teu\n"},
		"rollouts": {[]string{"rollout", "get", ""}, "echo\techo-operator\nstorage\techo-operator\n" +
			"team/twice\techo-operator\ntools/twice\techo-operator\necho-2\t1.1.0 Progressing\n"},
		"second argument": {[]string{"why", "prod-1", ""}, "echo\techo-operator\n"},
		"operators elsewhere": {[]string{"operator", "get", ""}, "echo\techo-operator\nstorage\techo-operator\n" +
			"team/twice\techo-operator\ntools/twice\techo-operator\n"},
		"with a namespace": {[]string{"operator", "get", "team/"}, "default/echo\techo-operator\n" +
			"team/storage\techo-operator\nteam/twice"},
		"catalogs elsewhere":         {[]string{"catalog", "get", ""}, "team/main\tregistry.example.com/main\n"},
		"silences elsewhere":         {[]string{"silence", "end", ""}, "team/quiet\tdisks\n"},
		"backups":                    {[]string{"backup", "show", "prod-1", ""}, "team.storage.1\tteam/storage\n"},
		"backups to restore":         {[]string{"backup", "restore", "prod-1", ""}, "team.storage.1\tteam/storage\n"},
		"backups of another cluster": {[]string{"backup", "show", "prod-2", ""}, ":4\n"},
		"waves":                      {[]string{"rollout", "approve", "echo", "--wave", ""}, "rest\n"},
		"formats":                    {[]string{"fleet", "list", "-o", ""}, "wide\njson\nyaml\nname\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := h.Run(t, append([]string{"__complete"}, test.args...)...)
			if !strings.HasPrefix(got.Out, test.want) {
				t.Errorf("completes to\n%s\nwant\n%s", got.Out, test.want)
			}
		})
	}
}

func TestDocs(t *testing.T) {
	dir := t.TempDir()
	if got := clitest.NewHub().Run(t, "docs", dir, "--pages"); got.Code != exit.OK {
		t.Fatal(got.Err)
	}
	for name, want := range map[string]string{
		"cli.md": `<a id="bellwether-rollout-status"></a>[` +
			"`bellwether rollout status`](cli/bellwether_rollout_status.md)",
		"rules.md":                         "[Examples](rules/of-csv.md)",
		"cli/bellwether_rollout_status.md": "## bellwether rollout status",
		"cli/bellwether_why.md":            "## bellwether why",
		"rules/of-csv.md":                  "# of-csv",
		"reasons.md":                       "# Condition reasons",
	} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s (%v) does not contain %q", name, err, want)
		}
	}
}

// TestEveryCommandIsDocumented requires that the short help is a phrase, and that every command without subcommands has
// an example.
func TestEveryCommandIsDocumented(t *testing.T) {
	for _, c := range commands(t) {
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || strings.ToUpper(c.Short[:1]) != c.Short[:1] {
			t.Errorf("%s: its short help is not a phrase: %q", c.CommandPath(), c.Short)
		}
		if !c.HasSubCommands() && !c.Hidden && c.Example == "" {
			t.Errorf("%s: its help has no example", c.CommandPath())
		}
	}
}

// TestHubFlags requires the flags that select a cluster for commands that connect to the hub or a cluster, and refuses
// these flags for other commands.
func TestHubFlags(t *testing.T) {
	offline := []string{"bellwether boilerplate", "bellwether registry", "bellwether dashboards", "bellwether version",
		"bellwether docs", "bellwether page runbook", "bellwether catalog init", "bellwether catalog add",
		"bellwether catalog promote", "bellwether catalog block", "bellwether catalog unblock",
		"bellwether catalog deprecate", "bellwether catalog retire", "bellwether catalog show",
		"bellwether catalog push", "bellwether catalog serve", "bellwether catalog publish",
		"bellwether catalog verify", "bellwether catalog keygen", "bellwether operator init"}
	seen := 0
	for _, c := range commands(t) {
		if c.HasSubCommands() {
			continue
		}
		path := c.CommandPath() + " "
		want := path == "bellwether bundle try " || !strings.HasPrefix(path, "bellwether bundle ") &&
			!slices.ContainsFunc(offline, func(o string) bool { return strings.HasPrefix(path, o+" ") })
		if want {
			seen++
		}
		for _, flag := range []string{"kubeconfig", "context"} {
			if got := c.InheritedFlags().Lookup(flag) != nil || c.PersistentFlags().Lookup(flag) != nil; got != want {
				t.Errorf("%shas --%s: %t, want %t", path, flag, got, want)
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d commands talk to the hub", seen)
	}
	h := clitest.NewHub(clitest.Operator("echo", "1.1.0"))
	for _, args := range [][]string{{"-n", "default", "operator", "list"},
		{"--request-timeout", "5s", "operator", "list"},
		{"operator", "--namespace", "default", "list"}} {
		if got := h.Run(t, args...); !strings.Contains(got.Out, "echo") {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if got := h.Run(t, "bundle", "lint", "--list", "--context", "c"); got.Code == exit.OK {
		t.Error("a flag that has no meaning is accepted")
	}
}

// A full disk is reported in one line, also if it causes other errors.
func TestFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "catalog")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	const catalog = `{"schema":"olm.package","name":"p","defaultChannel":"stable"}
{"schema":"olm.channel","package":"p","name":"stable","entries":[{"name":"p.v1.0.0"}]}
{"schema":"olm.bundle","package":"p","name":"p.v1.0.0","image":"example.com/p:1","properties":[` +
		`{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}
`
	if err := os.WriteFile(filepath.Join(dir, "c.json"), []byte(catalog), 0o600); err != nil {
		t.Fatal(err)
	}
	got := clitest.NewHub().Run(t, "catalog", "graph", dir, "p", "-o", "svg", "--file", "/dev/full")
	if got.Code != exit.Error || !strings.HasPrefix(got.Err,
		"Error: the disk is full: cannot write /dev/full\nHint:  ") || strings.Count(got.Err, "\n") != 2 {
		t.Errorf("got %d: %s", got.Code, got.Err)
	}
}

// words matches the words of a command line, quoted or not.
var words = regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`)

// TestExamplesAreValid parses the command lines of all examples, with their flags and arguments.
func TestExamplesAreValid(t *testing.T) {
	for _, documented := range commands(t) {
		for line := range strings.Lines(documented.Example) {
			_, line, found := strings.Cut(line, "bellwether ")
			if !found {
				continue
			}
			line, _, _ = strings.Cut(line, " | ")
			line, _, _ = strings.Cut(line, " && ")
			line, _, _ = strings.Cut(line, " > ")
			args := words.FindAllString(line, -1)
			c, rest, err := newRoot().Find(args)
			if err != nil || c.CommandPath() != documented.CommandPath() {
				t.Errorf("%s: example %q runs %s: %v", documented.CommandPath(), line, c.CommandPath(), err)
				continue
			}
			if err := c.ParseFlags(rest); err != nil {
				t.Errorf("%s: example %q: %v", documented.CommandPath(), line, err)
			} else if err := c.ValidateArgs(c.Flags().Args()); err != nil {
				t.Errorf("%s: example %q: %v", documented.CommandPath(), line, err)
			}
		}
	}
}

func newRoot() *cobra.Command {
	return root.New(command.NewEnv("bellwether", genericiooptions.IOStreams{Out: &bytes.Buffer{},
		ErrOut: &bytes.Buffer{}}))
}

// commands lists all commands but the root.
func commands(t *testing.T) []*cobra.Command {
	t.Helper()
	var all []*cobra.Command
	for next := newRoot().Commands(); len(next) > 0; next = next[1:] {
		all = append(all, next[0])
		next = append(next, next[0].Commands()...)
	}
	return all
}
