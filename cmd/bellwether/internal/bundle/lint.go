// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/build"
	"github.com/bellwether-dev/bellwether/bundles/crd"
	"github.com/bellwether-dev/bellwether/bundles/lint"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/version"
)

const (
	lintText  = "text"
	lintSARIF = "sarif"

	// LintFindings is the exit status where there are findings that count.
	LintFindings = 1
	// lintFetches bounds how many images are looked up at the same time.
	lintFetches = 8
)

const bundleLintLong = `Check a bundle for errors before it is published.

BUNDLE is a folder with manifests/ and metadata/, an image, or - for manifests on
stdin, which must include a ClusterServiceVersion. With --history, the bundle is
compared with all published versions. --history takes a folder with one bundle
folder for each version, a catalog (folder or image), or a single bundle.

Findings can be waived until a date in .bellwether-lint.yaml, in the folder of the
bundle or in the working directory:

  waivers:
  - rule: image-digest
    file: manifests/*            # optional; path is optional too
    reason: The pipeline pins images when it builds the release.
    expires: 2026-12-31

Exit codes:
  0  no finding has the severity of --fail-on or a higher one
  1  at least one finding has the severity of --fail-on or a higher one
  2  the input cannot be read`

const bundleLintExample = `  bellwether bundle lint ./bundle --history ./published
  bellwether bundle lint ./bundle --history registry.example.com/catalogs/main:latest --fail-on warning
  bellwether bundle lint ./bundle -o sarif > lint.sarif
  bellwether bundle lint --explain crd-removed-field`

// bundleLint are the flags of bundle lint.
type bundleLint struct {
	history     []string
	waivers     string
	failOn      string
	only, skip  []string
	checkImages bool
	all         bool
	allHistory  bool
	baseline    string
	list        bool
	explain     string
	access      registry.Flags
	out         command.Output
}

func (a *app) bundleLintCommand() *cobra.Command {
	f := &bundleLint{}
	c := &cobra.Command{
		Use: "lint BUNDLE", Short: "Check a bundle for errors", Long: bundleLintLong, Example: bundleLintExample,
		Args: f.args, ValidArgsFunction: command.CompleteDir,
		RunE: func(c *cobra.Command, args []string) error {
			err := f.check()
			switch {
			case err != nil:
			case f.list:
				return a.lintRules(f)
			case f.explain != "":
				return a.explainRule(f.explain)
			default:
				err = a.lintBundle(c.Context(), f, args[0])
			}
			return lintUnusable(err)
		},
	}
	f.add(c)
	return c
}

func (f *bundleLint) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringArrayVar(&f.history, "history", nil,
		"The published versions: a `FOLDER`, a catalog, or a bundle image. Can be repeated.")
	flags.StringVar(&f.waivers, "waivers", "",
		"The `FILE` of waivers. Default: "+lint.WaiverFile+" in the folder of the bundle or in the working directory.")
	flags.StringVar(&f.failOn, "fail-on", string(lint.Error),
		"The lowest severity that makes the command fail: error, warning or info.")
	flags.StringSliceVar(&f.only, "rule", nil, "Run only this rule. Can be repeated.")
	flags.StringSliceVar(&f.skip, "skip", nil, "Do not run this rule. Can be repeated.")
	flags.BoolVar(&f.checkImages, "check-images", false,
		"Check in the registries that the images of the bundle exist, and for which platforms.")
	flags.BoolVar(&f.all, "all", false, "Show all findings instead of the first ones of each rule.")
	flags.BoolVar(&f.allHistory, "all-history", false,
		"Report what changed since every published version, not only since those that upgrade to this one directly.")
	flags.StringVar(&f.baseline, "baseline", "",
		"The `FILE` with an earlier report of -o json. Findings in it do not count.")
	flags.BoolVar(&f.list, "list", false, "List the rules and exit.")
	flags.StringVar(&f.explain, "explain", "", "Describe a `RULE` and exit.")
	f.access.Add(c)
	f.out.Add(c, lintText, command.OutputJSON, lintSARIF)
	_ = c.MarkFlagFilename("waivers", "yaml", "yml")
	_ = c.MarkFlagFilename("baseline", "json")
	_ = c.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions(
		[]string{string(lint.Error), string(lint.Warning), string(lint.Info)}, cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"rule", "skip", "explain"} {
		_ = c.RegisterFlagCompletionFunc(name, completeRules)
	}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return lintUnusable(command.FlagError(c, err))
	})
}

