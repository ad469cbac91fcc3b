// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// QueryPath is the path to which queries are sent by POST: a Request. The answer is an Answer, or a Failure with a
// status of HTTP that is no success.
const QueryPath = "/v1/query"

// ErrRefused is wrapped by errors about a query that cannot be answered as it is. Their texts are for its author.
var ErrRefused = errors.New("the query cannot be answered")

// Request is a query as it is sent: a statement or the name of a question, with arguments.
type Request struct {
	SQL      string `json:"sql,omitempty"`
	Question string `json:"question,omitempty"`
	// Arguments are the values of named parameters.
	Arguments map[string]string `json:"arguments,omitempty"`
	// At is the time that the question is about. Nil: now.
	At *time.Time `json:"at,omitempty"`
}

// Failure is why a query was not answered.
type Failure struct {
	Error string `json:"error"`
}

// Query is a question about the inventory.
type Query struct {
	// SQL is one SELECT statement on the views. Of several statements, the last one answers.
	SQL string
	// Arguments are the values of the statement's named parameters, as in :operator. The parameter :at always has the
	// time that the question is about.
	Arguments map[string]string
	// At is the time that the question is about.
	At time.Time
	// Visible is what the user may see.
	Visible Visible
}

// Answer has the rows of a query.
type Answer struct {
	Columns []string `json:"columns"`
	// Rows have a value for each column: nil, a string, a whole or a floating-point number.
	Rows [][]any `json:"rows"`
	// Truncated is true if there are more rows than an answer may have.
	Truncated bool `json:"truncated,omitempty"`
	// At is the time that the question is about.
	At time.Time `json:"at"`
	// Observed is until when each source was observed by that time.
	Observed map[Source]time.Time `json:"observed"`
}

// timeLayouts are the formats of times in queries, besides durations.
var timeLayouts = []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04",
	"2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly}

// ErrTime is wrapped by errors about a text that is no time.
var ErrTime = errors.New("use a time such as 2026-11-24T10:00Z or 2026-11-24, or a duration such as -2h or -7d")

// ParseTime returns the time of a text. Times without a zone are in UTC. A duration such as -2h, -7d or -4w is relative
// to now.
func ParseTime(text string, now time.Time) (time.Time, error) {
	text = strings.TrimSpace(text)
	if number, isNegative := strings.CutPrefix(text, "-"); isNegative {
		for unit, days := range map[string]int{"d": 1, "w": 7} {
			digits, hasUnit := strings.CutSuffix(number, unit)
			if n, err := strconv.Atoi(digits); err == nil && hasUnit && n >= 0 && n < maxDays {
				return now.AddDate(0, 0, -n*days), nil
			}
		}
		if d, err := time.ParseDuration(text); err == nil {
			return now.Add(d), nil
		}
	}
	for _, layout := range timeLayouts {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("the time %q cannot be read: %w", text, ErrTime)
}

// maxDays is a hundred years.
const maxDays = 36_500
