// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/compile"
	"github.com/bellwether-dev/bellwether/catalogs/compile/folder"
	"github.com/bellwether-dev/bellwether/catalogs/diff"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// ladderFlags are the flags of all commands that edit a ladder file.
type ladderFlags struct {
	dryRun bool
	out    command.Output
}

func (f *ladderFlags) addFlags(c *cobra.Command) {
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "Show what would change and write nothing.")
	f.out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML)
}

const ladderArgument = "the ladder file, or a folder with one ladder file"

// ladderEdit describes a command that edits a ladder file.
type ladderEdit struct {
	use, short, long, example string
	// listVersions returns the versions that complete the second argument; nil if there is no second argument.
	listVersions func(l *ladder.Ladder) []string
	addFlags     func(c *cobra.Command)
	// edit changes the ladder, and returns one sentence that describes the change.
	// version is empty if there is no second argument.
	edit func(l *ladder.Ladder, version string) (string, error)
}

// newLadderEditCommand returns the command for an edit.
func (a *app) newLadderEditCommand(e ladderEdit) *cobra.Command {
	var f ladderFlags
	arguments := []string{ladderArgument}
	if e.listVersions != nil {
		arguments = append(arguments, "the version")
	}
	c := &cobra.Command{
		Use: e.use, Short: e.short, Long: e.long, Example: e.example, Args: command.ExactArgs(arguments...),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
			}
			file, err := findLadder(args[0])
			if err != nil || len(args) > 1 || e.listVersions == nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return e.listVersions(file.Ladder), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := f.out.Check(); err != nil {
				return err
			}
			file, err := findLadder(args[0])
			if err != nil {
				return addLadderHint(err)
			}
			version := ""
			if len(args) == 2 {
				version = args[1]
			}
			return a.editLadder(&f, file, func(l *ladder.Ladder) (string, error) { return e.edit(l, version) })
		},
	}
	f.addFlags(c)
	if e.addFlags != nil {
		e.addFlags(c)
	}
	return c
}

// findLadder reads a ladder file, or the only ladder file in a folder.
func findLadder(path string) (*ladder.File, error) {
	file, err := folder.LoadOnly(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, exit.Hint(err, "use a ladder file; to create one, run `bellwether catalog init`")
	case errors.Is(err, folder.ErrSeveralLadders):
		return nil, exit.Hint(err, "use one of the files")
	}
	return file, err
}

// LadderChange is the result of an edit, as -o json shows it.
type LadderChange struct {
	File    string            `json:"file"`
	Done    string            `json:"done"`
	DryRun  bool              `json:"dryRun,omitempty"`
	Changes diff.Package      `json:"changes"`
	Waiting []compile.Waiting `json:"waiting,omitempty"`
	// Problem is why the edited ladder does not compile; empty if it does.
	Problem string `json:"problem,omitempty"`
}

// editLadder edits a ladder, writes the file unless --dry-run is set, and shows how the upgrades of clusters change.
func (a *app) editLadder(f *ladderFlags, file *ladder.File, edit func(l *ladder.Ladder) (string, error)) error {
	before, _ := compile.Graph(file.Ladder) // ignored: the edit may repair a ladder that does not compile
	description, err := edit(file.Ladder)
	if err != nil {
		return addLadderHint(err)
	}
	change := LadderChange{File: file.Name, Done: description, DryRun: f.dryRun}
	after, err := compile.Graph(file.Ladder)
	if err != nil {
		change.Problem = err.Error()
	} else if change.Changes, _, err = diff.ComparePackages(before, after); err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	for _, b := range file.Ladder.Expired(a.Now()) { // an expired block also makes the compilation fail
		change.Problem = fmt.Sprintf("the block of version %s expired on %s", b.Version, b.Expires)
	}
	if change.Waiting, err = compile.WaitingVersions(file.Ladder); err != nil {
		return addLadderHint(err)
	}
	if !f.dryRun {
		if err := folder.Save(file); err != nil {
			return addLadderHint(err)
		}
	}
	return a.showChange(f, change)
}

