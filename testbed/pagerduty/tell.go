// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package pagerduty

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// PrintIncidents writes what happened in each incident, one after the other, for a person: its last summary, when it
// was triggered, updated and resolved, these details in this order, and its links. A detail that the incident does not
// have, or that says none, is left out. Texts are whole.
func (l Ledger) PrintIncidents(w io.Writer, details ...string) error {
	var out bytes.Buffer
	for n, i := range l.Incidents {
		if n > 0 {
			fmt.Fprintln(&out)
		}
		fmt.Fprintf(&out, "INCIDENT %d OF %d, %s, service %s\n  %s\n\n", n+1, len(l.Incidents), i.State,
			line(i.Service, textWidth), line(i.Last.Payload.Summary, urlWidth))
		i.printTimeline(&out)
		i.printDetails(&out, details)
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("print incidents: %w", err)
	}
	return nil
}

// names are those of events for people who know PagerDuty.
var names = map[Kind]string{WasOpened: "triggered"}

func (i Incident) printTimeline(out io.Writer) {
	tabs := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var opened time.Time
	for _, e := range i.Timeline {
		name, ok := names[e.Kind]
		if !ok {
			name = string(e.Kind)
		}
		var says []string
		if e.Severity != "" && e.Kind == WasOpened {
			says = append(says, "severity "+line(e.Severity, textWidth))
		}
		if len(e.Changed) > 0 {
			says = append(says, "changed: "+strings.Join(e.Changed, ", "))
		}
		switch e.Kind {
		case WasOpened:
			opened = e.At
		case WasResolved:
			says = append(says, "after "+e.At.Sub(opened).Round(time.Second).String())
		default:
		}
		fmt.Fprintf(tabs, "  %s\t%s\t%s\n", e.At.Format(clock), name, strings.Join(says, "; "))
	}
	_ = tabs.Flush() // a buffer never fails
}

func (i Incident) printDetails(out io.Writer, details []string) {
	fmt.Fprintln(out)
	tabs := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, name := range details {
		value, ok := i.Last.Payload.CustomDetails[name]
		if text := line(plain(value), urlWidth); ok && text != "" && text != "none" {
			fmt.Fprintf(tabs, "  %s\t%s\n", name, text)
		}
	}
	for _, link := range i.Last.Links {
		fmt.Fprintf(tabs, "  link: %s\t%s\n", line(link.Text, textWidth), line(link.Href, urlWidth))
	}
	_ = tabs.Flush()
}
