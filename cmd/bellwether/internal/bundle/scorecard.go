// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/bundles/review"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

const bundleScorecardLong = `Compare the capability level that an operator claims with the content of its bundle:
Basic Install, Seamless Upgrades, Full Lifecycle, Deep Insights or Auto Pilot.

For each level the scorecard lists the evidence: fields of CRDs, permissions and
manifests. A level is reached if the bundle has all required signals of this level
and of all lower levels. BUNDLE is a folder or an image.

The result depends only on the content of the bundle. It does not say how well the
operator works.

Exit codes:
  0  the scorecard was printed
  2  the bundle cannot be read or is not valid`

func (a *app) newScorecardCommand() *cobra.Command {
	var out command.Output
	var access registry.Flags
	c := &cobra.Command{
		Use: "scorecard BUNDLE", Short: "Compare the claimed capability level with the content of the bundle",
		Long: bundleScorecardLong,
		Example: "  bellwether bundle scorecard ./bundle\n" +
			"  bellwether bundle scorecard ./bundle -o html > scorecard.html",
		Args: command.OneArg("the bundle's folder or image"), ValidArgsFunction: command.CompleteDir,
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			b, err := readWithAnnotations(c.Context(), access, args[0])
			if err != nil {
				return err
			}
			return a.showScorecard(&out, review.ScoreBundle(b))
		},
	}
	access.Add(c)
	out.Add(c, command.OutputJSON, command.OutputYAML, command.OutputHTML, command.OutputSVG, command.OutputMarkdown)
	return a.SetErrorCode(ExitUnusable, c)
}

// showScorecard prints a scorecard in the selected format.
func (a *app) showScorecard(out *command.Output, card review.Card) error {
	switch out.Format {
	case command.OutputHTML:
		page, err := review.CardHTML(card)
		if err != nil {
			return err
		}
		a.Say("%s", page)
	case command.OutputSVG:
		a.Say("%s", review.CardSVG(card))
	case command.OutputMarkdown:
		a.Say("%s", review.CardMarkdown(card))
	case command.OutputTable:
		a.Say("%s", formatScorecard(card, a.Style()))
	default:
		return out.Value(a.Streams.Out, card)
	}
	return nil
}

// formatScorecard returns the card for a terminal: the levels, and then the missing signals of the next level.
func formatScorecard(card review.Card, style term.Style) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n%s\n", style.Paint(term.Strong, card.Name), card.Verdict())
	for _, l := range card.Levels {
		mark, tone, remark := "✗", term.Dim, ""
		switch { // a level that is neither shown nor claimed is dimmed
		case l.Level <= card.Shown:
			mark, tone = "✓", term.Good
		case l.Shown:
			mark, remark = "·", "; it is shown, but a level below is not"
		case l.Level <= card.Claimed: // claimed, and not shown
			tone = term.Bad
		}
		found, total := l.Count()
		fmt.Fprintf(&out, "\n%s  %s\n", style.Paint(tone, fmt.Sprintf("%s %d %s", mark, l.Level, l.Level)),
			style.Paint(term.Dim, fmt.Sprintf("%d of %d%s", found, total, remark)))
		for _, s := range l.Signals {
			out.WriteString(formatSignal(s, style))
		}
	}
	if next := card.ListMissingSignals(); len(next) > 0 {
		fmt.Fprintf(&out, "\nTo show %s:\n", card.Levels[card.Shown].Level)
		for _, s := range next {
			prefix := ""
			if s.Required {
				prefix = style.Paint(term.Strong, "required: ")
			}
			fmt.Fprintf(&out, "  - %s%s\n", prefix, s.Advice)
		}
	}
	return out.String()
}

// formatSignal returns the line of a signal: with its evidence if the bundle has the signal, else whether the signal is
// required.
func formatSignal(s review.Signal, style term.Style) string {
	if s.Found() {
		return fmt.Sprintf("    %s %s  %s\n", style.Paint(term.Good, "+"), s.Title,
			style.Paint(term.Dim, strings.Join(s.Evidence, ", ")))
	}
	tone, suffix := term.Dim, ""
	if s.Required {
		tone, suffix = term.Warn, "  (required)"
	}
	return fmt.Sprintf("    %s\n", style.Paint(tone, "- "+s.Title+suffix))
}