func completeRules(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, r := range lint.Rules() {
		out = append(out, r.ID+"\t"+r.Title)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func (f *bundleLint) args(c *cobra.Command, args []string) error {
	if f.list || f.explain != "" {
		return lintUnusable(command.NoArgs(c, args))
	}
	return lintUnusable(command.OneArg("the bundle's folder or image, or - for stdin")(c, args))
}

func (f *bundleLint) check() error {
	if f.out.Format == lintText {
		f.out.Format = command.OutputTable
	}
	if f.out.Check() != nil {
		return exit.Hintf("use text, json or sarif", "invalid value %q of -o", f.out.Format)
	}
	if !slices.Contains([]lint.Severity{lint.Error, lint.Warning, lint.Info}, lint.Severity(f.failOn)) {
		return exit.Hintf("use error, warning or info", "invalid value %q of --fail-on", f.failOn)
	}
	for _, id := range slices.Concat(f.only, f.skip) {
		if _, err := ruleOf(id); err != nil {
			return err
		}
	}
	return nil
}

func ruleOf(id string) (lint.Rule, error) {
	rule, ok := lint.Find(id)
	if !ok {
		return rule, exit.Hintf("run `bellwether bundle lint --list` to see all rules", "unknown rule %q", id)
	}
	return rule, nil
}

// lintUnusable says what of the input is unusable, and ends with the status for
// that. An answer, such as that there are findings, is left as it is.
func lintUnusable(err error) error {
	var answer *exit.CodeError
	if err == nil || errors.As(err, &answer) {
		return err
	}
	var hinted *exit.HintError
	if !errors.As(err, &hinted) {
		err = registry.WithHint(err)
	}
	if errors.As(err, &hinted) {
		return unusableBundle(err, hinted.Hint)
	}
	return unusableBundle(err, "")
}

func (a *app) lintBundle(ctx context.Context, f *bundleLint, source string) error {
	client := oci.NewClient(oci.Options{})
	progress := a.Progress("reading bundles")
	defer progress.Stop()
	in, err := a.lintInput(ctx, client, f, source, progress)
	if err != nil {
		return err
	}
	o := lint.Options{Only: f.only, Skip: f.skip, Now: a.Now(), FailOn: lint.Severity(f.failOn),
		AllHistory: f.allHistory}
	if o.Baseline, err = readBaseline(f.baseline); err != nil {
		return err
	}
	folder := ""
	if IsDirectory(source) {
		folder, o.Directory = source, filepath.ToSlash(f.shown(source))
	}
	if o.WaiverFile, o.Waivers, err = ReadWaivers(f.waivers, folder); err != nil {
		return err
	}
	progress.Doing("checking")
	report := lint.Run(in, o)
	progress.Stop()
	if err := a.printReport(f, report); err != nil {
		return err
	}
	if report.Failed() {
		return &exit.CodeError{Code: LintFindings}
	}
	return nil
}

func readBaseline(name string) ([]lint.Finding, error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read baseline: %w", err)
	}
	findings, err := lint.ParseBaseline(text)
	if err != nil {
		return nil, exit.Hint(fmt.Errorf("baseline %s: %w", name, err),
			"write it with `bellwether bundle lint BUNDLE -o json > FILE`")
	}
	return findings, nil
}

// shown is the bundle's folder as reports name it: as the user did, except that
// code hosts want paths from the root of the repository, where CI runs.
func (f *bundleLint) shown(folder string) string {
	folder = filepath.Clean(folder)
	if f.out.Format != lintSARIF || !filepath.IsAbs(folder) {
		return folder
	}
	here, err := os.Getwd()
	if err != nil {
		return folder
	}
	if relative, err := filepath.Rel(here, folder); err == nil && filepath.IsLocal(relative) {
		return relative
	}
	return folder
}

func (a *app) printReport(f *bundleLint, report lint.Report) error {
	var text []byte
	var err error
	switch f.out.Format {
	case command.OutputJSON:
		text, err = report.JSON()
	case lintSARIF:
		text, err = report.SARIF(version.Get().Version)
	default:
		text = []byte(report.Text(lint.TextStyle{Colour: a.Style().Colour, All: f.all, Program: a.Self}))
	}
	if err != nil {
		return err
	}
	a.Say("%s", text)
	return nil
}

// lintInput reads the bundle and all that it is compared with.
func (a *app) lintInput(ctx context.Context, client *oci.Client, f *bundleLint, source string,
	progress *command.Progress) (lint.Input, error) {
	in := lint.Input{}
	var err error
	if in.Bundle, in.Files, err = a.readBundle(ctx, client, f.access.Access(), source); err != nil {
		return in, err
	}
	in.Archive = crd.NewArchive()
	h := &history{client: client, access: &f.access, of: in.Bundle, archive: in.Archive, progress: progress}
	var all []*bundles.Bundle
	for _, place := range f.history {
		found, err := h.read(ctx, place)
		if err != nil {
			return in, fmt.Errorf("read history %s: %w", place, err)
		}
		all, in.Unreadable = append(all, found.bundles...), append(in.Unreadable, found.unreadable...)
	}
	in.History = lint.History(in.Bundle, all)
	in.Predecessor = lint.Predecessor(in.Bundle, in.History)
	if f.checkImages {
		progress.Doing("looking up images")
		in.Images = lookUpImages(ctx, client, f.access.Access(), lint.Images(in.Bundle))
	}
	return in, nil
}

// IsDirectory reports whether the name is that of a folder.
func IsDirectory(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// readBundle reads a folder, an image, or manifests on stdin, which have no
// files.
func (a *app) readBundle(ctx context.Context, client *oci.Client, access oci.Access, source string) (*bundles.Bundle,
	fs.FS, error) {
	switch {
	case source == "-":
		b, err := fromStdin(a.Streams.In)
		return b, nil, err
	case IsDirectory(source):
		b, err := FromFolder(source)
		return b, os.DirFS(source), err
	}
	if err := registry.CheckImageName(source); err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(source); err == nil {
		return nil, nil,
			exit.Hintf("use the folder that contains manifests/ and metadata/, or - to read manifests from stdin",
				"%s is a file, not a bundle folder", source)
	}
	files, _, err := client.Bundle(ctx, source, access)
	if err != nil {
		return nil, nil, err
	}
	b, err := bundles.Read(files)
	if err != nil {
		return nil, nil, BundleError(fmt.Errorf("read bundle %s: %w", source, err))
	}
	return b, files, nil
}

func fromStdin(in io.Reader) (*bundles.Bundle, error) {
	text, err := io.ReadAll(io.LimitReader(in, bundles.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read stdin: %w", err)
	}
	if len(text) > bundles.MaxBytes {
		return nil, fmt.Errorf("read stdin: %w: more than %d MiB", bundles.ErrTooLarge, bundles.MaxBytes>>20)
	}
	return fromStream(text)
}

// FromFolder reads a bundle from a folder.
func FromFolder(dir string) (*bundles.Bundle, error) {
	b, err := bundles.Read(os.DirFS(dir))
	if errors.Is(err, bundles.ErrNotBundle) {
		if p, other := build.ReadPackageManifests(os.DirFS(dir)); other == nil {
			return nil, exit.Hintf(fmt.Sprintf("convert a version with `bellwether bundle build %s --version VERSION "+
				"--output-dir bundle`", dir), "%s is in the package manifest format, with the versions %s of %s: %w",
				dir, strings.Join(p.Versions(), ", "), p.Package, bundles.ErrNotBundle)
		}
	}
	if err != nil {
		return nil, BundleError(fmt.Errorf("read bundle %s: %w", dir, err))
	}
	return b, nil
}

// fromStream reads documents one by one: in a stream they share no file, which
// a rule would object to.
func fromStream(text []byte) (*bundles.Bundle, error) {
	b, err := bundles.FromStream(text)
	if err != nil {
		return nil, BundleError(err)
	}
	return b, nil
}

func fromManifests(manifests [][]byte) (*bundles.Bundle, error) {
	b, err := bundles.FromManifests(manifests, nil)
	if err != nil {
		return nil, BundleError(err)
	}
	return b, nil
}

// BundleError adds what to do about input that is no bundle.
func BundleError(err error) error {
	switch {
	case errors.Is(err, bundles.ErrSyntax):
		return exit.Hint(err, "correct the YAML of that file")
	case errors.Is(err, bundles.ErrVersion):
		return exit.Hint(err, "write spec.version as X.Y.Z, for example 1.2.0, without a leading v")
	case errors.Is(err, bundles.ErrNotBundle):
		return exit.Hint(err, "a bundle folder has manifests/ with a ClusterServiceVersion, and "+
			"metadata/annotations.yaml; to create one, run `bellwether bundle build`")
	}
	return err
}

// ReadWaivers reads the file of waivers with the given name or, without one, the
// file beside the bundle or in the working directory. It returns its name too.
func ReadWaivers(name, folder string) (string, []lint.Waiver, error) {
	if name == "" {
		for _, place := range []string{folder, "."} {
			candidate := filepath.Join(cmp.Or(place, "."), lint.WaiverFile)
			if _, err := os.Stat(candidate); err == nil {
				name = candidate
				break
			}
		}
	}
	if name == "" {
		return "", nil, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", nil, fmt.Errorf("read waivers: %w", err)
	}
	waivers, err := lint.ParseWaivers(text)
	if err != nil {
		return "", nil, exit.Hint(fmt.Errorf("%s: %w", name, err),
			"a waiver has rule, reason and expires (2026-12-31), and optionally file and path")
	}
	return filepath.ToSlash(name), waivers, nil
}

// imageTable is what registries said of images, with their errors.
type imageTable map[string]imageAnswer

type imageAnswer struct {
	platforms []string
	err       error
}

// Platforms implements lint.ImageIndex.
func (t imageTable) Platforms(image string) ([]string, error) {
	answer := t[image]
	if errors.Is(answer.err, oci.ErrNotFound) {
		return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, answer.err)
	}
	return answer.platforms, answer.err
}

// lookUpImages asks the registries for all images at the same time. What goes
// wrong with one is a finding about it.
func lookUpImages(ctx context.Context, client *oci.Client, access oci.Access, images []string) imageTable {
	answers := make([]imageAnswer, len(images))
	var group errgroup.Group
	group.SetLimit(lintFetches)
	for i, image := range images {
		group.Go(func() error {
			answers[i].platforms, answers[i].err = client.Platforms(ctx, image, access)
			return nil
		})
	}
	_ = group.Wait()
	table := imageTable{}
	for i, image := range images {
		table[image] = answers[i]
	}
	return table
}

// ruleOutput is a rule as --list -o json prints it.
type ruleOutput struct {
	ID       string        `json:"id"`
	Severity lint.Severity `json:"severity"`
	Title    string        `json:"title"`
	Why      string        `json:"why"`
	Fix      string        `json:"fix"`
}

func (a *app) lintRules(f *bundleLint) error {
	if f.out.Format == command.OutputJSON {
		var out []ruleOutput
		for _, r := range lint.Rules() {
			out = append(out, ruleOutput{r.ID, r.Severity, r.Title, r.Why, r.Fix})
		}
		return f.out.Value(a.Streams.Out, map[string]any{"rules": out})
	}
	if f.out.Format == lintSARIF {
		return lintUnusable(exit.Hintf("use text or json", "the list of rules has no SARIF format"))
	}
	tones := map[lint.Severity]term.Tone{lint.Error: term.Bad, lint.Warning: term.Warn, lint.Info: term.Dim}
	table := &term.Table{Header: []string{"RULE", "SEVERITY", "DESCRIPTION"}, Wrap: true}
	for _, r := range lint.Rules() {
		table.Add(term.Cell{Text: r.ID}, term.Cell{Text: string(r.Severity), Tone: tones[r.Severity]},
			term.Cell{Text: r.Title})
	}
	a.Table(&f.out, table)
	return nil
}

func (a *app) explainRule(id string) error {
	rule, err := ruleOf(id)
	if err != nil {
		return lintUnusable(err)
	}
	a.Say("%s", strings.TrimSuffix(rule.Markdown(), "\n")+"\n")
	return nil
}
