// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package pagerduty

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
)

const (
	clock     = "15:04:05"
	textWidth = 100 // of summaries and details, in characters
	keyWidth  = 16
	urlWidth  = 500
)

// Print writes the ledger as tables for a person. Times are in the time zone of the server's clock; long texts are cut.
func (l Ledger) Print(w io.Writer) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "Pages: %d, incidents: %d, change events: %d (duplicates: %d), anomalies: %d\n", l.Pages(),
		len(l.Incidents), len(l.Changes), len(l.Duplicates()), len(l.Anomalies))
	fmt.Fprintf(&out, "Requests: %d (same bytes as before: %d, key rejected: %d, "+
		"server unavailable: %d, answered late: %d)\n", l.Attempts.Total, l.Repeated,
		l.Attempts.Rejected, l.Attempts.Unavailable, l.Attempts.Delayed)
	l.printIncidents(&out)
	l.printTimeline(&out)
	l.printDetails(&out)
	l.printChanges(&out)
	l.printAnomalies(&out)
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("print ledger: %w", err)
	}
	return nil
}

// table writes rows below a heading; nothing if there are none.
func table(out io.Writer, heading []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintln(out)
	tabs := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{heading}, rows...) {
		for i, cell := range row {
			if cell == "" {
				row[i] = "-"
			}
		}
		fmt.Fprintln(tabs, strings.Join(row, "\t"))
	}
	_ = tabs.Flush() // a buffer never fails
}

func (l Ledger) printIncidents(out io.Writer) {
	var rows [][]string
	for n, i := range l.Incidents {
		rows = append(rows, []string{
			strconv.Itoa(n + 1), line(i.Service, textWidth), line(i.DedupKey, keyWidth), string(i.State),
			strconv.Itoa(i.Opened), strconv.Itoa(i.Updates), strconv.Itoa(i.Acknowledged), strconv.Itoa(i.Resolved),
			strings.Join(i.Severities(), ", "), line(i.Last.Payload.Summary, textWidth),
		})
	}
	table(out, []string{"INCIDENT", "SERVICE", "KEY", "STATE", "PAGES", "UPDATES", "ACKNOWLEDGED", "RESOLVED",
		"SEVERITY", "LAST SUMMARY"}, rows)
}

// printTimeline writes what happened to all incidents, in the order of time.
func (l Ledger) printTimeline(out io.Writer) {
	type numbered struct {
		Entry
		incident int
	}
	var entries []numbered
	for n, i := range l.Incidents {
		for _, e := range i.Timeline {
			entries = append(entries, numbered{Entry: e, incident: n + 1})
		}
	}
	slices.SortStableFunc(entries, func(a, b numbered) int { return a.At.Compare(b.At) })
	var rows [][]string
	for _, e := range entries {
		changes := strings.Join(e.Changed, ", ")
		if e.Repeated {
			changes = strings.TrimPrefix(changes+", repeated bytes", ", ")
		}
		rows = append(rows, []string{
			e.At.Format(clock), strconv.Itoa(e.incident), string(e.Kind), e.Severity, changes,
			line(e.Summary, textWidth),
		})
	}
	table(out, []string{"TIME", "INCIDENT", "WAS", "SEVERITY", "CHANGED", "SUMMARY"}, rows)
}

// printDetails writes the links and the custom details that came last.
func (l Ledger) printDetails(out io.Writer) {
	var rows [][]string
	for n, i := range l.Incidents {
		number := strconv.Itoa(n + 1)
		for _, link := range i.Last.Links {
			rows = append(rows, []string{number, "link: " + line(link.Text, textWidth), line(link.Href, urlWidth)})
		}
		details := i.Last.Payload.CustomDetails
		for _, name := range slices.Sorted(maps.Keys(details)) {
			rows = append(rows, []string{number, line(name, textWidth), line(plain(details[name]), textWidth)})
		}
	}
	table(out, []string{"INCIDENT", "LAST DETAIL", "VALUE"}, rows)
}

func (l Ledger) printChanges(out io.Writer) {
	var rows [][]string
	for _, c := range l.Changes {
		duplicate := "no"
		if c.Duplicate {
			duplicate = "yes"
		}
		rows = append(rows, []string{
			c.At.Format(clock), line(c.Service, textWidth), duplicate, line(c.Payload.Source, textWidth),
			line(c.Payload.Summary, textWidth),
		})
	}
	table(out, []string{"TIME", "SERVICE", "DUPLICATE", "SOURCE", "CHANGE"}, rows)
}

func (l Ledger) printAnomalies(out io.Writer) {
	var rows [][]string
	for _, a := range l.Anomalies {
		rows = append(rows, []string{
			a.At.Format(clock), line(a.Service, textWidth), line(a.DedupKey, keyWidth), strconv.Itoa(a.Status),
			line(strings.Join(a.Reasons, "; "), textWidth),
		})
	}
	table(out, []string{"TIME", "SERVICE", "KEY", "STATUS", "ANOMALY"}, rows)
}

// line makes one line of a text that somebody sent, without control characters, and cuts it.
func line(text string, width int) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return text
}

// plain is a string as it is, and anything else as JSON.
func plain(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	content, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(content)
}
