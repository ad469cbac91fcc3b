// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/compile"
	"github.com/bellwether-dev/bellwether/catalogs/compile/folder"
	"github.com/bellwether-dev/bellwether/catalogs/diff"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/bundle"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

// ladderFlags are those of every command that edits a ladder file.
type ladderFlags struct {
	dryRun bool
	out    command.Output
}

func (f *ladderFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "Show what would change, and write nothing.")
	f.out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML)
}

const theLadder = "the ladder file, or a folder with just one"

// ladderEdit is a command that edits a ladder file.
type ladderEdit struct {
	use, short, long, example string
	// versions tells which versions the second argument may be; nil where there is no second argument.
	versions func(l *ladder.Ladder) []string
	flags    func(c *cobra.Command)
	// edit changes the ladder, and says in one sentence what it did. version is empty where there is no second
	// argument.
	edit func(l *ladder.Ladder, version string) (string, error)
}

func (a *app) ladderEditCommand(e ladderEdit) *cobra.Command {
	var f ladderFlags
	wanted := []string{theLadder}
	if e.versions != nil {
		wanted = append(wanted, "the version")
	}
	c := &cobra.Command{
		Use: e.use, Short: e.short, Long: e.long, Example: e.example, Args: command.ExactArgs(wanted...),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
			}
			file, err := findLadder(args[0])
			if err != nil || len(args) > 1 || e.versions == nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return e.versions(file.Ladder), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := f.out.Check(); err != nil {
				return err
			}
			file, err := findLadder(args[0])
			if err != nil {
				return ladderError(err)
			}
			version := ""
			if len(args) == 2 {
				version = args[1]
			}
			return a.editLadder(&f, file, func(l *ladder.Ladder) (string, error) { return e.edit(l, version) })
		},
	}
	f.add(c)
	if e.flags != nil {
		e.flags(c)
	}
	return c
}

// findLadder reads a ladder file, or the only one in a folder.
func findLadder(path string) (*ladder.File, error) {
	if !bundle.IsDirectory(path) {
		file, err := folder.Load(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil, exit.Hint(err, "give a ladder file; `bellwether catalog init` writes one")
		}
		return file, err
	}
	files, err := folder.LoadAll(path)
	if err != nil {
		return nil, err
	}
	if len(files) > 1 {
		return nil, exit.Hintf(fmt.Sprintf("give the file, as in %s", files[0].Name), "%s has %d ladder files", path,
			len(files))
	}
	return files[0], nil
}

// LadderChange is what an edit does, as -o json shows it.
type LadderChange struct {
	File    string            `json:"file"`
	Done    string            `json:"done"`
	DryRun  bool              `json:"dryRun,omitempty"`
	Changes diff.Package      `json:"changes"`
	Waiting []compile.Waiting `json:"waiting,omitempty"`
	// Problem is why the ladder does not compile as it is now.
	Problem string `json:"problem,omitempty"`
}

// editLadder edits a file, shows what that means for the clusters, and writes it.
func (a *app) editLadder(f *ladderFlags, file *ladder.File, edit func(l *ladder.Ladder) (string, error)) error {
	before, _ := compile.Graph(file.Ladder) // A ladder that did not compile is one to be mended.
	done, err := edit(file.Ladder)
	if err != nil {
		return ladderError(err)
	}
	change := LadderChange{File: file.Name, Done: done, DryRun: f.dryRun}
	after, err := compile.Graph(file.Ladder)
	if err != nil {
		change.Problem = err.Error()
	} else if change.Changes, _, err = diff.Packages(before, after); err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	for _, b := range file.Ladder.Expired(a.Now()) {
		change.Problem = fmt.Sprintf("the block of version %s expired on %s", b.Version, b.Expires)
	}
	if change.Waiting, err = compile.WaitingVersions(file.Ladder); err != nil {
		return ladderError(err)
	}
	if !f.dryRun {
		if err := folder.Save(file); err != nil {
			return ladderError(err)
		}
	}
	return a.showChange(f, change)
}

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
		a.Say("\n%s", CatalogDiff(diff.Diff{Packages: []diff.Package{change.Changes}}, s, f.out.Wide()))
	} else if change.Problem == "" {
		a.Say("No upgrade changes.\n")
	}
	for _, text := range waitingTexts(change.Waiting) {
		a.Say("%s %s\n", s.Paint(term.Warn, "note:"), text)
	}
	if change.Problem != "" {
		a.Warn("%s it does not compile like this: %s\n", s.Paint(term.Bad, "warning:"), change.Problem)
	}
	return nil
}

