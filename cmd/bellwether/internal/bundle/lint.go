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
	"github.com/bellwether-dev/bellwether/internal/version"
)

const (
	formatText  = "text"
	formatSARIF = "sarif"

	// LintFindings is the exit code if a finding has the severity of --fail-on or a higher severity.
	LintFindings = 1
	// maxImageFetches limits how many images are looked up at the same time.
	maxImageFetches = 8
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

// lintFlags are the flags of bundle lint.
type lintFlags struct {
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

func (a *app) newLintCommand() *cobra.Command {
	f := &lintFlags{}
	c := &cobra.Command{
		Use: "lint BUNDLE", Short: "Check a bundle for errors", Long: bundleLintLong, Example: bundleLintExample,
		Args: f.checkArguments, ValidArgsFunction: command.CompleteDir,
		RunE: func(c *cobra.Command, args []string) error {
			err := f.checkFlags()
			switch {
			case err != nil: // returned below
			case f.list:
				return a.printRules(f)
			case f.explain != "":
				return a.explainRule(f.explain)
			default:
				err = a.lintBundle(c.Context(), f, args[0])
			}
			return markUnusable(err)
		},
	}
	f.addFlags(c)
	return c
}

func (f *lintFlags) addFlags(c *cobra.Command) {
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
	f.out.Add(c, formatText, command.OutputJSON, formatSARIF)
	_ = c.MarkFlagFilename("waivers", "yaml", "yml")
	_ = c.MarkFlagFilename("baseline", "json")
	_ = c.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions(
		[]string{string(lint.Error), string(lint.Warning), string(lint.Info)}, cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"rule", "skip", "explain"} {
		_ = c.RegisterFlagCompletionFunc(name, completeRules)
	}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return markUnusable(command.ExplainFlagError(c, err))
	})
}