// showChange prints the changed upgrades, the waiting versions, and why the ladder does not compile if it does not.
func (a *app) showChange(f *ladderFlags, change LadderChange) error {
	if !f.out.Table() {
		return f.out.Value(a.Streams.Out, change)
	}
	if f.dryRun {
		a.Say("Dry run: %s would not be written.\n", change.File)
	}
	a.Say("%s\n", change.Done)
	s := a.Style()
	if len(change.Changes.Channels)+len(change.Changes.Versions) > 0 {
		a.Say("\n%s", RenderDiff(diff.Diff{Packages: []diff.Package{change.Changes}}, s, f.out.Wide()))
	} else if change.Problem == "" {
		a.Say("No upgrade changes.\n")
	}
	for _, text := range describeWaiting(change.Waiting) {
		a.Say("%s %s\n", s.Paint(term.Warn, "note:"), text)
	}
	if change.Problem != "" {
		a.Warn("%s the ladder does not compile with this change: %s\n", s.Paint(term.Bad, "warning:"), change.Problem)
	}
	return nil
}

func (a *app) newPromoteCommand() *cobra.Command {
	channel := ""
	return a.newLadderEditCommand(ladderEdit{
		use: "promote LADDER VERSION", short: "Promote a version to the next channel",
		long: `Promote a version to the next channel of its ladder, or to the channel of --to.

A channel offers every version that was promoted to it or to a higher channel. A
blocked version cannot be promoted.`,
		example: "  bellwether catalog promote ./ladders/echo-operator.yaml 1.1.0\n" +
			"  bellwether catalog promote ./ladders/echo-operator.yaml 1.1.0 --to stable --dry-run",
		listVersions: func(l *ladder.Ladder) []string {
			rungs := l.ListChannels()
			return selectVersions(l, func(b ladder.Bundle, blocked bool) bool {
				return !blocked &&
					b.Channel != rungs[len(rungs)-1]
			})
		},
		addFlags: func(c *cobra.Command) {
			c.Flags().StringVar(&channel, "to", "", "The `CHANNEL` to promote to. Default: the next channel.")
			_ = c.RegisterFlagCompletionFunc("to", completeRungs)
		},
		edit: func(l *ladder.Ladder, version string) (string, error) {
			reached, err := l.Promote(version, channel)
			return fmt.Sprintf("Promoted %s %s to channel %s.", l.Package, version, reached), err
		},
	})
}

