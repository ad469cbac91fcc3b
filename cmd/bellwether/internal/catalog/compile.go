// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/compile"
	"github.com/bellwether-dev/bellwether/catalogs/compile/folder"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

const catalogCompileLong = `Compile the ladder files in a folder into a file-based catalog.

The upgrade edges are computed. Each channel has one head, every published version
has an upgrade path to it, no upgrade goes to a lower version, and OLM v0 and OLM v1
choose the same next version. OLM v0's own resolver is used for this check.

A version of the previous catalog must not be missing, unless it is blocked or
retired. The previous catalog is the content of OUT, or the catalog of --previous.

If a ladder does not compile, nothing is written. The same ladders and bundles
always give the same files. With --check nothing is written.

Exit codes:
  0  the catalog in OUT is current
  1  the catalog in OUT is not current (only with --check)
  2  the ladders do not compile`

type compileFlags struct {
	access     registry.Flags
	out        command.Output
	check      bool
	previous   string
	repository string
	hub        bool
	parallel   int
}

func (a *app) newCompileCommand() *cobra.Command {
	var f compileFlags
	c := &cobra.Command{
		Use: "compile DIR OUT", Short: "Compile ladder files into a file-based catalog", Long: catalogCompileLong,
		Args: command.ExactArgs("the folder of the ladder files", "the folder for the catalog"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) < 2 {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		Example: "  bellwether catalog compile ./ladders ./catalog\n" +
			"  bellwether catalog compile ./ladders ./catalog --check\n" +
			"  bellwether catalog compile ./ladders ./catalog --previous registry.example.com/catalogs/main:latest " +
			"--hub",
		RunE: func(c *cobra.Command, args []string) error {
			defer reduceGC()()
			report, err := a.compileFolder(c.Context(), &f, args[0], args[1])
			if err != nil {
				return addLadderHint(err)
			}
			return a.printCompiled(&f, report, args[1])
		},
	}
	f.access.Add(c)
	f.out.Add(c, command.OutputJSON, command.OutputYAML)
	c.Flags().BoolVar(&f.check, "check", false,
		"Write nothing, and exit with code 1 if the catalog in OUT is not current.")
	c.Flags().StringVar(&f.previous, "previous", "",
		"The previous `CATALOG`, a folder or a reference. Default: the content of OUT.")
	c.Flags().StringVar(&f.repository, "bundle-repository", "",
		"Refer to bundle folders as images in this `REPOSITORY`, instead of inlining them.")
	c.Flags().BoolVar(&f.hub, "hub", false,
		"Read from the hub which versions the clusters run, and check their upgrade paths too.")
	c.Flags().IntVar(&f.parallel, "parallel", 0,
		"The number of packages to compile at the same time. Default: the number of processors.")
	return a.SetErrorCode(ExitTrouble, c)
}

// heapLimitPerProcessor is the memory limit for each processor in reduceGC.
// Each processor compiles one package at a time.
const heapLimitPerProcessor = 48 << 20

// reduceGC makes the garbage collector run less often, and returns a function that restores the settings. Compiling
// allocates much and keeps little, so a heap of four times the size is still small and saves a fifth of the time. The
// memory limit protects against large bundles. It is not set if the user has set GOMEMLIMIT.
func reduceGC() (restore func()) {
	percent, limit := debug.SetGCPercent(400), debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		debug.SetMemoryLimit(int64(runtime.GOMAXPROCS(0)) * heapLimitPerProcessor)
	}
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}

// compileFolder compiles the ladders in dir into out, or only checks out with --check.
func (a *app) compileFolder(ctx context.Context, f *compileFlags, dir, out string) (folder.Report, error) {
	if err := f.out.Check(); err != nil {
		return folder.Report{}, err
	}
	o := folder.Options{
		Bundles: folder.Bundles{Images: oci.NewClient(oci.Options{}), Access: f.access.Access(),
			CacheDir: a.findBundleCache(), Repository: f.repository},
		Now:      a.Now(),
		Parallel: f.parallel,
		Check:    f.check,
	}
	progress := a.Progress("compiling")
	defer progress.Stop()
	o.Progress = func(done, total int) { progress.Count(done, total, "versions") }
	if f.previous != "" {
		files, err := f.access.Open(ctx, f.previous)
		if err != nil {
			return folder.Report{}, err
		}
		if o.Published, err = catalogs.ReadGraphs(files); err != nil {
			return folder.Report{}, fmt.Errorf("read %s: %w", f.previous, registry.AddHint(err))
		}
	}
	if f.hub {
		installed, err := a.listInstalled(ctx)
		if err != nil {
			return folder.Report{}, err
		}
		o.Installed = catalogs.GroupInstalled(installed)
	}
	return folder.Compile(ctx, dir, out, o)
}

// findBundleCache returns the folder in which bundle images are cached by digest; empty if there is no cache folder.
func (a *app) findBundleCache() string {
	if dir := a.Getenv("BELLWETHER_CACHE"); dir != "" {
		return filepath.Join(dir, "bundles")
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "bellwether", "bundles")
}

