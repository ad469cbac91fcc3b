// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/diff"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

const bundleDiffLong = `Show what changes in an upgrade from bundle A to bundle B, for a review: added and
removed fields of CRDs, added permissions, and changed images, settings and
webhooks. A and B are folders or images.

A change is breaking if it can lose data or reject objects that were valid before.
Breaking changes do not affect the exit code. Use bundle lint to reject them.

Exit codes:
  0  the bundles were compared
  2  a bundle cannot be read or is not valid`

func (a *app) bundleDiffCommand() *cobra.Command {
	var out command.Output
	var access registry.Flags
	c := &cobra.Command{
		Use: "diff A B", Short: "Show what an upgrade from one bundle to another changes", Long: bundleDiffLong,
		Example: "  bellwether bundle diff registry.example.com/bundles/echo-operator:1.0.0 ./bundle\n" +
			"  bellwether bundle diff bundles/1.0.0 bundles/1.1.0 -o markdown",
		Args: command.ExactArgs("the old bundle", "the new bundle"), ValidArgsFunction: completeTwoDirs,
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			from, err := readWithAnnotations(c.Context(), access, args[0])
			if err != nil {
				return err
			}
			to, err := readWithAnnotations(c.Context(), access, args[1])
			if err != nil {
				return err
			}
			return a.showBundleDiff(&out, diff.Compare(from, to))
		},
	}
	access.Add(c)
	out.Add(c, command.OutputJSON, command.OutputYAML, command.OutputMarkdown)
	return a.ErrorsAre(ExitUnusable, c)
}

// readWithAnnotations reads a bundle, with its annotations, from a folder, if there is one of that name, or else
// from an image.
func readWithAnnotations(ctx context.Context, f registry.Flags, text string) (*bundles.Bundle, error) {
	if IsDirectory(text) {
		b, err := FromFolder(text)
		return b, lintUnusable(err)
	}
	if err := registry.CheckImageName(text); err != nil {
		return nil, lintUnusable(err)
	}
	b, err := readImage(ctx, f, text)
	return b, lintUnusable(err)
}

func readImage(ctx context.Context, f registry.Flags, image string) (*bundles.Bundle, error) {
	client := oci.NewClient(oci.Options{})
	labels, err := client.Labels(ctx, image, f.Access())
	if err != nil {
		return nil, err
	}
	objects, err := client.BundleObjects(ctx, image, f.Access())
	if err != nil {
		return nil, err
	}
	b, err := bundles.FromManifests(objects, labels)
	if err != nil {
		return nil, BundleError(fmt.Errorf("read bundle %s: %w", image, err))
	}
	return b, nil
}

func (a *app) showBundleDiff(out *command.Output, r diff.Report) error {
	switch {
	case out.Format == command.OutputMarkdown:
		a.Say("%s", diff.Markdown(r))
		return nil
	case !out.Table():
		return out.Value(a.Streams.Out, r)
	}
	style := a.Style()
	a.Say("%s\n", style.Paint(term.Strong, r.From.Name+" → "+r.To.Name))
	a.Say("%s\n", r.Summary())
	for _, area := range diff.Areas() {
		if changes := r.In(area); len(changes) > 0 {
			a.Say("\n%s\n%s", style.Paint(term.Strong, area.Title()), diffText(changes, style))
		}
	}
	return nil
}

// diffText are the changes of an area, under what they are about.
func diffText(changes []diff.Change, style term.Style) string {
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
			fmt.Fprintf(&out, "  %s", style.Paint(term.Dim, note))
		}
		if c.More > 0 {
			fmt.Fprintf(&out, "  %s", style.Paint(term.Dim, fmt.Sprintf("and %d more like it", c.More)))
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func diffTone(c diff.Change) term.Tone {
	switch {
	case c.Weight == diff.Breaking:
		return term.Bad
	case c.Weight == diff.Attention:
		return term.Warn
	case c.Kind == diff.Added:
		return term.Good
	default:
		return term.Plain
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
