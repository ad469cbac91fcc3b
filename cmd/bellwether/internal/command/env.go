// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command has the parts that the commands of bellwether share: the environment in which they run, the flags
// that select the hub, arguments, output formats, completion, and the output of errors.
package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	xterm "golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/internal/version"
)

// WriteOutput prints a text. If file is not empty, it writes the text to this file instead.
func (a *Env) WriteOutput(text, file string) error {
	if file == "" {
		a.Say("%s", text)
		return nil
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // all users may read the output
		return fmt.Errorf("write the output: %w", err)
	}
	a.Warn("Wrote %s.\n", file)
	return nil
}

// Step prints that a step is complete.
func (a *Env) Step(format string, args ...any) {
	a.Say("%s %s\n", a.Style().Paint(term.Good, "✓"), fmt.Sprintf(format, args...))
}

// Env is the environment that all commands share.
type Env struct {
	Streams genericiooptions.IOStreams
	Flags   *genericclioptions.ConfigFlags
	// Self is the command with which the user calls this program: bellwether or kubectl bellwether.
	Self string
	// Now returns the current time, in UTC.
	Now func() time.Time
	// Connect returns a client for the hub.
	Connect func() (client.WithWatch, error)
	// ConnectCluster returns a client for the cluster that the flags select.
	ConnectCluster func(*hub.ClusterFlags) (client.Client, error)
	// Watch keeps the rollouts of an operator in memory, and sends a value for each change.
	Watch func(ctx context.Context, operator client.ObjectKey) (client.Reader, <-chan struct{}, error)
	// CanAsk reports whether there is a terminal on which the user can answer a question.
	CanAsk func() bool
	// Getenv is os.Getenv.
	Getenv func(string) string
	// connected is called with the client of the hub when a command that reads connects; nil for other commands.
	connected func(*hub.Client)
	// CleansUp is set by a command that removes its objects when it is interrupted. The program does not end before
	// the removal is complete, unless it is interrupted again. CleansUp remains set, because ReportInterrupt reads it.
	CleansUp atomic.Bool
	// progress is the progress line that is shown now.
	progress atomic.Pointer[Progress]

	// clients has the *prometheus.Client for each endpoint that the command has queried.
	clients sync.Map
}

// NewEnv returns the environment of the commands. program is the path of the executable.
func NewEnv(program string, streams genericiooptions.IOStreams) *Env {
	streams.Out, streams.ErrOut = newStream(streams.Out), newStream(streams.ErrOut)
	a := &Env{Streams: streams, Flags: newConfigFlags(), Self: "bellwether", Now: readUTCTime,
		Getenv: os.Getenv}
	if base := strings.TrimSuffix(filepath.Base(program), ".exe"); base == "kubectl-bellwether" {
		a.Self = "kubectl bellwether"
	}
	a.Connect, a.Watch, a.CanAsk = a.dial, a.watchRollouts, a.isStdinTerminal
	a.ConnectCluster = (*hub.ClusterFlags).Connect
	return a
}

// readUTCTime returns the current time in UTC, the time zone of all output.
func readUTCTime() time.Time { return time.Now().UTC() }

// newConfigFlags returns the flags of kubectl, without the flags that no command here needs.
func newConfigFlags() *genericclioptions.ConfigFlags {
	f := genericclioptions.NewConfigFlags(true)
	f.CacheDir, f.ClusterName, f.AuthInfoName, f.CertFile, f.KeyFile = nil, nil, nil, nil, nil
	f.Username, f.Password, f.ImpersonateUID, f.ImpersonateUserExtra = nil, nil, nil, nil
	f.DisableCompression, f.ProxyURL, f.TLSServerName, f.CAFile, f.Insecure = nil, nil, nil, nil, nil
	return f.WithWrapConfigFn(func(c *rest.Config) *rest.Config {
		c.QPS, c.Burst = 50, 100
		c.UserAgent = version.UserAgent("bellwether")
		return c
	})
}

// AddHubFlags adds the flags that select the hub to a command and its subcommands.
func (a *Env) AddHubFlags(c *cobra.Command) *cobra.Command { return a.addConnectionFlags(c, "hub") }

