// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package boilerplate

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
	"github.com/bellwether-dev/bellwether/boilerplate/conventions"
	"github.com/bellwether-dev/bellwether/boilerplate/run"
	"github.com/bellwether-dev/bellwether/boilerplate/source"
	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/phrase"
)

// statusOutput is what status -o json prints.
type statusOutput struct {
	Conventions []conventionStatus `json:"conventions"`
	Exceptions  []exceptionStatus  `json:"exceptions"`
	// InProgress are the paths of an update in progress.
	InProgress []string `json:"inProgress,omitempty"`
	Findings   int      `json:"findings"`
}

type conventionStatus struct {
	Name    string `json:"name"`
	Source  string `json:"source"`
	Version string `json:"version"`
	Digest  string `json:"digest,omitempty"`
	// Newest is the version that the source has now; empty where it was not asked.
	Newest string `json:"newest,omitempty"`
	// Problem is why the source could not be read.
	Problem string `json:"problem,omitempty"`
}

type exceptionStatus struct {
	Path     string `json:"path"`
	Region   string `json:"region,omitempty"`
	Reason   string `json:"reason"`
	Expires  string `json:"expires"`
	DaysLeft int    `json:"daysLeft"`
}

func (a *app) statusCommand() *cobra.Command {
	p, out, remote := &place{}, &command.Output{}, false
	c := &cobra.Command{
		Use: "status", Short: "Show the conventions of a repository, and its exceptions",
		Long: `Show the conventions of a repository with the versions that were rendered and those
that their sources have, its exceptions, and whether an update is in progress. Only
with --remote are registries asked.`,
		Args:    command.NoArgs,
		Example: "  bellwether boilerplate status --remote",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			return a.explain(a.status(c.Context(), p, out, remote))
		},
	}
	p.add(c)
	p.access.Add(c)
	c.Flags().BoolVar(&remote, "remote", false, "Ask registries for what their tags hold now.")
	out.Add(c, command.OutputJSON, command.OutputYAML)
	return c
}

func (a *app) status(ctx context.Context, p *place, out *command.Output, remote bool) error {
	r, err := a.open(p)
	if err != nil {
		return err
	}
	defer func() { _ = r.Tree.Close() }()
	loader, err := a.loader(p, r)
	if err != nil {
		return err
	}
	findings, err := r.Check(a.Now())
	if err != nil {
		return err
	}
	s := statusOutput{Conventions: []conventionStatus{}, Exceptions: []exceptionStatus{}, Findings: len(findings)}
	for _, use := range r.Subscription.Conventions {
		s.Conventions = append(s.Conventions, a.conventionStatus(ctx, loader, r, use, remote))
	}
	for _, e := range r.Subscription.Exceptions {
		s.Exceptions = append(s.Exceptions,
			exceptionStatus{e.Path, e.Region, e.Reason, e.Expires, e.DaysLeft(a.Now())})
	}
	if r.Journal != nil {
		s.InProgress = r.Journal.Paths()
	}
	if !out.Table() {
		return out.Value(a.Streams.Out, s)
	}
	a.printStatus(out, s)
	return nil
}

func (a *app) conventionStatus(ctx context.Context, loader *source.Loader, r *run.Repository, use subscription.Use,
	remote bool) conventionStatus {
	s := conventionStatus{Name: use.Name, Source: use.Source}
	locked := r.Lock.Convention(use.Name)
	if locked != nil {
		s.Version, s.Digest = locked.Version, locked.Digest
	}
	if strings.HasPrefix(use.Source, subscription.OCI) && !remote {
		return s
	}
	use.Version, use.Digest = "", ""
	found, err := loader.Load(ctx, use, locked)
	if err != nil {
		s.Problem = a.Sentence(a.explain(err))
		return s
	}
	s.Newest = found.Version
	return s
}

func (a *app) printStatus(out *command.Output, s statusOutput) {
	table := &term.Table{Header: []string{"CONVENTION", "RENDERED", "SOURCE HAS", "SOURCE"}}
	for _, c := range s.Conventions {
		newest := term.Cell{Text: cmp.Or(c.Newest, "unknown")}
		if c.Newest != "" && c.Newest != c.Version {
			newest.Tone = term.Warn
		}
		table.Add(term.Cell{Text: c.Name}, term.Cell{Text: cmp.Or(c.Version, "none")}, newest,
			term.Cell{Text: c.Source})
	}
	a.Table(out, table)
	for _, c := range s.Conventions {
		if c.Problem != "" {
			a.Say("%s\n", c.Problem)
		}
	}
	if len(s.Exceptions) > 0 {
		a.Say("\n")
		table = &term.Table{Header: []string{"EXCEPTION", "DAYS LEFT", "REASON"}, Wrap: true}
		for _, e := range s.Exceptions {
			left := term.Cell{Text: fmt.Sprint(e.DaysLeft)}
			if e.DaysLeft < 0 {
				left = term.Cell{Text: "expired", Tone: term.Bad}
			}
			path := e.Path
			if e.Region != "" {
				path += " (" + e.Region + ")"
			}
			table.Add(term.Cell{Text: path}, left, term.Cell{Text: e.Reason})
		}
		a.Table(out, table)
	}
	a.Say("\n")
	if len(s.InProgress) > 0 {
		a.Say("An update of %s is in progress.\n", phrase.Count(len(s.InProgress), "file"))
	}
	if s.Findings == 0 {
		a.Say("Nothing has drifted.\n")
		return
	}
	a.Say("%s: see `%s boilerplate check`.\n", phrase.Count(s.Findings, "finding"), a.Self)
}