// printCompiled prints the report. With --check it returns an error with ExitDifferent if the catalog is not current.
func (a *app) printCompiled(f *compileFlags, r folder.Report, out string) error {
	if !f.out.Table() {
		if err := f.out.Value(a.Streams.Out, r); err != nil {
			return err
		}
	} else {
		a.Say("%s", formatCompiled(r, a.Style()))
		a.Warn("%s\n", summarizeCompiled(r, out, f.check))
	}
	if f.check && r.Changed() {
		return &exit.CodeError{Code: ExitDifferent}
	}
	return nil
}

// formatCompiled returns a table of the channels of the changed packages, and notes about all packages.
func formatCompiled(r folder.Report, s term.Style) string {
	t := &term.Table{Header: []string{"PACKAGE", "CHANNEL", "BEFORE", "AFTER"}, Wrap: true}
	var notes []string
	for _, p := range r.Packages {
		for _, c := range p.Channels {
			if p.Changed {
				t.Add(term.Cell{Text: p.Name}, term.Cell{Text: c.Name}, term.Cell{Text: term.DashIfEmpty(c.Before)},
					formatHead(c))
			}
		}
		for _, n := range append(describeWaiting(p.Waiting), p.Notes...) {
			notes = append(notes, p.Name+": "+n)
		}
	}
	var text strings.Builder
	if len(t.Rows) > 0 {
		text.WriteString(t.Render(s))
	}
	for _, n := range notes {
		fmt.Fprintf(&text, "%s %s\n", s.Paint(term.Warn, "note:"), n)
	}
	return text.String()
}

// formatHead returns the head of a channel after the change. An unchanged head is dimmed.
func formatHead(c folder.Channel) term.Cell {
	switch {
	case c.After == "":
		return term.Cell{Text: "-", Tone: term.Bad}
	case c.Before == c.After:
		return term.Cell{Text: c.After, Tone: term.Dim}
	default:
		return term.Cell{Text: c.After, Tone: term.Good}
	}
}

// describeWaiting returns a line for each version without an upgrade path.
func describeWaiting(waiting []compile.Waiting) []string {
	channels := map[string][]string{}
	var order []compile.Waiting
	for _, w := range waiting {
		if len(channels[w.Version]) == 0 {
			order = append(order, w)
		}
		channels[w.Version] = append(channels[w.Version], w.Channel)
	}
	var out []string
	for _, w := range order {
		reason := "retired"
		if w.Blocked != "" {
			reason = "blocked: " + w.Blocked
		}
		out = append(out, fmt.Sprintf("no upgrade path from %s in channel %s (%s): clusters that run it need a newer "+
			"version or a rollback",
			w.Version, strings.Join(channels[w.Version], ", "), reason))
	}
	return out
}

// summarizeCompiled returns one sentence about the result.
func summarizeCompiled(r folder.Report, out string, check bool) string {
	changed, versions := 0, 0
	for _, p := range r.Packages {
		if p.Changed {
			changed++
		}
		versions += p.Bundles
	}
	totals := fmt.Sprintf("%s, %s", phrase.Count(len(r.Packages), "package"), phrase.Count(versions, "version"))
	switch {
	case changed == 0:
		return fmt.Sprintf("%s is current: %s.", out, totals)
	case check:
		return fmt.Sprintf("%s is not current: %s of %d would change.", out, phrase.Count(changed, "package"),
			len(r.Packages))
	default:
		return fmt.Sprintf("Compiled %s into %s; %d changed.", totals, out, changed)
	}
}

// addLadderHint adds to an error of a ladder or of its compilation a hint how to correct it.
func addLadderHint(err error) error {
	var hinted *exit.HintError
	switch {
	case errors.As(err, &hinted):
		return err
	case errors.Is(err, folder.ErrNoLadders):
		return exit.Hint(err, "to create one, run `bellwether catalog init`")
	case errors.Is(err, folder.ErrOtherPackage):
		return exit.Hint(err, "use the ladder file of the bundle's package")
	case errors.Is(err, fs.ErrNotExist):
		return exit.Hint(err, "check the path")
	case errors.Is(err, compile.ErrExpired):
		return exit.Hint(err,
			"review the block: end it with `bellwether catalog unblock`, or set a later --expires with "+
				"`bellwether catalog block`")
	case errors.Is(err, compile.ErrContinuity):
		return exit.Hint(err, "add the version again, retire it (`bellwether catalog retire`) or block it "+
			"(`bellwether catalog block`)")
	case errors.Is(err, compile.ErrDisagreement):
		return exit.Hint(err, "this is a defect of bellwether: report it with the ladder file")
	case errors.Is(err, ladder.ErrInvalid):
		return exit.Hint(err, "the format of the file is described in docs/reference/ladder.md")
	default:
		return registry.AddHint(err)
	}
}
