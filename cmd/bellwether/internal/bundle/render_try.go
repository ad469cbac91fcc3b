// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"strings"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/engines/olmv0/try"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// showTrial prints the report of a trial. The steps are already printed while the trial runs.
func (a *app) showTrial(f *tryFlags, r *try.Report) error {
	if !f.out.Table() {
		return f.out.Value(a.Streams.Out, r)
	}
	a.Say("%s", formatTrial(r, a.Style()))
	if r.Kept {
		a.Say("Everything is left on the cluster. To remove it, run: %s bundle try --remove %s\n", a.Self, r.Namespace)
	}
	return nil
}

// exampleTones are the tones for the states of an example.
var exampleTones = map[try.State]term.Tone{try.Ready: term.Good, try.NotReady: term.Bad, try.Refused: term.Bad,
	try.NoStatus: term.Dim}

// formatTrial returns the report of a trial for a terminal, without its steps.
func formatTrial(r *try.Report, style term.Style) string {
	var out strings.Builder
	writeList := func(title string, lines []string) {
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
			line += "  " + style.Paint(exampleTones[e.State], string(e.State))
		}
		if e.Message != "" {
			line += "  " + e.Message
		}
		examples = append(examples, line)
	}
	writeList("Examples", examples)
	writeList("Problems", r.Problems)
	writeList("Notes", r.Notes)
	if verdict := summarizeTrial(r); verdict != "" {
		fmt.Fprintf(&out, "\n%s\n", verdict)
	}
	return out.String()
}

// summarizeTrial returns the result of a trial in one sentence; empty if the trial was not completed.
func summarizeTrial(r *try.Report) string {
	subject := r.Bundle
	if r.From != "" {
		subject = "The upgrade from " + r.From + " to " + r.Bundle
	}
	switch {
	case !r.Passed():
		return fmt.Sprintf("%s did not pass: %s.", subject, phrase.Count(len(r.Problems), "problem"))
	case !r.Complete:
		return ""
	case r.Pods.IsStub():
		return subject + " passed. Pods are stubs: that the operator works is not shown."
	}
	return subject + " passed."
}