// completeRungs completes a channel of the ladder that the first argument names.
func completeRungs(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	file, err := findLadder(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return file.Ladder.ListChannels(), cobra.ShellCompDirectiveNoFileComp
}

// selectVersions returns the versions of the ladder for which includes returns true.
func selectVersions(l *ladder.Ladder, includes func(b ladder.Bundle, blocked bool) bool) []string {
	var out []string
	for _, b := range l.Bundles {
		if _, blocked := l.Blocked(b.Version); includes(b, blocked) {
			out = append(out, b.Version)
		}
	}
	return out
}

func (a *app) newBlockCommand() *cobra.Command {
	var b ladder.Block
	return a.newLadderEditCommand(ladderEdit{
		use: "block LADDER VERSION --reason TEXT", short: "Exclude a bad version from all upgrades",
		long: `Exclude a bad version from all upgrades.

No cluster upgrades to a blocked version. A cluster that runs it upgrades to the
next version of its channel that is not blocked. If there is none, the cluster
stays on the blocked version until you publish a newer version or roll back. OLM
shows the reason on the clusters that run the version.

On the day of --expires the block must be reviewed: from this day on the catalog
does not compile. The block itself does not end.`,
		example: "  bellwether catalog block ./ladders/echo-operator.yaml 1.1.0 --reason 'loses data, see echo#42'\n" +
			"  bellwether catalog block ./ladders/echo-operator.yaml 1.1.0 --reason 'leaks memory' --expires " +
			"2026-12-31 --instead 1.0.4",
		listVersions: func(l *ladder.Ladder) []string {
			return selectVersions(l, func(ladder.Bundle, bool) bool { return true })
		},
		addFlags: func(c *cobra.Command) {
			c.Flags().StringVar(&b.Reason, "reason", "", "The reason, which users of the version see.")
			c.Flags().StringVar(&b.Expires, "expires", "",
				"The `DAY` on which the block must be reviewed, for example 2026-12-31.")
			c.Flags().StringVar(&b.Instead, "instead", "",
				"The `VERSION` to use instead. It can be lower.")
			_ = c.RegisterFlagCompletionFunc("instead",
				func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
					if len(args) == 0 {
						return nil, cobra.ShellCompDirectiveNoFileComp
					}
					file, err := findLadder(args[0])
					if err != nil {
						return nil, cobra.ShellCompDirectiveNoFileComp
					}
					isUsable := func(_ ladder.Bundle, blocked bool) bool { return !blocked }
					return selectVersions(file.Ladder, isUsable), cobra.ShellCompDirectiveNoFileComp
				})
		},
		edit: func(l *ladder.Ladder, version string) (string, error) {
			if b.Reason == "" {
				return "", exit.Hintf("set --reason",
					"no reason for the block of version %s",
					version)
			}
			b.Version = version
			err := l.Block(b, a.Now())
			return fmt.Sprintf("Blocked %s %s: %s", l.Package, version, b.Reason), err
		},
	})
}

func (a *app) newUnblockCommand() *cobra.Command {
	return a.newLadderEditCommand(ladderEdit{
		use: "unblock LADDER VERSION", short: "End the block of a version",
		long:    "End the block of a version. It is offered again in its channels.",
		example: "  bellwether catalog unblock ./ladders/echo-operator.yaml 1.1.0",
		listVersions: func(l *ladder.Ladder) []string {
			return selectVersions(l, func(_ ladder.Bundle, blocked bool) bool { return blocked })
		},
		edit: func(l *ladder.Ladder, version string) (string, error) {
			return fmt.Sprintf("Unblocked %s %s.", l.Package, version), l.Unblock(version)
		},
	})
}

func (a *app) newRetireCommand() *cobra.Command {
	reason := ""
	return a.newLadderEditCommand(ladderEdit{
		use: "retire LADDER VERSION", short: "Stop offering an old version",
		long: `Stop offering an old version. Clusters that run it can still upgrade, so each of its
channels must have a higher version that is not blocked. A retired version cannot be
added again. For a bad version, use "bellwether catalog block".`,
		example: "  bellwether catalog retire ./ladders/echo-operator.yaml 0.9.0 --reason 'out of support'",
		listVersions: func(l *ladder.Ladder) []string {
			return selectVersions(l, func(ladder.Bundle, bool) bool { return true })
		},
		addFlags: func(c *cobra.Command) {
			c.Flags().StringVar(&reason, "reason", "", "The reason, which is written to the ladder file.")
		},
		edit: func(l *ladder.Ladder, version string) (string, error) {
			return fmt.Sprintf("Retired %s %s.", l.Package, version), l.Retire(version, reason)
		},
	})
}

