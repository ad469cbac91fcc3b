// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command holds what the commands of bellwether have in common: the
// environment they run in, the flags that reach the hub, arguments, output
// formats, completion, and how an error is shown.
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
	"github.com/bellwether-dev/bellwether/version"
)

// Deliver prints a text, or writes it to a file.
func (a *Env) Deliver(text, file string) error {
	if file == "" {
		a.Say("%s", text)
		return nil
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // a picture is for everybody
		return fmt.Errorf("write the output: %w", err)
	}
	a.Warn("Wrote %s.\n", file)
	return nil
}

// Step tells of a step that is done.
func (a *Env) Step(format string, args ...any) {
	a.Say("%s %s\n", a.Style().Paint(term.Good, "✓"), fmt.Sprintf(format, args...))
}

// Env is what all commands share.
type Env struct {
	Streams genericiooptions.IOStreams
	Flags   *genericclioptions.ConfigFlags
	// Self is how the user calls this program: bellwether or kubectl bellwether.
	Self string
	// Now is the time, in UTC.
	Now func() time.Time
	// Connect returns a client of the hub.
	Connect func() (client.WithWatch, error)
	// ConnectCluster returns a client of the cluster that the flags select.
	ConnectCluster func(*hub.ClusterFlags) (client.Client, error)
	// Watch keeps an operator's rollouts in memory and tells of each change.
	Watch func(ctx context.Context, operator client.ObjectKey) (client.Reader, <-chan struct{}, error)
	// CanAsk tells whether there is a terminal on which somebody can answer a question.
	CanAsk func() bool
	// Getenv is os.Getenv.
	Getenv func(string) string
	// connected is called with the hub's client by a command that reads; nil for others.
	connected func(*hub.Client)
	// CleansUp is set by a command that removes what it made when it is interrupted. It is not
	// ended before it has done so, unless it is interrupted again. It stays set, so that Interrupted knows.
	CleansUp atomic.Bool
	// progress is the line that is shown now.
	progress atomic.Pointer[Progress]

	// clients has the *prometheus.Client of each endpoint that a command has asked.
	clients sync.Map
}

// NewEnv returns what all commands share.
func NewEnv(program string, streams genericiooptions.IOStreams) *Env {
	streams.Out, streams.ErrOut = newStream(streams.Out), newStream(streams.ErrOut)
	a := &Env{Streams: streams, Flags: configFlags(), Self: "bellwether", Now: nowUTC,
		Getenv: os.Getenv}
	if base := strings.TrimSuffix(filepath.Base(program), ".exe"); base == "kubectl-bellwether" {
		a.Self = "kubectl bellwether"
	}
	a.Connect, a.Watch, a.CanAsk = a.dial, a.watchRollouts, a.stdinIsTerminal
	a.ConnectCluster = (*hub.ClusterFlags).Connect
	return a
}

// nowUTC is the time in the one zone that all commands print.
func nowUTC() time.Time { return time.Now().UTC() }

// configFlags are kubectl's flags, less those that no command here needs.
func configFlags() *genericclioptions.ConfigFlags {
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

// OnHub adds the flags that select the hub to a command and to all below it.
func (a *Env) OnHub(c *cobra.Command) *cobra.Command { return a.on(c, "hub") }

// OnCluster adds the same flags to a command that uses a cluster which need not be the hub. The namespace is not shown,
// as such a command chooses its own.
func (a *Env) OnCluster(c *cobra.Command) *cobra.Command {
	a.on(c, "cluster").PersistentFlags().Lookup("namespace").Hidden = true
	return c
}

func (a *Env) on(c *cobra.Command, what string) *cobra.Command {
	flags := c.PersistentFlags()
	a.Flags.AddFlags(flags)
	for name, usage := range flagUsage {
		flags.Lookup(name).Usage = strings.ReplaceAll(usage, "the hub", "the "+what)
	}
	a.registerCompletions(c)
	return c
}

// flagUsage says what kubectl's flags mean here, in fewer words.
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

// Say writes to the user. If that fails, Exit reports it.
func (a *Env) Say(format string, args ...any) { _, _ = fmt.Fprintf(a.Streams.Out, format, args...) }

// Warn writes to the user what is no part of the output.
func (a *Env) Warn(format string, args ...any) { _, _ = fmt.Fprintf(a.Streams.ErrOut, format, args...) }

// Style decides on colour and width by what the output is. A terminal may be narrower than the default width; what is
// not a terminal gets that width wherever it runs.
func (a *Env) Style() term.Style {
	width, terminal := TerminalWidth(a.Streams.Out)
	if width <= 0 || width > term.DefaultWidth {
		width = term.DefaultWidth
	}
	return term.Style{Colour: terminal && a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb", Width: width,
		Program: a.Self}
}

// TerminalWidth returns the width of the terminal; false where the output is not
// a terminal.
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

// Parent makes a command that only holds others.
func Parent(use, short string, aliases []string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Aliases: aliases}
	OnlyHolds(c)
	c.AddCommand(children...)
	return c
}

// OnlyHolds makes a command show its help, and refuse what is none of its
// children. Cobra alone would show the help for anything and call it a success.
func OnlyHolds(c *cobra.Command) {
	c.DisableFlagsInUseLine = true
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		advice := "see `" + c.CommandPath() + " --help`"
		if near := nearestCommand(c, args[0]); near != "" {
			advice = "did you mean `" + c.CommandPath() + " " + near + "`?"
		}
		return exit.Hintf(advice, "there is no command `%s %s`", c.CommandPath(), args[0])
	}
}

// nearestCommand is the child of a command whose name was probably meant: the shortest one that begins so, or else the
// one with the fewest edits; empty if none is near.
func nearestCommand(c *cobra.Command, typed string) string {
	c.SuggestionsMinimumDistance = 2
	typed = strings.ToLower(typed)
	similar := c.SuggestionsFor(typed) // by their names, not the nearest first
	if len(similar) == 0 {
		return ""
	}
	return slices.MinFunc(similar, func(a, b string) int {
		begins := func(name string) int {
			if strings.HasPrefix(name, typed) {
				return 0
			}
			return 1
		}
		return cmp.Or(begins(a)-begins(b), levenshtein.ComputeDistance(typed, a)-levenshtein.ComputeDistance(typed, b),
			strings.Compare(a, b))
	})
}
