// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/crd"
	"github.com/bellwether-dev/bellwether/bundles/lint"
	"github.com/bellwether-dev/bellwether/catalogs/compile"
	"github.com/bellwether-dev/bellwether/catalogs/compile/folder"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/bundle"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

const catalogAddLong = `Add a version to a ladder file. BUNDLE is a bundle image, which is added by digest,
or a bundle folder below the folder of the ladder file. The version enters the
lowest channel.

The bundle is linted first and compared with all published versions. A bundle with
errors is not added. Waivers work as in "bellwether bundle lint".`

// addFlags are the flags of catalog add.
type addFlags struct {
	ladderFlags

	access  registry.Flags
	channel string
	noLint  bool
}

func (a *app) newAddCommand() *cobra.Command {
	var f addFlags
	c := &cobra.Command{
		Use: "add LADDER|DIR BUNDLE", Short: "Add a version to a ladder file", Long: catalogAddLong,
		Args: command.ExactArgs("the ladder file or the folder of the ladder files", "the bundle's image or folder"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		Example: "  bellwether catalog add ./ladders registry.example.com/bundles/echo-operator:1.1.0\n" +
			"  bellwether catalog add ./ladders/echo-operator.yaml ./ladders/bundles/1.1.0",
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.out.Check(); err != nil {
				return err
			}
			return a.addVersion(c.Context(), &f, args[0], args[1])
		},
	}
	f.addFlags(c)
	f.access.Add(c)
	c.Flags().StringVar(&f.channel, "channel", "", "The `CHANNEL` to add the version to. Default: the lowest channel.")
	c.Flags().BoolVar(&f.noLint, "no-lint", false, "Do not lint the bundle.")
	_ = c.RegisterFlagCompletionFunc("channel", completeRungs)
	return c
}

// addVersion lints a bundle and adds it to its ladder file. source is a bundle image or a folder.
func (a *app) addVersion(ctx context.Context, f *addFlags, ladderPath, source string) error {
	reader := folder.Bundles{Images: oci.NewClient(oci.Options{}), Access: f.access.Access(),
		CacheDir: a.findBundleCache()}
	bundle, image, err := a.readNewBundle(ctx, &reader, source)
	if err != nil {
		return registry.AddHint(err)
	}
	file, err := folder.FindPackage(ladderPath, bundle.Package)
	switch {
	case errors.Is(err, folder.ErrNoLadder):
		return exit.Hint(err, fmt.Sprintf("to create one, run `bellwether catalog init %s --package %s`", ladderPath,
			bundle.Package))
	case err != nil:
		return addLadderHint(err)
	}
	entry := ladder.Bundle{Version: bundle.Version.String(), Name: bundle.Name, Image: image, Channel: f.channel}
	if image == "" {
		if entry.Path, err = makeRelative(folder.Dir(file), source); err != nil {
			return err
		}
	}
	if !f.noLint {
		if err := a.lintNewVersion(ctx, &reader, file, bundle, source); err != nil {
			return err
		}
	}
	return a.editLadder(&f.ladderFlags, file, func(l *ladder.Ladder) (string, error) {
		previousCount := len(l.Bundles)
		if err := l.Add(entry); err != nil {
			return "", err
		}
		added, err := l.Bundle(entry.Version)
		if err != nil {
			return "", err
		}
		if len(l.Bundles) == previousCount {
			return fmt.Sprintf("%s %s is already in channel %s.", l.Package, entry.Version, added.Channel), nil
		}
		a.warnReplaces(l, bundle)
		return fmt.Sprintf("Added %s %s to channel %s.", l.Package, entry.Version, added.Channel), nil
	})
}

