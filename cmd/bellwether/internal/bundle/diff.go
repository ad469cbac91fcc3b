// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/review"
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

func (a *app) newDiffCommand() *cobra.Command {
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
			before, err := readWithAnnotations(c.Context(), access, args[0])
			if err != nil {
				return err
			}
			after, err := readWithAnnotations(c.Context(), access, args[1])
			if err != nil {
				return err
			}
			return a.showBundleDiff(&out, review.Compare(before, after))
		},
	}
	access.Add(c)
	out.Add(c, command.OutputJSON, command.OutputYAML, command.OutputMarkdown)
	return a.SetErrorCode(ExitUnusable, c)
}

// readWithAnnotations reads a bundle with its annotations: from a folder if
// there is a folder of that name, else from an image.
func readWithAnnotations(ctx context.Context, f registry.Flags, text string) (*bundles.Bundle, error) {
	if IsDirectory(text) {
		b, err := ReadFolder(text)
		return b, markUnusable(err)
	}
	if err := registry.CheckImageName(text); err != nil {
		return nil, markUnusable(err)
	}
	b, err := readImage(ctx, f, text)
	return b, markUnusable(err)
}

// readImage reads the bundle in an image. It takes the annotations from the image's labels.
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
		return nil, AddBundleHint(fmt.Errorf("read bundle %s: %w", image, err))
	}
	return b, nil
}

// showBundleDiff prints the changes between two bundles, grouped by area.
func (a *app) showBundleDiff(out *command.Output, r review.Report) error {
	switch {
	case out.Format == command.OutputMarkdown:
		a.Say("%s", review.DiffMarkdown(r))
		return nil
	case !out.Table():
		return out.Value(a.Streams.Out, r)
	}
	style := a.Style()
	a.Say("%s\n", style.Paint(term.Strong, r.From.Name+" → "+r.To.Name))
	a.Say("%s\n", r.Summary())
	for _, area := range review.Areas() {
		if changes := r.ListChanges(area); len(changes) > 0 {
			a.Say("\n%s\n%s", style.Paint(term.Strong, area.Title()), formatChanges(changes, style))
		}
	}
	return nil
}

// formatChanges lists the changes of an area, grouped by the object that they affect.
func formatChanges(changes []review.Change, style term.Style) string {
	var out strings.Builder
	subject := ""
	for _, c := range review.Fold(changes) {
		if c.Subject != subject {
			subject = c.Subject
			if c.Path != "" { // a heading for the changes within the subject
				fmt.Fprintf(&out, "  %s\n", subject)
			}
		}
		line := c.Sign() + " " + c.Path
		indent := "    "
		if c.Path == "" { // the subject itself was added, removed or changed
			line, indent = c.Sign()+" "+c.Subject, "  "
		}
		if values := c.Values(); values != "" {
			line += "  " + values
		}
		fmt.Fprintf(&out, "%s%s", indent, style.Paint(chooseTone(c.Change), line))
		if note := formatNote(c.Change); note != "" {
			fmt.Fprintf(&out, "  %s", style.Paint(term.Dim, note))
		}
		if c.More > 0 {
			fmt.Fprintf(&out, "  %s", style.Paint(term.Dim, fmt.Sprintf("and %d more like it", c.More)))
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// chooseTone returns the tone for a change.
func chooseTone(c review.Change) term.Tone {
	switch {
	case c.Weight == review.Breaking:
		return term.Bad
	case c.Weight == review.Attention:
		return term.Warn
	case c.Kind == review.Added:
		return term.Good
	default:
		return term.Plain
	}
}

// formatNote returns the note of a change; empty if it has none.
func formatNote(c review.Change) string {
	switch {
	case c.Weight == review.Breaking:
		return "breaking: " + c.Note
	case c.Note != "":
		return c.Note
	default:
		return ""
	}
}
