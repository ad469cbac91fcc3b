// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package pagerduty

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// The published limits. PagerDuty does not say which kilobytes it means; the smaller ones are those that Alertmanager
// keeps to.
const (
	maxEventBytes  = 512_000
	maxDedupKey    = 255
	maxSummary     = 1024
	routingKeySize = 32
)

// Actions of an alert event.
const (
	actionTrigger     = "trigger"
	actionAcknowledge = "acknowledge"
	actionResolve     = "resolve"
)

var (
	alphanumeric = regexp.MustCompile(`^[0-9a-zA-Z]*$`)
	// timestamps are forms of ISO 8601: that of RFC 3339, and that of PagerDuty's examples. The time zone is required,
	// since a time without one means another moment to each reader. Each takes fractions of a second.
	timestamps = []string{time.RFC3339, "2006-01-02T15:04:05Z0700"}

	errNoObject = errors.New("no single JSON object")
)

// check returns what is wrong with the value of a field, in PagerDuty's words where they are known. It never quotes the
// value, which could be a routing key.
type check func(path string, value any) []string

type field struct {
	name     string
	required bool
	check    check
}

// The two kinds of events, by PagerDuty's developer documentation ("Send an Alert Event", "Send a Change Event") and
// the schema of the Events API v2 in OpenAPI. The documentation lists the fields completely, so that others are refused
// here, which PagerDuty itself does not promise.
var (
	links = list(object(
		field{name: "href", required: true, check: address("http", "https")},
		field{name: "text", check: text(0)},
	))
	images = list(object(
		field{name: "src", required: true, check: address("https")},
		field{name: "href", check: address("http", "https")},
		field{name: "alt", check: text(0)},
	))
	alertEvent = object(
		field{name: "routing_key", required: true, check: routingKey},
		field{name: "event_action", required: true, check: oneOf(actionTrigger, actionAcknowledge, actionResolve)},
		field{name: "dedup_key", check: text(maxDedupKey)},
		field{name: "client", check: text(0)},
		field{name: "client_url", check: address("http", "https")},
		field{name: "links", check: links},
		field{name: "images", check: images},
		field{name: "payload", check: object(
			field{name: "summary", required: true, check: text(maxSummary)},
			field{name: "source", required: true, check: text(0)},
			field{name: "severity", required: true, check: oneOf("critical", "warning", "error", "info")},
			field{name: "timestamp", check: timestamp},
			field{name: "component", check: text(0)},
			field{name: "group", check: text(0)},
			field{name: "class", check: text(0)},
			field{name: "custom_details", check: anyObject},
		)},
	)
	changeEvent = object(
		field{name: "routing_key", required: true, check: routingKey},
		field{name: "links", check: links},
		field{name: "payload", required: true, check: object(
			field{name: "summary", required: true, check: text(maxSummary)},
			field{name: "source", check: text(0)},
			field{name: "timestamp", check: timestamp},
			field{name: "custom_details", check: anyObject},
		)},
	)
)

// checkAlert adds to the schema what depends on the action: a trigger has a payload, and the others say which alert
// they mean.
func checkAlert(path string, event any) []string {
	problems := alertEvent(path, event)
	fields, _ := event.(map[string]any)
	switch fields["event_action"] {
	case actionTrigger:
		if _, ok := fields["payload"]; !ok {
			problems = append(problems, missing("payload"))
		}
	case actionAcknowledge, actionResolve:
		if key, ok := fields["dedup_key"]; !ok || blank(key) {
			problems = append(problems, missing("dedup_key"))
		}
	}
	return problems
}

// decode returns the one JSON object that a body is.
func decode(body []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); fields == nil || !errors.Is(err, io.EOF) {
		return nil, errNoObject
	}
	return fields, nil
}

func missing(path string) string { return fmt.Sprintf("'%s' is missing or blank", path) }

func blank(value any) bool {
	s, ok := value.(string)
	return ok && strings.TrimSpace(s) == ""
}

func object(fields ...field) check {
	return func(path string, value any) []string {
		values, ok := value.(map[string]any)
		if !ok {
			return anyObject(path, value)
		}
		prefix := path
		if prefix != "" {
			prefix += "."
		}
		unknown := maps.Clone(values)
		var problems []string
		for _, f := range fields {
			v, ok := values[f.name]
			delete(unknown, f.name)
			switch {
			case f.required && (!ok || blank(v)):
				problems = append(problems, missing(prefix+f.name))
			case ok:
				problems = append(problems, f.check(prefix+f.name, v)...)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(unknown)) {
			problems = append(problems, fmt.Sprintf("'%s%s' is not a known field", prefix, name))
		}
		return problems
	}
}

func list(each check) check {
	return func(path string, value any) []string {
		values, ok := value.([]any)
		if !ok {
			return []string{fmt.Sprintf("'%s' must be an array", path)}
		}
		var problems []string
		for i, v := range values {
			problems = append(problems, each(fmt.Sprintf("%s[%d]", path, i), v)...)
		}
		return problems
	}
}

func anyObject(path string, value any) []string {
	if _, ok := value.(map[string]any); ok {
		return nil
	}
	return []string{fmt.Sprintf("'%s' must be an object", path)}
}

// text allows strings of up to limit characters; 0: of any length.
func text(limit int) check {
	return func(path string, value any) []string {
		s, ok := value.(string)
		switch {
		case !ok:
			return []string{fmt.Sprintf("'%s' must be a string", path)}
		case limit > 0 && utf8.RuneCountInString(s) > limit:
			return []string{fmt.Sprintf("'%s' is too long (maximum is %d characters)", path, limit)}
		}
		return nil
	}
}

func oneOf(values ...string) check {
	return func(path string, value any) []string {
		if s, ok := value.(string); ok && slices.Contains(values, s) {
			return nil
		}
		last := len(values) - 1
		return []string{fmt.Sprintf("'%s' is invalid (must be one of the following: '%s' or '%s')", path,
			strings.Join(values[:last], "', '"), values[last])}
	}
}

func routingKey(path string, value any) []string {
	s, ok := value.(string)
	if !ok {
		return text(0)(path, value)
	}
	var problems []string
	if utf8.RuneCountInString(s) != routingKeySize {
		problems = append(problems, fmt.Sprintf("Length of '%s' is incorrect (should be %d characters)", path,
			routingKeySize))
	}
	if !alphanumeric.MatchString(s) {
		problems = append(problems, fmt.Sprintf("'%s' cannot contain non-alphanumeric characters.", path))
	}
	return problems
}

// address allows absolute URLs, and blank ones, which clients send for a link that they do not have.
func address(schemes ...string) check {
	return func(path string, value any) []string {
		s, ok := value.(string)
		if !ok {
			return text(0)(path, value)
		}
		if blank(s) {
			return nil
		}
		u, err := url.Parse(s)
		if err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme) {
			return []string{fmt.Sprintf("'%s' must be a URL (%s)", path, strings.Join(schemes, " or "))}
		}
		return nil
	}
}

func timestamp(path string, value any) []string {
	s, ok := value.(string)
	if !ok {
		return text(0)(path, value)
	}
	for _, layout := range timestamps {
		if _, err := time.Parse(layout, s); err == nil {
			return nil
		}
	}
	return []string{fmt.Sprintf("'%s' is not a time in ISO 8601 with a time zone", path)}
}
