// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"strings"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/engines/olmv0/try"
	"github.com/bellwether-dev/bellwether/phrase"
)

// showTrial prints what a trial found. Its steps were printed as they were done.
func (a *app) showTrial(f *bundleTry, r *try.Report) error {
	if !f.out.Table() {
		return f.out.Value(a.Streams.Out, r)
	}
	a.Say("%s", trialText(r, a.Style()))
	if r.Kept {
		a.Say("Everything is left on the cluster. To remove it, run: %s bundle try --remove %s\n", a.Self, r.Namespace)
	}
	return nil
}

// exampleTone is how the state of an example is shown.
var exampleTone = map[try.State]term.Tone{try.Ready: term.Good, try.NotReady: term.Bad, try.Refused: term.Bad,
	try.NoStatus: term.Dim}

// trialText is a report for a terminal, without its steps.
func trialText(r *try.Report, style term.Style) string {
	var out strings.Builder
	list := func(title string, lines []string) {
		if len(lines) == 0 {
			return
		}
		fmt.Fprintf(&out, "\n%s\n", style.Paint(term.Strong, title))
		for _, l := range lines {
			fmt.Fprintf(&out, "  %s\n", l)
		}
	}
	var examples []string
	for _, e := range r.Examples {
		line := fmt.Sprintf("%s (%s)", e, e.Of)
		if e.State != "" {
			line += "  " + style.Paint(exampleTone[e.State], string(e.State))
		}
		if e.Message != "" {
			line += "  " + e.Message
		}
		examples = append(examples, line)
	}
	list("Examples", examples)
	list("Problems", r.Problems)
	list("Notes", r.Notes)
	if verdict := verdictOf(r); verdict != "" {
		fmt.Fprintf(&out, "\n%s\n", verdict)
	}
	return out.String()
}

// verdictOf is the report in a sentence; empty if the trial did not come to an end.
func verdictOf(r *try.Report) string {
	what := r.Bundle
	if r.From != "" {
		what = "The upgrade from " + r.From + " to " + r.Bundle
	}
	switch {
	case !r.Passed():
		return fmt.Sprintf("%s did not pass: %s.", what, phrase.Count(len(r.Problems), "problem"))
	case !r.Complete:
		return ""
	case r.Pods.Stub():
		return what + " passed. Pods are stubs: that the operator works is not shown."
	}
	return what + " passed."
}