func (a *app) catalogPromoteCommand() *cobra.Command {
	to := ""
	return a.ladderEditCommand(ladderEdit{
		use: "promote LADDER VERSION", short: "Let a version reach the next channel",
		long: `Let a version reach the next channel of its ladder, or the one given by --to.

A channel offers every version that has reached it or a higher one. A version that
is blocked is not promoted.`,
		example: "  bellwether catalog promote ./ladders/echo-operator.yaml 1.1.0\n" +
			"  bellwether catalog promote ./ladders/echo-operator.yaml 1.1.0 --to stable --dry-run",
		versions: func(l *ladder.Ladder) []string {
			rungs := l.Rungs()
			return ladderVersions(l, func(b ladder.Bundle, blocked bool) bool {
				return !blocked &&
					b.Channel != rungs[len(rungs)-1]
			})
		},
		flags: func(c *cobra.Command) {
			c.Flags().StringVar(&to, "to", "", "The `CHANNEL` to reach. Default: the next one.")
			_ = c.RegisterFlagCompletionFunc("to", completeRungs)
		},
		edit: func(l *ladder.Ladder, version string) (string, error) {
			reached, err := l.Promote(version, to)
			return fmt.Sprintf("Promoted %s %s to %s.", l.Package, version, reached), err
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
	return file.Ladder.Rungs(), cobra.ShellCompDirectiveNoFileComp
}

// ladderVersions lists the versions that a command may be about.
func ladderVersions(l *ladder.Ladder, want func(b ladder.Bundle, blocked bool) bool) []string {
	var out []string
	for _, b := range l.Bundles {
		if _, blocked := l.Blocked(b.Version); want(b, blocked) {
			out = append(out, b.Version)
		}
	}
	return out
}

func (a *app) catalogBlockCommand() *cobra.Command {
	var b ladder.Block
	return a.ladderEditCommand(ladderEdit{
		use: "block LADDER VERSION --reason TEXT", short: "Take a version out of every upgrade",
		long: `Take a version out of every upgrade, because it is bad.

Nobody gets to it any more. Whoever runs it goes on to the next good version of its
channel; where there is none, they wait for one, or go back. OLM shows the reason to
those who run it.

--expires is the day on which somebody has to look at it again: from then on the
catalog does not compile. A block never ends by itself.`,
		example: "  bellwether catalog block ./ladders/echo-operator.yaml 1.1.0 --reason 'loses data, see echo#42'\n" +
			"  bellwether catalog block ./ladders/echo-operator.yaml 1.1.0 --reason 'leaks memory' --expires " +
			"2026-12-31 --instead 1.0.4",
		versions: func(l *ladder.Ladder) []string {
			return ladderVersions(l, func(ladder.Bundle, bool) bool { return true })
		},
		flags: func(c *cobra.Command) {
			c.Flags().StringVar(&b.Reason, "reason", "", "Why; people who run it will read it.")
			c.Flags().StringVar(&b.Expires, "expires", "", "The `DAY` on which to look at it again, as in 2026-12-31.")
			c.Flags().StringVar(&b.Instead, "instead", "",
				"The `VERSION` that clusters should go to; it may be a lower one.")
			_ = c.RegisterFlagCompletionFunc("instead",
				func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
					if len(args) == 0 {
						return nil, cobra.ShellCompDirectiveNoFileComp
					}
					file, err := findLadder(args[0])
					if err != nil {
						return nil, cobra.ShellCompDirectiveNoFileComp
					}
					good := func(_ ladder.Bundle, blocked bool) bool { return !blocked }
					return ladderVersions(file.Ladder, good), cobra.ShellCompDirectiveNoFileComp
				})
		},
		edit: func(l *ladder.Ladder, version string) (string, error) {
			if b.Reason == "" {
				return "", exit.Hintf("give it with --reason",
					"a block needs a reason: whoever runs %s will want to know",
					version)
			}
			b.Version = version
			err := l.Block(b, a.Now())
			return fmt.Sprintf("Blocked %s %s: %s", l.Package, version, b.Reason), err
		},
	})
}

func (a *app) catalogUnblockCommand() *cobra.Command {
	return a.ladderEditCommand(ladderEdit{
		use: "unblock LADDER VERSION", short: "End the block of a version",
		long:    "End the block of a version: it is offered again by all channels that it had reached.",
		example: "  bellwether catalog unblock ./ladders/echo-operator.yaml 1.1.0",
		versions: func(l *ladder.Ladder) []string {
			return ladderVersions(l, func(_ ladder.Bundle, blocked bool) bool { return blocked })
		},
		edit: func(l *ladder.Ladder, version string) (string, error) {
			return fmt.Sprintf("Unblocked %s %s.", l.Package, version), l.Unblock(version)
		},
	})
}

func (a *app) catalogRetireCommand() *cobra.Command {
	reason := ""
	return a.ladderEditCommand(ladderEdit{
		use: "retire LADDER VERSION", short: "Stop offering a version that is old, not bad",
		long: `Stop offering a version. Clusters that run it are still brought on, so a good
higher version must be in each of its channels. A version that is bad is blocked
instead. A retired version never comes back.`,
		example: "  bellwether catalog retire ./ladders/echo-operator.yaml 0.9.0 --reason 'out of support'",
		versions: func(l *ladder.Ladder) []string {
			return ladderVersions(l, func(ladder.Bundle, bool) bool { return true })
		},
		flags: func(c *cobra.Command) {
			c.Flags().StringVar(&reason, "reason", "", "Why, for those who read the file.")
		},
		edit: func(l *ladder.Ladder, version string) (string, error) {
			return fmt.Sprintf("Retired %s %s.", l.Package, version), l.Retire(version, reason)
		},
	})
}

func (a *app) catalogDeprecateCommand() *cobra.Command {
	var d ladder.Deprecation
	pkg := false
	return a.ladderEditCommand(ladderEdit{
		use: "deprecate LADDER --message TEXT", short: "Warn those who use a version, a channel or a package",
		long: `Warn those who use a version, a channel, or the whole package. OLM shows the
message. Upgrades lead around a deprecated version as soon as a better one is there.`,
		example: "  bellwether catalog deprecate ./ladders/echo-operator.yaml --version 1.0.0 --message 'out of " +
			"support in May'\n" +
			"  bellwether catalog deprecate ./ladders/echo-operator.yaml --channel fast --message 'use stable'",
		flags: func(c *cobra.Command) {
			c.Flags().StringVar(&d.Version, "version", "", "The `VERSION` to deprecate.")
			c.Flags().StringVar(&d.Channel, "channel", "", "The `CHANNEL` to deprecate.")
			c.Flags().BoolVar(&pkg, "package", false, "Deprecate the whole package.")
			c.Flags().StringVar(&d.Message, "message", "", "What to tell them: what to use, and until when.")
			_ = c.RegisterFlagCompletionFunc("channel", completeRungs)
			c.MarkFlagsOneRequired("version", "channel", "package")
			c.MarkFlagsMutuallyExclusive("version", "channel", "package")
		},
		edit: func(l *ladder.Ladder, _ string) (string, error) {
			if d.Message == "" {
				return "", exit.Hintf("give it with --message",
					"a deprecation needs a message: what should they use instead?")
			}
			if pkg {
				d.Package = l.Package
			}
			return fmt.Sprintf("Deprecated %s of %s: %s", d.Subject(), l.Package, d.Message), l.Deprecate(d)
		},
	})
}

const catalogInitLong = `Write the ladder file of a package: with comments to begin with, or with --from
from what a catalog offers today.

The channels of a ladder offer all that the next higher one does. A catalog that
is not like that is imported as far as it can be; what changes is said.`

func (a *app) catalogInitCommand() *cobra.Command {
	var name, from string
	var channels []string
	var access registry.Flags
	c := &cobra.Command{
		Use: "init DIR --package NAME", Short: "Write the ladder file of a package", Long: catalogInitLong,
		Args: command.OneArg("the folder for the ladder file"), ValidArgsFunction: command.CompleteDir,
		Example: "  bellwether catalog init ./ladders --package echo-operator\n" +
			"  bellwether catalog init ./ladders --package echo-operator --from " +
			"registry.example.com/catalogs/main:latest",
		RunE: func(c *cobra.Command, args []string) error {
			if name == "" {
				return exit.Hintf("give it with --package", "the ladder needs the name of a package")
			}
			file, err := newLadder(args[0], name, channels)
			if err == nil && from != "" {
				err = a.importLadder(c.Context(), &access, file, from)
			}
			if err != nil {
				return ladderError(err)
			}
			return a.initLadder(args[0], file)
		},
	}
	c.Flags().StringVar(&name, "package", "", "The `NAME` of the operator's package.")
	c.Flags().StringSliceVar(&channels, "channels", ladder.DefaultChannels(), "The channels, lowest first.")
	c.Flags().StringVar(&from, "from", "", "Take over what this `CATALOG`, a folder or reference, offers.")
	access.Add(c)
	return c
}

// ladderTemplate is what people find when they open a new ladder file.
const ladderTemplate = `# The versions of PACKAGE, and how far each has come. Compile it with
# "bellwether catalog compile"; all fields are in docs/reference/ladder.md.
apiVersion: bellwether.dev/v1alpha1
kind: CatalogLadder
package: PACKAGE

# The ladder, lowest first: a new version enters at the first channel, and
# "bellwether catalog promote" takes it to the next one.
channels: [CHANNELS]

# "bellwether catalog add" fills this in: images by digest, or bundle folders
# beside this file.
bundles: []

# Versions that nobody may be brought to: "bellwether catalog block".
blocks: []
`

func newLadder(dir, name string, channels []string) (*ladder.File, error) {
	text := strings.NewReplacer("PACKAGE", name, "CHANNELS", strings.Join(channels, ", ")).Replace(ladderTemplate)
	return ladder.Parse(folder.Path(dir, name), []byte(text))
}

func (a *app) initLadder(dir string, file *ladder.File) error {
	if _, err := os.Stat(file.Name); err == nil {
		return exit.Hintf("edit it, or remove it first", "%s is there already", file.Name)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // ladders are there to be read
		return fmt.Errorf("make folder: %w", err)
	}
	if err := folder.Save(file); err != nil {
		return ladderError(err)
	}
	a.Say("Wrote %s.\n", file.Name)
	if len(file.Ladder.Bundles) == 0 {
		a.Say("Add a version with `%s catalog add %s BUNDLE`.\n", a.Self, file.Name)
	}
	return nil
}

// importLadder fills a ladder from a catalog, and says what is not as it was there.
func (a *app) importLadder(ctx context.Context, access *registry.Flags, file *ladder.File, from string) error {
	files, err := access.Open(ctx, from)
	if err != nil {
		return err
	}
	p, err := catalogs.ReadPackageWith(files, file.Ladder.Package)
	if err != nil {
		return fmt.Errorf("read %s: %w", from, registry.WithHint(err))
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

// ladderDir is the folder that paths in a ladder file start from.
func ladderDir(file *ladder.File) string { return cmp.Or(filepath.Dir(file.Name), ".") }
