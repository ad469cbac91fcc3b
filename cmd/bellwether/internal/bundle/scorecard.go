// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/bundles/scorecard"
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

func (a *app) bundleScorecardCommand() *cobra.Command {
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
			return a.showScorecard(&out, scorecard.Score(b))
		},
	}
	access.Add(c)
	out.Add(c, command.OutputJSON, command.OutputYAML, command.OutputHTML, command.OutputSVG, command.OutputMarkdown)
	return a.ErrorsAre(ExitUnusable, c)
}

func (a *app) showScorecard(out *command.Output, card scorecard.Card) error {
	switch out.Format {
	case command.OutputHTML:
		page, err := scorecard.HTML(card)
		if err != nil {
			return err
		}
		a.Say("%s", page)
	case command.OutputSVG:
		a.Say("%s", scorecard.SVG(card))
	case command.OutputMarkdown:
		a.Say("%s", scorecard.Markdown(card))
	case command.OutputTable:
		a.Say("%s", scorecardText(card, a.Style()))
	default:
		return out.Value(a.Streams.Out, card)
	}
	return nil
}

// scorecardText is the card for a terminal: the levels, then what is missing for the next one.
func scorecardText(card scorecard.Card, style term.Style) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n%s\n", style.Paint(term.Strong, card.Name), card.Verdict())
	for _, l := range card.Levels {
		mark, tone, aside := "✗", term.Dim, ""
		switch {
		case l.Level <= card.Shown:
			mark, tone = "✓", term.Good
		case l.Shown:
			mark, aside = "·", "; it is shown, but a level below is not"
		case l.Level <= card.Claimed:
			tone = term.Bad
		}
		found, all := l.Count()
		fmt.Fprintf(&out, "\n%s  %s\n", style.Paint(tone, fmt.Sprintf("%s %d %s", mark, l.Level, l.Level)),
			style.Paint(term.Dim, fmt.Sprintf("%d of %d%s", found, all, aside)))
		for _, s := range l.Signals {
			out.WriteString(signalText(s, style))
		}
	}
	if next := card.Next(); len(next) > 0 {
		fmt.Fprintf(&out, "\nTo show %s:\n", card.Levels[card.Shown].Level)
		for _, s := range next {
			must := ""
			if s.Required {
				must = style.Paint(term.Strong, "required: ")
			}
			fmt.Fprintf(&out, "  - %s%s\n", must, s.Advice)
		}
	}
	return out.String()
}

func signalText(s scorecard.Signal, style term.Style) string {
	if s.Found() {
		return fmt.Sprintf("    %s %s  %s\n", style.Paint(term.Good, "+"), s.Title,
			style.Paint(term.Dim, strings.Join(s.Evidence, ", ")))
	}
	tone, must := term.Dim, ""
	if s.Required {
		tone, must = term.Warn, "  (required)"
	}
	return fmt.Sprintf("    %s\n", style.Paint(tone, "- "+s.Title+must))
}