func (a *app) listCommand() *cobra.Command {
	p, out := &place{}, &command.Output{}
	var sources []string
	c := &cobra.Command{
		Use: "list [NAME]", Short: "List conventions, and the parameters of one", Args: command.AtMostOne,
		Long: `List the conventions of this program, and those of --source. With a NAME, show the
parameters and the files of that convention.`,
		Example: "  bellwether boilerplate list\n  bellwether boilerplate list go",
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			return a.explain(a.list(c.Context(), p, out, sources, args))
		},
	}
	p.access.Add(c)
	c.Flags().StringArrayVar(&sources, "source", nil, "A convention elsewhere, `NAME=SOURCE`. Can be repeated.")
	out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML)
	return c
}

// listed is a convention as list -o json prints it.
type listed struct {
	Name        string                 `json:"name"`
	Version     string                 `json:"version"`
	Source      string                 `json:"source"`
	Description string                 `json:"description"`
	Requires    []string               `json:"requires,omitempty"`
	Parameters  []convention.Parameter `json:"parameters"`
	Files       []convention.File      `json:"files"`
	Migrations  []convention.Migration `json:"migrations,omitempty"`
}

func (a *app) list(ctx context.Context, p *place, out *command.Output, sources, args []string) error {
	uses, err := availableUses(sources)
	if err != nil {
		return err
	}
	loader := &source.Loader{Builtin: conventions.Files, Dir: ".", Access: p.access.Access()}
	found := []listed{}
	for _, use := range uses {
		if len(args) > 0 && args[0] != use.Name {
			continue
		}
		c, err := loader.Load(ctx, use, nil)
		if err != nil {
			return err
		}
		found = append(found, listed{c.Name, c.Version, use.Source, c.Description, c.Requires,
			append([]convention.Parameter{}, c.Parameters...), c.Files, c.Migrations})
	}
	switch {
	case len(args) > 0 && len(found) == 0:
		return exit.Hintf("see `"+a.Self+" boilerplate list`", "there is no convention %q", args[0])
	case !out.Table():
		return out.Value(a.Streams.Out, map[string]any{"conventions": found})
	case len(args) > 0:
		a.printConvention(out, found[0])
		return nil
	}
	table := &term.Table{Header: []string{"CONVENTION", "VERSION", "SOURCE", "DESCRIPTION"}, Wrap: true}
	for _, c := range found {
		table.Add(term.Cell{Text: c.Name}, term.Cell{Text: c.Version}, term.Cell{Text: c.Source},
			term.Cell{Text: c.Description})
	}
	a.Table(out, table)
	return nil
}

// availableUses are the conventions of this program and those of sources.
func availableUses(sources []string) ([]subscription.Use, error) {
	var uses []subscription.Use
	entries, err := fs.ReadDir(conventions.Files, ".")
	if err != nil {
		return nil, fmt.Errorf("read conventions: %w", err)
	}
	for _, e := range entries {
		uses = append(uses, subscription.Use{Name: e.Name(), Source: subscription.Builtin})
	}
	for _, text := range sources {
		name, from, ok := strings.Cut(text, "=")
		if !ok {
			return nil, exit.Hintf("use NAME=SOURCE", "invalid value %q of --source", text)
		}
		uses = append(uses, subscription.Use{Name: name, Source: from})
	}
	return uses, nil
}

func (a *app) printConvention(out *command.Output, c listed) {
	a.Say("%s %s: %s\n\n", c.Name, c.Version, c.Description)
	table := &term.Table{Header: []string{"PARAMETER", "TYPE", "DEFAULT", "DESCRIPTION"}, Wrap: true}
	for _, p := range c.Parameters {
		value := "required"
		if p.Default != nil {
			value = fmt.Sprint(p.Default)
		}
		table.Add(term.Cell{Text: p.Name}, term.Cell{Text: p.Type}, term.Cell{Text: value},
			term.Cell{Text: p.Description})
	}
	a.Table(out, table)
	a.Say("\n")
	table = &term.Table{Header: []string{"FILE", "KIND", "WHEN"}}
	for _, f := range c.Files {
		table.Add(term.Cell{Text: f.Path}, term.Cell{Text: string(f.Kind)}, term.Cell{Text: f.When})
	}
	a.Table(out, table)
}

func (a *app) ejectCommand() *cobra.Command {
	f := &updating{}
	c := &cobra.Command{
		Use: "eject [CONVENTION]", Short: "End the subscription to conventions, and keep the files",
		Long: `End the subscription of a repository to one convention, or to all of them. Its files
stay, without the headers and the markers of regions, and are the repository's own from
then on. It is one commit, and refused where an update would be.`,
		Args: command.AtMostOne, Example: "  bellwether boilerplate eject docs",
		RunE: func(c *cobra.Command, args []string) error {
			return a.explain(a.eject(c.Context(), f, strings.Join(args, "")))
		},
	}
	f.place.add(c)
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "Show the differences and change nothing.")
	c.Flags().BoolVar(&f.noCommit, "no-commit", false, "Write the files and make no commit.")
	f.confirm.Add(c)
	return c
}

func (a *app) eject(ctx context.Context, f *updating, name string) error {
	r, err := a.open(&f.place)
	if err != nil {
		return err
	}
	defer func() { _ = r.Tree.Close() }()
	if r.Journal != nil {
		return fmt.Errorf("%w: end it with `%s boilerplate update --continue` or --abort", run.ErrInProgress, a.Self)
	}
	p, err := r.Eject(name)
	if err != nil {
		return err
	}
	return a.apply(ctx, f, r, p)
}
