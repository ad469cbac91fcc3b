// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package windows

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teambition/rrule-go"
)

// Limits that keep the work for a rule small, whatever it says.
const (
	// maxOccurrences of a rule are looked at, from its start on: 270 years of days.
	maxOccurrences = 100_000
	// maxAhead is how many occurrences after now are kept.
	maxAhead = 64
	// maxInterval and maxCount bound INTERVAL and COUNT.
	maxInterval = 1000
	maxCount    = 100_000
	// zones is how far the wall clock of a time zone may be from UTC, and more.
	zones = 24 * time.Hour
)

// localTime is how start is written, and untilTime how UNTIL is: wall-clock times,
// which this package keeps as if they were in UTC.
const (
	localTime = "2006-01-02T15:04:05"
	untilTime = "20060102T150405"
)

// partsOf are the parts that a rule of each frequency may have beside INTERVAL,
// COUNT, UNTIL and WKST. With these a rule that never matches is found quickly: the
// library looks for the next occurrence until the year 9999, one period after the
// other.
var partsOf = map[string][]string{
	"DAILY":   {"BYDAY", "BYMONTH"},
	"WEEKLY":  {"BYDAY", "BYMONTH"},
	"MONTHLY": {"BYDAY", "BYMONTH", "BYMONTHDAY", "BYSETPOS"},
	"YEARLY":  {"BYDAY", "BYMONTH", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYSETPOS"},
}

// parseRule returns the options of a recurrence that begins at a wall-clock time.
func parseRule(text string, start time.Time) (rrule.ROption, error) {
	parts, err := splitRule(text)
	if err != nil {
		return rrule.ROption{}, err
	}
	if until := parts["UNTIL"]; until != "" {
		if _, err := time.Parse(untilTime, until); err != nil {
			return rrule.ROption{}, fmt.Errorf("UNTIL=%s must be a date and time without a time zone, such as "+
				"20261231T235959", until)
		}
		text = strings.Replace(text, "UNTIL="+until, "UNTIL="+until+"Z", 1)
	}
	option, err := rrule.StrToROption(text)
	if err != nil {
		return rrule.ROption{}, err
	}
	switch {
	case parts["INTERVAL"] != "" && (option.Interval < 1 || option.Interval > maxInterval):
		return rrule.ROption{}, fmt.Errorf("INTERVAL must be between 1 and %d", maxInterval)
	case parts["COUNT"] != "" && (option.Count < 1 || option.Count > maxCount):
		return rrule.ROption{}, fmt.Errorf("COUNT must be between 1 and %d", maxCount)
	case option.Count > 0 && !option.Until.IsZero():
		return rrule.ROption{}, errors.New("COUNT and UNTIL exclude each other")
	case option.Freq == rrule.DAILY && option.Interval > 1 && parts["BYDAY"]+parts["BYMONTH"] != "":
		return rrule.ROption{}, errors.New("FREQ=DAILY with an INTERVAL above 1 cannot have BYDAY or BYMONTH")
	case option.Freq > rrule.MONTHLY && strings.ContainsAny(parts["BYDAY"], "0123456789"):
		return rrule.ROption{}, errors.New("BYDAY can have numbers only with FREQ=MONTHLY and FREQ=YEARLY")
	}
	option.Dtstart = start
	return *option, nil
}

// splitRule returns the parts of a rule, each of which is allowed and there once.
func splitRule(text string) (map[string]string, error) {
	parts := map[string]string{}
	allowed := []string{"FREQ"}
	for i, part := range strings.Split(text, ";") {
		key, value, _ := strings.Cut(part, "=")
		if i == 0 {
			frequency, known := partsOf[value]
			if key != "FREQ" || !known {
				return nil, fmt.Errorf("%q: the rule must begin with FREQ=DAILY, WEEKLY, MONTHLY or YEARLY", text)
			}
			allowed = slices.Concat(allowed, []string{"INTERVAL", "COUNT", "UNTIL", "WKST"}, frequency)
		}
		if !slices.Contains(allowed, key) {
			return nil, fmt.Errorf("%s cannot be used with FREQ=%s", key, parts["FREQ"])
		}
		if _, twice := parts[key]; twice {
			return nil, fmt.Errorf("%s is there twice", key)
		}
		parts[key] = value
	}
	return parts, nil
}

// occurrences returns the wall-clock times at which a window begins that may
// matter for what is true at now: those of which the end may still be to come in
// some time zone, and the next ones. There may be more of them.
func occurrences(start time.Time, recurrence string, duration time.Duration, now time.Time) (kept []time.Time,
	more bool, err error) {
	if recurrence == "" {
		return []time.Time{start}, false, nil
	}
	option, err := parseRule(recurrence, start)
	if err != nil {
		return nil, false, err
	}
	rule, err := rrule.NewRRule(option)
	if err != nil {
		return nil, false, err
	}
	earliest, latest := now.Add(-duration-zones), now.Add(zones)
	ahead := 0
	next := rule.Iterator()
	for range maxOccurrences {
		at, ok := next()
		if !ok || ahead == maxAhead {
			return kept, ok, nil
		}
		if at.After(earliest) {
			kept = append(kept, at)
		}
		if at.After(latest) {
			ahead++
		}
	}
	return nil, false, fmt.Errorf("the rule has more than %d occurrences until now: choose a later start",
		maxOccurrences)
}

// instant returns when the clocks of a time zone show a wall-clock time, by the
// rules of RFC 5545: the first time, if they show it twice; and if they never
// show it, because they are put forward, the time by the offset before that.
func instant(wall time.Time, zone *time.Location) time.Time {
	before := wall.Add(-offset(wall.Add(-zones), zone))
	after := wall.Add(-offset(wall.Add(zones), zone))
	shows := func(t time.Time) bool { return t.Add(offset(t, zone)).Equal(wall) }
	switch {
	case shows(before) && shows(after) && after.Before(before):
		return after
	case shows(before) || !shows(after):
		return before
	default:
		return after
	}
}

func offset(t time.Time, zone *time.Location) time.Duration {
	_, seconds := t.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}
