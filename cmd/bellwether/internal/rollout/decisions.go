// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// maxDecisions is the number of decisions that are shown. The output of -o yaml has all decisions.
const maxDecisions = 10

// WriteDecisions writes a table of the newest decisions about an operator to out. If rollout is not empty, the table
// has only the decisions about this rollout. It writes nothing if o is nil or there is no decision.
func WriteDecisions(out *strings.Builder, o *v1alpha1.ManagedOperator, rollout string, now time.Time, s term.Style) {
	if o == nil || o.Status.Decisions == nil {
		return
	}
	t := &term.Table{Header: []string{"DECIDED", "WHAT", "ROLLOUT", "ABOUT"}, Wrap: true}
	if rollout != "" {
		t.Header = []string{"DECIDED", "WHAT", "ABOUT"}
	}
	more := int(o.Status.Decisions.Dropped) // the number of decisions that are not shown
	if rollout != "" {
		more = 0 // the rollouts of dropped decisions are not recorded
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
			row = append(row, term.Cell{Text: term.DashIfEmpty(d.Rollout)})
		}
		t.Add(append(row, term.Cell{Text: describeDecision(d)})...)
	}
	if len(t.Rows) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s\n%s", s.Paint(term.Strong, "decisions"), t.Render(s))
	if more > 0 {
		out.WriteString(s.Paint(term.Dim, fmt.Sprintf("and %d older ones\n", more)))
	}
}

// describeDecision returns the subject of a decision, the person who decided, and the reason: "gate sre of wave rest,
// by anna: looks good". Without a subject and a person, it returns only the reason.
func describeDecision(d v1alpha1.Decision) string {
	var parts []string
	if d.On != "" {
		parts = append(parts, d.On)
	}
	if d.By != "" {
		parts = append(parts, "by "+d.By)
	}
	reason := phrase.OneLine(d.Reason)
	if len(parts) == 0 {
		return term.DashIfEmpty(reason)
	}
	return strings.Join(parts, ", ") + prefixColon(reason)
}