// AddClusterFlags adds the flags that select a cluster to a command and its subcommands, if this cluster need not be
// the hub. The flag --namespace is hidden, because such a command chooses its namespace.
func (a *Env) AddClusterFlags(c *cobra.Command) *cobra.Command {
	a.addConnectionFlags(c, "cluster").PersistentFlags().Lookup("namespace").Hidden = true
	return c
}

// addConnectionFlags adds the connection flags of kubectl to a command. clusterName replaces "hub" in their help.
func (a *Env) addConnectionFlags(c *cobra.Command, clusterName string) *cobra.Command {
	flags := c.PersistentFlags()
	a.Flags.AddFlags(flags)
	for name, usage := range flagUsage {
		flags.Lookup(name).Usage = strings.ReplaceAll(usage, "the hub", "the "+clusterName)
	}
	a.registerCompletions(c)
	return c
}

// flagUsage is a shorter help for the flags of kubectl.
var flagUsage = map[string]string{
	"kubeconfig":      "The kubeconfig `FILE` for the hub. Default: $KUBECONFIG, or ~/.kube/config.",
	"context":         "The kubeconfig context to use. Default: the current context.",
	"namespace":       "The namespace on the hub. Default: the namespace of the context.",
	"server":          "The URL of the hub's API server. Default: the URL in the kubeconfig.",
	"token":           "The bearer token for the hub.",
	"as":              "The user to impersonate.",
	"as-group":        "The `GROUP` to impersonate. Can be repeated.",
	"request-timeout": "The timeout of one request to the hub, for example 30s. 0 means no timeout.",
}

// Say writes output to stdout. Exit reports it if a write fails.
func (a *Env) Say(format string, args ...any) { _, _ = fmt.Fprintf(a.Streams.Out, format, args...) }

// Warn writes a message that is not part of the output to stderr.
func (a *Env) Warn(format string, args ...any) { _, _ = fmt.Fprintf(a.Streams.ErrOut, format, args...) }

// Style returns the colours and the width for stdout. A terminal may be narrower than the default width, and is never
// treated as wider. Output that is not a terminal always has the default width.
func (a *Env) Style() term.Style {
	width, terminal := TerminalWidth(a.Streams.Out)
	if width <= 0 || width > term.DefaultWidth {
		width = term.DefaultWidth
	}
	return term.Style{Colour: terminal && a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb", Width: width,
		Program: a.Self}
}

// TerminalWidth returns the width of the terminal; false if the output is not a terminal.
func TerminalWidth(out io.Writer) (int, bool) {
	f, ok := File(out)
	if !ok {
		return 0, false
	}
	width, _, err := xterm.GetSize(int(f.Fd()))
	if err != nil {
		return 0, false
	}
	return width, true
}

// NewParent returns a command that only has subcommands.
func NewParent(use, short string, aliases []string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Aliases: aliases}
	RequireSubcommand(c)
	c.AddCommand(children...)
	return c
}

// RequireSubcommand makes a command show its help, and return an error for an unknown subcommand. Cobra alone would
// show the help for any argument, and exit with status 0.
func RequireSubcommand(c *cobra.Command) {
	c.DisableFlagsInUseLine = true
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		advice := "see `" + c.CommandPath() + " --help`"
		if near := findNearestCommand(c, args[0]); near != "" {
			advice = "did you mean `" + c.CommandPath() + " " + near + "`?"
		}
		return exit.Hintf(advice, "there is no command `%s %s`", c.CommandPath(), args[0])
	}
}

// findNearestCommand returns the name of the subcommand that the user probably meant; empty if none is similar. A
// name that begins with the typed text comes first, then the name with the fewest edits.
func findNearestCommand(c *cobra.Command, typed string) string {
	c.SuggestionsMinimumDistance = 2 // in spite of its name, the maximum number of edits
	typed = strings.ToLower(typed)
	similar := c.SuggestionsFor(typed) // in the order of their names
	if len(similar) == 0 {
		return ""
	}
	return slices.MinFunc(similar, func(a, b string) int {
		rankPrefix := func(name string) int {
			if strings.HasPrefix(name, typed) {
				return 0
			}
			return 1
		}
		return cmp.Or(rankPrefix(a)-rankPrefix(b),
			levenshtein.ComputeDistance(typed, a)-levenshtein.ComputeDistance(typed, b),
			strings.Compare(a, b))
	})
}
