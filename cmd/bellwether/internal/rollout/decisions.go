// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/phrase"
)

// maxDecisions is how many decisions are shown; -o yaml has all.
const maxDecisions = 10

// WriteDecisions shows the newest decisions about an operator, or about one of its
// rollouts where that is named.
func WriteDecisions(out *strings.Builder, o *v1alpha1.ManagedOperator, rollout string, now time.Time, s term.Style) {
	if o == nil || o.Status.Decisions == nil {
		return
	}
	t := &term.Table{Header: []string{"DECIDED", "WHAT", "ROLLOUT", "ABOUT"}, Wrap: true}
	if rollout != "" {
		t.Header = []string{"DECIDED", "WHAT", "ABOUT"}
	}
	more := int(o.Status.Decisions.Dropped)
	if rollout != "" {
		more = 0 // nobody knows which rollouts those were about
	}
	for _, d := range o.Status.Decisions.Entries {
		switch {
		case rollout != "" && d.Rollout != rollout:
			continue
		case len(t.Rows) == maxDecisions:
			more++
			continue
		}
		row := []term.Cell{{Text: term.Clock(now, &d.At)}, term.Strong.Cell(string(d.What))}
		if rollout == "" {
			row = append(row, term.Cell{Text: term.OrDash(d.Rollout)})
		}
		t.Add(append(row, term.Cell{Text: aboutDecision(d)})...)
	}
	if len(t.Rows) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s\n%s", s.Paint(term.Strong, "decisions"), t.Render(s))
	if more > 0 {
		out.WriteString(s.Paint(term.Dim, fmt.Sprintf("and %d older ones\n", more)))
	}
}

// aboutDecision says what was decided about, who decided, and why: "gate sre of wave rest, by anna: looks good". Where
// only the reason is known, it is that.
func aboutDecision(d v1alpha1.Decision) string {
	var parts []string
	if d.On != "" {
		parts = append(parts, d.On)
	}
	if d.By != "" {
		parts = append(parts, "by "+d.By)
	}
	reason := phrase.OneLine(d.Reason)
	if len(parts) == 0 {
		return term.OrDash(reason)
	}
	return strings.Join(parts, ", ") + colon(reason)
}
