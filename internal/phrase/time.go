// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package phrase

import (
	"strings"
	"time"
)

// timeLayout is RFC 3339 in UTC, in whole seconds.
const timeLayout = "2006-01-02T15:04:05Z"

// Time formats a time for a message, in UTC: "2026-11-21T12:00:00Z".
func Time(at time.Time) string { return at.UTC().Format(timeLayout) }

// Times replaces the times in a message that Time formatted by the result of write, for a reader in another time zone.
// It must be used for prose only: times in a command or an expression must not change.
func Times(message string, write func(time.Time) string) string {
	var out strings.Builder
	for word := range strings.SplitAfterSeq(message, " ") {
		written := strings.Trim(word, " ()[]\"',;:.")
		if at, err := time.Parse(timeLayout, written); err == nil {
			word = strings.Replace(word, written, write(at), 1)
		}
		out.WriteString(word)
	}
	return out.String()
}
