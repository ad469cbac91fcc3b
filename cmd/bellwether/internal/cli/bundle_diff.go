// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/diff"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/view"
)

const bundleDiffLong = `Show what an upgrade from bundle A to bundle B changes, as a reviewer wants it:
what the CRDs gain and lose, which rights of the operator grow, and which images,
settings and webhooks change. Each is a folder or an image.

What may lose data or refuse what was accepted is called breaking. The exit status
does not depend on it: to forbid things is the job of bundle lint. It is 2 when
one of the two is no bundle or cannot be read.`

func (a *app) bundleDiffCommand() *cobra.Command {
	var out output
	var access registryFlags
	c := &cobra.Command{
		Use: "diff A B", Short: "Show what an upgrade from one bundle to another changes", Long: bundleDiffLong,
		Example: "  bellwether bundle diff registry.example.com/bundles/echo-operator:1.0.0 ./bundle\n" +
			"  bellwether bundle diff bundles/1.0.0 bundles/1.1.0 -o markdown",
		Args: exactArgs("the older bundle", "the newer one"), ValidArgsFunction: completeTwoDirs,
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			from, err := access.bundle(c.Context(), args[0])
			if err != nil {
				return err
			}
			to, err := access.bundle(c.Context(), args[1])
			if err != nil {
				return err
			}
			return a.showBundleDiff(&out, diff.Compare(from, to))
		},
	}
	access.add(c)
	out.add(c, outputJSON, outputYAML, outputMarkdown)
	return c
}

func completeTwoDirs(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) < 2 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// bundle reads a bundle, with its annotations, from a folder, if there is one of that name, or else from an image.
func (f *registryFlags) bundle(ctx context.Context, text string) (*bundles.Bundle, error) {
	if isDirectory(text) {
		b, err := fromFolder(text)
		return b, lintUnusable(err)
	}
	if _, err := os.Stat(text); err == nil {
		return nil, unusableBundle(fmt.Errorf("%s is a file", text), "give the bundle's folder, or an image")
	}
	b, err := f.bundleImage(ctx, text)
	return b, lintUnusable(err)
}

func (f *registryFlags) bundleImage(ctx context.Context, image string) (*bundles.Bundle, error) {
	client := oci.NewClient(oci.Options{})
	labels, err := client.Labels(ctx, image, f.access())
	if err != nil {
		return nil, err
	}
	objects, err := client.BundleObjects(ctx, image, f.access())
	if err != nil {
		return nil, err
	}
	b, err := bundles.FromManifests(objects, labels)
	if err != nil {
		return nil, bundleError(fmt.Errorf("read bundle %s: %w", image, err))
	}
	return b, nil
}

func (a *app) showBundleDiff(out *output, r diff.Report) error {
	switch {
	case out.format == outputMarkdown:
		a.say("%s", diff.Markdown(r))
		return nil
	case !out.table():
		return out.value(a.streams.Out, r)
	}
	style := a.style()
	a.say("%s\n", style.Paint(view.Strong, r.From.Name+" → "+r.To.Name))
	a.say("%s\n", r.Summary())
	for _, area := range diff.Areas() {
		if changes := r.In(area); len(changes) > 0 {
			a.say("\n%s\n%s", style.Paint(view.Strong, area.Title()), diffText(changes, style))
		}
	}
	return nil
}

// diffText are the changes of an area, under what they are about.
func diffText(changes []diff.Change, style view.Style) string {
	var out strings.Builder
	subject := ""
	for _, c := range diff.Fold(changes) {
		if c.Subject != subject {
			subject = c.Subject
			if c.Path != "" {
				fmt.Fprintf(&out, "  %s\n", subject)
			}
		}
		line := c.Sign() + " " + c.Path
		indent := "    "
		if c.Path == "" { // the subject itself came, went or changed
			line, indent = c.Sign()+" "+c.Subject, "  "
		}
		if values := c.Values(); values != "" {
			line += "  " + values
		}
		fmt.Fprintf(&out, "%s%s", indent, style.Paint(diffTone(c.Change), line))
		if note := diffNote(c.Change); note != "" {
			fmt.Fprintf(&out, "  %s", style.Paint(view.Dim, note))
		}
		if c.More > 0 {
			fmt.Fprintf(&out, "  %s", style.Paint(view.Dim, fmt.Sprintf("and %d more like it", c.More)))
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func diffTone(c diff.Change) view.Tone {
	switch {
	case c.Weight == diff.Breaking:
		return view.Bad
	case c.Weight == diff.Attention:
		return view.Warn
	case c.Kind == diff.Added:
		return view.Good
	default:
		return view.Plain
	}
}

func diffNote(c diff.Change) string {
	switch {
	case c.Weight == diff.Breaking:
		return "breaking: " + c.Note
	case c.Note != "":
		return c.Note
	default:
		return ""
	}
}
