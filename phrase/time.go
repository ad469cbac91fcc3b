// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package phrase

import (
	"strings"
	"time"
)

// layout is RFC 3339 in UTC, in whole seconds.
const layout = "2006-01-02T15:04:05Z"

// Time writes a time for a message, in UTC: "2026-11-21T12:00:00Z".
func Time(at time.Time) string { return at.UTC().Format(layout) }

// Times replaces the times in a message, as Time writes them, by what write returns: for a reader with a time zone of
// their own. A message is prose: a command or an expression may have times too, which have to stay as they are.
func Times(message string, write func(time.Time) string) string {
	var out strings.Builder
	for word := range strings.SplitAfterSeq(message, " ") {
		written := strings.Trim(word, " ()[]\"',;:.")
		if at, err := time.Parse(layout, written); err == nil {
			word = strings.Replace(word, written, write(at), 1)
		}
		out.WriteString(word)
	}
	return out.String()
}