func completeRules(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, r := range lint.Rules() {
		out = append(out, r.ID+"\t"+r.Title)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// checkArguments requires a bundle, unless --list or --explain is set.
func (f *lintFlags) checkArguments(c *cobra.Command, args []string) error {
	if f.list || f.explain != "" {
		return markUnusable(command.NoArgs(c, args))
	}
	return markUnusable(command.OneArg("the bundle's folder or image, or - for stdin")(c, args))
}

// checkFlags returns an error if the values of flags are invalid.
func (f *lintFlags) checkFlags() error {
	if f.out.Format == formatText {
		f.out.Format = command.OutputTable
	}
	if f.out.Check() != nil {
		return exit.Hintf("use text, json or sarif", "invalid value %q of -o", f.out.Format)
	}
	if !slices.Contains([]lint.Severity{lint.Error, lint.Warning, lint.Info}, lint.Severity(f.failOn)) {
		return exit.Hintf("use error, warning or info", "invalid value %q of --fail-on", f.failOn)
	}
	for _, id := range slices.Concat(f.only, f.skip) {
		if _, err := findRule(id); err != nil {
			return err
		}
	}
	return nil
}

// findRule returns the rule with an ID, or an error with a hint.
func findRule(id string) (lint.Rule, error) {
	rule, ok := lint.FindRule(id)
	if !ok {
		return rule, exit.Hintf("run `bellwether bundle lint --list` to see all rules", "unknown rule %q", id)
	}
	return rule, nil
}

// markUnusable turns an error about the input into an error with ExitUnusable and a hint. It does not change errors
// that already have an exit code, such as the code for findings.
func markUnusable(err error) error {
	var codeError *exit.CodeError
	if err == nil || errors.As(err, &codeError) {
		return err
	}
	var hinted *exit.HintError
	if !errors.As(err, &hinted) {
		err = registry.AddHint(err)
	}
	if errors.As(err, &hinted) {
		return newUnusableError(err, hinted.Hint)
	}
	return newUnusableError(err, "")
}

// lintBundle lints a bundle, prints the report, and returns an error with LintFindings if the lint fails.
func (a *app) lintBundle(ctx context.Context, f *lintFlags, source string) error {
	client := oci.NewClient(oci.Options{})
	progress := a.Progress("reading bundles")
	defer progress.Stop()
	in, err := a.readLintInput(ctx, client, f, source, progress)
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
		folder, o.Directory = source, filepath.ToSlash(f.displayPath(source))
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

// readBaseline reads the findings of an earlier report; nil if name is empty.
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

// displayPath returns the bundle's folder for reports: as the user wrote it. In SARIF, an
// absolute path below the working directory becomes relative, because code hosts need paths
// relative to the root of the repository, where CI runs.
func (f *lintFlags) displayPath(folder string) string {
	folder = filepath.Clean(folder)
	if f.out.Format != formatSARIF || !filepath.IsAbs(folder) {
		return folder
	}
	workingDir, err := os.Getwd()
	if err != nil {
		return folder
	}
	if relative, err := filepath.Rel(workingDir, folder); err == nil && filepath.IsLocal(relative) {
		return relative
	}
	return folder
}

// printReport prints a report in the selected format.
func (a *app) printReport(f *lintFlags, report lint.Report) error {
	var text []byte
	var err error
	switch f.out.Format {
	case command.OutputJSON:
		text, err = report.JSON()
	case formatSARIF:
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

// readLintInput reads the bundle, the published versions that it is compared with, and the platforms of its images.
func (a *app) readLintInput(ctx context.Context, client *oci.Client, f *lintFlags, source string,
	progress *command.Progress) (lint.Input, error) {
	in := lint.Input{}
	var err error
	if in.Bundle, in.Files, err = a.readBundle(ctx, client, f.access.Access(), source); err != nil {
		return in, err
	}
	in.Archive = crd.NewArchive()
	h := &historyReader{client: client, access: &f.access, target: in.Bundle, archive: in.Archive, progress: progress}
	var published []*bundles.Bundle
	for _, source := range f.history {
		found, err := h.readSource(ctx, source)
		if err != nil {
			return in, fmt.Errorf("read history %s: %w", source, err)
		}
		published, in.Unreadable = append(published, found.bundles...), append(in.Unreadable, found.unreadable...)
	}
	in.History = lint.SortHistory(in.Bundle, published)
	in.Predecessor = lint.FindPredecessor(in.Bundle, in.History)
	if f.checkImages {
		progress.Doing("looking up images")
		in.Images = lookUpImages(ctx, client, f.access.Access(), lint.ListImages(in.Bundle))
	}
	return in, nil
}

// IsDirectory reports whether name is an existing folder.
func IsDirectory(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// readBundle reads a bundle from a folder, an image, or manifests on stdin. The files are nil for stdin.
func (a *app) readBundle(ctx context.Context, client *oci.Client, access oci.Access, source string) (*bundles.Bundle,
	fs.FS, error) {
	switch {
	case source == "-":
		b, err := readStdin(a.Streams.In)
		return b, nil, err
	case IsDirectory(source):
		b, err := ReadFolder(source)
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
		return nil, nil, AddBundleHint(fmt.Errorf("read bundle %s: %w", source, err))
	}
	return b, files, nil
}

// readStdin reads a bundle from a stream of manifests of at most bundles.MaxBytes.
func readStdin(in io.Reader) (*bundles.Bundle, error) {
	text, err := io.ReadAll(io.LimitReader(in, bundles.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read stdin: %w", err)
	}
	if len(text) > bundles.MaxBytes {
		return nil, fmt.Errorf("read stdin: %w: more than %d MiB", bundles.ErrTooLarge, bundles.MaxBytes>>20)
	}
	return parseStream(text)
}

// ReadFolder reads a bundle from a folder. If the folder has the package manifest
// format, the error has a hint how to convert it.
func ReadFolder(dir string) (*bundles.Bundle, error) {
	b, err := bundles.Read(os.DirFS(dir))
	if errors.Is(err, bundles.ErrNotBundle) {
		if p, packageErr := build.ReadPackageManifests(os.DirFS(dir)); packageErr == nil {
			return nil, exit.Hintf(fmt.Sprintf("convert a version with `bellwether bundle build %s --version VERSION "+
				"--output-dir bundle`", dir), "%s is in the package manifest format, with the versions %s of %s: %w",
				dir, strings.Join(p.Versions(), ", "), p.Package, bundles.ErrNotBundle)
		}
	}
	if err != nil {
		return nil, AddBundleHint(fmt.Errorf("read bundle %s: %w", dir, err))
	}
	return b, nil
}

// parseStream parses the documents of a stream. Each counts as a file, so that
// no rule objects to several objects in one file.
func parseStream(text []byte) (*bundles.Bundle, error) {
	b, err := bundles.FromStream(text)
	if err != nil {
		return nil, AddBundleHint(err)
	}
	return b, nil
}

func parseManifests(manifests [][]byte) (*bundles.Bundle, error) {
	b, err := bundles.FromManifests(manifests, nil)
	if err != nil {
		return nil, AddBundleHint(err)
	}
	return b, nil
}

// AddBundleHint adds a hint to an error about input that is not a valid bundle.
func AddBundleHint(err error) error {
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

// ReadWaivers reads the file of waivers with the given name or, if name is empty, the file in folder or in the
// working directory. It also returns the path of the file, which is empty if there is none.
func ReadWaivers(name, folder string) (string, []lint.Waiver, error) {
	if name == "" {
		for _, dir := range []string{folder, "."} {
			candidate := filepath.Join(cmp.Or(dir, "."), lint.WaiverFile)
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

// imageAnswers has the platforms of images as their registries report them, or the errors.
type imageAnswers map[string]imageAnswer

type imageAnswer struct {
	platforms []string
	err       error
}

// Platforms implements lint.ImageIndex. The error wraps fs.ErrNotExist if the registry does not have the image.
func (a imageAnswers) Platforms(image string) ([]string, error) {
	answer := a[image]
	if errors.Is(answer.err, oci.ErrNotFound) {
		return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, answer.err)
	}
	return answer.platforms, answer.err
}

// lookUpImages queries the registries for the platforms of all images in parallel. An error of one image is stored,
// because it becomes a finding about this image.
func lookUpImages(ctx context.Context, client *oci.Client, access oci.Access, images []string) imageAnswers {
	answers := make([]imageAnswer, len(images))
	var group errgroup.Group
	group.SetLimit(maxImageFetches)
	for i, image := range images {
		group.Go(func() error {
			answers[i].platforms, answers[i].err = client.Platforms(ctx, image, access)
			return nil
		})
	}
	_ = group.Wait()
	table := imageAnswers{}
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

// printRules prints the list of the lint rules.
func (a *app) printRules(f *lintFlags) error {
	if f.out.Format == command.OutputJSON {
		var out []ruleOutput
		for _, r := range lint.Rules() {
			out = append(out, ruleOutput{ID: r.ID, Severity: r.Severity, Title: r.Title, Why: r.Why, Fix: r.Fix})
		}
		return f.out.Value(a.Streams.Out, map[string]any{"rules": out})
	}
	if f.out.Format == formatSARIF {
		return markUnusable(exit.Hintf("use text or json", "the list of rules has no SARIF format"))
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

// explainRule prints the description of a rule.
func (a *app) explainRule(id string) error {
	rule, err := findRule(id)
	if err != nil {
		return markUnusable(err)
	}
	a.Say("%s", strings.TrimSuffix(rule.Markdown(), "\n")+"\n")
	return nil
}