func (a *app) newDeprecateCommand() *cobra.Command {
	var d ladder.Deprecation
	pkg := false
	return a.newLadderEditCommand(ladderEdit{
		use: "deprecate LADDER --message TEXT", short: "Deprecate a version, a channel or a package",
		long: `Deprecate a version, a channel or the whole package. OLM shows the message on the
clusters that use it. Upgrades skip a deprecated version if there is a newer one
that is not deprecated.`,
		example: "  bellwether catalog deprecate ./ladders/echo-operator.yaml --version 1.0.0 --message 'out of " +
			"support in May'\n" +
			"  bellwether catalog deprecate ./ladders/echo-operator.yaml --channel fast --message 'use stable'",
		addFlags: func(c *cobra.Command) {
			c.Flags().StringVar(&d.Version, "version", "", "The `VERSION` to deprecate.")
			c.Flags().StringVar(&d.Channel, "channel", "", "The `CHANNEL` to deprecate.")
			c.Flags().BoolVar(&pkg, "package", false, "Deprecate the whole package.")
			c.Flags().StringVar(&d.Message, "message", "",
				"The message to the users: what to use instead, and until when.")
			_ = c.RegisterFlagCompletionFunc("channel", completeRungs)
			command.RequireOneFlag(c, "version", "channel", "package")
			command.ExcludeFlags(c, "version", "channel", "package")
		},
		edit: func(l *ladder.Ladder, _ string) (string, error) {
			if d.Message == "" {
				return "", exit.Hintf("set --message to say what to use instead",
					"no message for the deprecation")
			}
			if pkg {
				d.Package = l.Package
			}
			return fmt.Sprintf("Deprecated %s of %s: %s", d.Subject(), l.Package, d.Message), l.Deprecate(d)
		},
	})
}

const catalogInitLong = `Create the ladder file of a package. With --from, the file is created from an
existing catalog. Without it, the file has no versions and explains its format.

With --all, it creates the ladder files of all packages of the catalog of --from.
Files that exist are left as they are. A package that cannot be imported is
reported, and the others are imported.

In a ladder, each channel offers all versions of the next higher channel. If a
catalog is different, the command imports what is possible and prints what changes.`

// initFlags are the flags of catalog init.
type initFlags struct {
	name, from string
	all        bool
	channels   []string
	access     registry.Flags
}

func (a *app) newInitCommand() *cobra.Command {
	var f initFlags
	c := &cobra.Command{
		Use: "init DIR --package NAME", Short: "Create the ladder file of a package", Long: catalogInitLong,
		Args: command.OneArg("the folder for the ladder file"), ValidArgsFunction: command.CompleteDir,
		Example: "  bellwether catalog init ./ladders --package echo-operator\n" +
			"  bellwether catalog init ./ladders --package echo-operator --from " +
			"registry.example.com/catalogs/main:latest\n" +
			"  bellwether catalog init ./ladders --all --from registry.example.com/catalogs/main:latest",
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case f.all && f.name != "":
				return exit.Hintf("set one of them", "--all and --package exclude each other")
			case f.all && f.from == "":
				return exit.Hintf("set --from", "no catalog for --all to import")
			case isWithin(args[0], f.from):
				return exit.Hintf("choose a folder outside of the catalog",
					"ladder files in %q would make the catalog of --from unreadable", args[0])
			case f.all:
				return a.importAll(c.Context(), &f, args[0])
			case f.name == "":
				return exit.Hintf("set --package", "no package name for the ladder")
			}
			file, err := ladder.NewCommented(folder.Path(args[0], f.name), f.name, f.channels)
			if err == nil && f.from != "" {
				err = a.importLadder(c.Context(), &f.access, file, f.from)
			}
			if err != nil {
				return addLadderHint(err)
			}
			return a.saveNewLadder(args[0], file)
		},
	}
	c.Flags().StringVar(&f.name, "package", "", "The `NAME` of the package.")
	c.Flags().StringSliceVar(&f.channels, "channels", ladder.DefaultChannels(), "The channels, lowest first.")
	c.Flags().StringVar(&f.from, "from", "", "Import this `CATALOG`, a folder or a reference.")
	c.Flags().BoolVar(&f.all, "all", false, "Import all packages of the catalog of --from.")
	f.access.Add(c)
	return c
}

