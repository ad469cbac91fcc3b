// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bytes"
	_ "embed"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// The picture is a staircase of five steps. Sizes are in pixels.
const (
	pictureWidth, pictureHeight = 760, 330
	stepWidth, stepGap          = 132, 12
	firstStep, stepRise         = 56, 30
	leftMargin, baseline        = 26, 268
)

// style assigns colours by class, because some programs that show SVG do not support variables. The dark and the light
// colours have about the same contrast.
//
//go:embed style.css
var style string

// CardSVG draws the card. A filled step is a level that the bundle shows, a dashed step a level that it only claims.
func CardSVG(c Card) string {
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" `+
		`role="img" aria-label="%s">`,
		pictureWidth, pictureHeight, pictureWidth, pictureHeight, escapeXML(c.Name+": "+c.Verdict()))
	fmt.Fprintf(&out, "\n<style>%s</style>\n", style)
	fmt.Fprintf(&out, `<rect class="bw-back" width="%d" height="%d" rx="10"/>`+"\n", pictureWidth, pictureHeight)
	fmt.Fprintf(&out, `<text class="bw-title" x="%d" y="38">%s</text>`+"\n", leftMargin,
		escapeXML(phrase.Truncate(formatTitle(c), 60)))
	fmt.Fprintf(&out, `<text class="bw-text" x="%d" y="60">%s</text>`+"\n", leftMargin,
		escapeXML(phrase.Truncate(c.Verdict(), 100)))
	for i, level := range c.Levels {
		writeStep(&out, c, level, leftMargin+i*(stepWidth+stepGap))
	}
	fmt.Fprintf(&out, `<line class="bw-line" x1="%d" y1="%d" x2="%d" y2="%d"/>`+"\n", leftMargin, baseline,
		pictureWidth-leftMargin, baseline)
	out.WriteString("</svg>\n")
	return out.String()
}

// writeStep draws the step of one level at the position x: with the number of its signals, and with a flag if the
// level is the claimed level.
func writeStep(out *strings.Builder, c Card, l LevelCard, x int) {
	height := firstStep + int(l.Level-1)*stepRise
	y, middle := baseline-height, x+stepWidth/2
	kind := "off"
	switch {
	case l.Level <= c.Shown:
		kind = "on"
	case l.Level <= c.Claimed:
		kind = "claim"
	}
	fmt.Fprintf(out, `<path class="bw-%s" d="M%d %dv%da8 8 0 0 1 8-8h%da8 8 0 0 1 8 8v%dz"/>`+"\n", kind, x, baseline,
		-(height - 8), stepWidth-16, height-8)
	found, all := l.Count()
	fmt.Fprintf(out, `<text class="bw-count-%s" x="%d" y="%d" text-anchor="middle">%d of %d</text>`+"\n", kind, middle,
		y+32, found, all)
	fmt.Fprintf(out, `<text class="bw-name" x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", middle, baseline+22,
		l.Level)
	fmt.Fprintf(out, `<text class="bw-text" x="%d" y="%d" text-anchor="middle">level %d</text>`+"\n", middle,
		baseline+41, l.Level)
	if l.Level == c.Claimed {
		fmt.Fprintf(out, `<path class="bw-pole" d="M%d %dv-30"/><path class="bw-cloth" d="M%d %dl20 7l-20 7z"/>`+"\n",
			middle-24, y, middle-24, y-30)
		fmt.Fprintf(out, `<text class="bw-flag" x="%d" y="%d">claimed</text>`+"\n", middle, y-18)
	}
}

// formatTitle returns the display name and the version, or the name of the bundle.
func formatTitle(c Card) string {
	if c.DisplayName == "" {
		return c.Name
	}
	return c.DisplayName + " " + c.Version
}

// escapeXML escapes a text for XML.
func escapeXML(text string) string {
	var out bytes.Buffer
	if err := xml.EscapeText(&out, []byte(text)); err != nil {
		return "" // writing to a buffer returns no error
	}
	return out.String()
}