// readNewBundle reads a bundle from a folder or an image. For an image it also returns the reference by digest.
func (a *app) readNewBundle(ctx context.Context, reader *folder.Bundles, source string) (*bundles.Bundle, string,
	error) {
	if bundle.IsDirectory(source) {
		b, err := bundle.ReadFolder(source)
		return b, "", err
	}
	if err := registry.CheckImageName(source); err != nil {
		return nil, "", err
	}
	files, digest, err := reader.Images.Bundle(ctx, source, reader.Access)
	if err != nil {
		return nil, "", err
	}
	b, err := bundles.Read(files)
	if err != nil {
		return nil, "", bundle.AddBundleHint(fmt.Errorf("read bundle %s: %w", source, err))
	}
	return b, bundles.PinImage(source, digest), nil
}

// makeRelative returns path relative to dir, with slashes. It returns an error if path is not below dir.
func makeRelative(dir, path string) (string, error) {
	base, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", dir, err)
	}
	target, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", path, err)
	}
	rel, err := filepath.Rel(base, target)
	if err != nil || rel == "." || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", exit.Hintf("move the folder, or push the bundle with `bellwether bundle push` and add the image",
			"the bundle folder %s is not below %s, the folder of the ladder file", path, dir)
	}
	return filepath.ToSlash(rel), nil
}

// lintNewVersion returns an error, and prints the findings, if the lint of an offered bundle finds errors.
func (a *app) lintNewVersion(ctx context.Context, reader *folder.Bundles, file *ladder.File, offered *bundles.Bundle,
	source string) error {
	progress := a.Progress("reading what was published before")
	defer progress.Stop()
	in := lint.Input{Bundle: offered, Archive: crd.NewArchive()}
	total := len(file.Ladder.Bundles) + len(file.Ladder.Retired)
	err := reader.VisitBundles(ctx, folder.Dir(file), file.Ladder, func(c compile.Content) error {
		if b := lint.Reduce(in.Archive, offered, c.Bundle); b != nil {
			in.History = append(in.History, b)
		}
		progress.Count(len(in.History), total, "versions")
		return nil
	})
	if err != nil {
		return registry.AddHint(fmt.Errorf("read what was published before: %w", err))
	}
	progress.Stop()
	in.Predecessor = lint.FindPredecessor(offered, in.History)
	o := lint.Options{Now: a.Now()}
	bundleDir := ""
	if bundle.IsDirectory(source) {
		in.Files, o.Directory, bundleDir = os.DirFS(source), filepath.ToSlash(filepath.Clean(source)), source
	}
	if o.WaiverFile, o.Waivers, err = bundle.ReadWaivers("", bundleDir); err != nil {
		return err
	}
	report := lint.Run(in, o)
	if !report.Failed() {
		return nil
	}
	report.Findings = slices.DeleteFunc(report.Findings, func(f lint.Finding) bool { return f.Severity != lint.Error })
	a.Warn("%s\n", report.Text(lint.TextStyle{Colour: a.Style().Colour, Program: a.Self}))
	return exit.Hintf("fix the bundle, waive the findings in "+lint.WaiverFile+", or use --no-lint",
		"version %s is not added: the bundle has %s", offered.Version, phrase.Count(len(report.Findings), "error"))
}

// warnReplaces warns if spec.replaces of the ClusterServiceVersion
// contradicts the ladder. The catalog ignores the field.
func (a *app) warnReplaces(l *ladder.Ladder, bundle *bundles.Bundle) {
	replaces := bundle.CSV.Spec.Replaces
	if replaces == "" {
		return
	}
	switch version, isInLadder := l.FindVersion(replaces); {
	case replaces == bundle.Name:
		a.Warn("note: the ClusterServiceVersion replaces itself; the catalog ignores spec.replaces\n")
	case !isInLadder:
		a.Warn("note: the ClusterServiceVersion replaces %s, which is not in the ladder; the catalog ignores "+
			"spec.replaces\n", replaces)
	case version.GT(bundle.Version):
		a.Warn("note: the ClusterServiceVersion replaces %s, which is a higher version; the catalog ignores "+
			"spec.replaces\n", replaces)
	}
}