// isWithin reports whether dir, which need not exist, is the folder of a catalog or
// below it. It is false if catalog is not a folder.
func isWithin(dir, catalog string) bool {
	if info, err := os.Stat(catalog); err != nil || !info.IsDir() {
		return false
	}
	parent, err := filepath.Abs(catalog)
	if err != nil {
		return false
	}
	child, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	relative, err := filepath.Rel(parent, child)
	return err == nil && filepath.IsLocal(relative)
}

// saveNewLadder writes a ladder file that must not exist yet.
func (a *app) saveNewLadder(dir string, file *ladder.File) error {
	if _, err := os.Stat(file.Name); err == nil {
		return exit.Hintf("edit the file, or delete it first", "file %s already exists", file.Name)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // ladders are there to be read
		return fmt.Errorf("make folder: %w", err)
	}
	if err := folder.Save(file); err != nil {
		return addLadderHint(err)
	}
	a.Say("Wrote %s.\n", file.Name)
	if len(file.Ladder.Bundles) == 0 {
		a.Say("Add a version with `%s catalog add %s BUNDLE`.\n", a.Self, file.Name)
	}
	return nil
}

// importLadder fills a ladder from a catalog, and prints how the ladder differs from the catalog.
func (a *app) importLadder(ctx context.Context, access *registry.Flags, file *ladder.File, from string) error {
	progress := a.Progress("reading " + from)
	defer progress.Stop()
	files, err := access.Open(ctx, from)
	if err != nil {
		return err
	}
	p, err := catalogs.ReadPackageToImport(files, file.Ladder.Package)
	progress.Stop()
	if err != nil {
		return fmt.Errorf("read %s: %w", from, registry.AddHint(err))
	}
	notes, err := compile.Import(file.Ladder, p)
	if err != nil {
		return err
	}
	for _, n := range notes {
		a.Warn("note: %s\n", n)
	}
	return nil
}

// importAll creates the ladder files of all packages of a catalog. It continues after a package that cannot be
// imported, and then returns an error with their number.
func (a *app) importAll(ctx context.Context, f *initFlags, dir string) error {
	files, err := f.access.Open(ctx, f.from)
	if err != nil {
		return err
	}
	packages, invalid, err := catalogs.ReadGraphsToImport(files)
	if err != nil {
		return fmt.Errorf("read %s: %w", f.from, registry.AddHint(err))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // ladders are there to be read
		return fmt.Errorf("make folder: %w", err)
	}
	failed := len(invalid)
	for _, name := range slices.Sorted(maps.Keys(invalid)) {
		a.Warn("%s: not imported: %v\n", name, invalid[name])
	}
	written := 0
	for _, p := range packages {
		switch imported, err := a.importPackage(dir, p); {
		case errors.Is(err, ladder.ErrInvalid):
			failed++
			a.Warn("%s: not imported: %s\n", p.Name, strings.ReplaceAll(err.Error(), "\n", "; "))
		case err != nil:
			return err
		case imported:
			written++
		}
	}
	a.Say("Wrote %s to %s.\n", phrase.Count(written, "ladder file"), dir)
	if failed > 0 {
		return exit.Hintf("correct them in the catalog, and run this again; ladder files that exist are kept",
			"%d of %d packages were not imported", failed, len(packages)+len(invalid))
	}
	return nil
}

// importPackage creates the ladder file of a package. It returns false if the file already exists.
func (a *app) importPackage(dir string, p *catalogs.Package) (bool, error) {
	file, err := ladder.NewCommented(folder.Path(dir, p.Name), p.Name, ladder.DefaultChannels())
	if err != nil {
		return false, err
	}
	if _, err := os.Stat(file.Name); err == nil {
		a.Warn("%s: %s exists and is kept\n", p.Name, file.Name)
		return false, nil
	}
	notes, err := compile.Import(file.Ladder, p)
	if err != nil {
		return false, err
	}
	for _, n := range notes {
		a.Warn("%s: %s\n", p.Name, n)
	}
	return true, folder.Save(file)
}
