// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teambition/rrule-go"
)

// Limits for the work that any recurrence rule can cause.
const (
	// maxOccurrences is how many occurrences of a rule are examined, from its start: 270 years of days.
	maxOccurrences = 100_000
	// maxOccurrencesAhead is how many occurrences after now are returned.
	maxOccurrencesAhead = 64
	// maxRuleInterval and maxCount are the limits of INTERVAL and COUNT.
	maxRuleInterval = 1000
	maxRuleCount    = 100_000
	// maxZoneOffset is more than the offset of any time zone from UTC.
	maxZoneOffset = 24 * time.Hour
)

// localTime is the format of start, and untilTime is the format of UNTIL. The times are wall-clock times, which
// windows store as times in UTC.
const (
	localTime = "2006-01-02T15:04:05"
	untilTime = "20060102T150405"
)

// allowedRuleParts are the parts that a rule of each frequency can have in addition to INTERVAL, COUNT, UNTIL and WKST.
// With these parts, a rule that never matches is found quickly: the library searches the next occurrence until the
// year 9999, one period after the other.
var allowedRuleParts = map[string][]string{
	"DAILY":   {"BYDAY", "BYMONTH"},
	"WEEKLY":  {"BYDAY", "BYMONTH"},
	"MONTHLY": {"BYDAY", "BYMONTH", "BYMONTHDAY", "BYSETPOS"},
	"YEARLY":  {"BYDAY", "BYMONTH", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYSETPOS"},
}

// parseRecurrence returns the options of a recurrence that begins at a wall-clock time. It is an error if a part is not
// allowed or is outside of its limits.
func parseRecurrence(text string, start time.Time) (rrule.ROption, error) {
	parts, err := splitRecurrence(text)
	if err != nil {
		return rrule.ROption{}, err
	}
	if until := parts["UNTIL"]; until != "" {
		if _, err := time.Parse(untilTime, until); err != nil {
			return rrule.ROption{}, fmt.Errorf("UNTIL=%s must be a date and time without a time zone, such as "+
				"20261231T235959", until)
		}
		// The library needs a time zone. Wall-clock times are stored as times in UTC.
		text = strings.Replace(text, "UNTIL="+until, "UNTIL="+until+"Z", 1)
	}
	option, err := rrule.StrToROption(text)
	if err != nil {
		return rrule.ROption{}, err
	}
	switch {
	case parts["INTERVAL"] != "" && (option.Interval < 1 || option.Interval > maxRuleInterval):
		return rrule.ROption{}, fmt.Errorf("INTERVAL must be between 1 and %d", maxRuleInterval)
	case parts["COUNT"] != "" && (option.Count < 1 || option.Count > maxRuleCount):
		return rrule.ROption{}, fmt.Errorf("COUNT must be between 1 and %d", maxRuleCount)
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

// splitRecurrence returns the parts of a rule. It is an error if a part is not allowed or occurs twice.
func splitRecurrence(text string) (map[string]string, error) {
	parts := map[string]string{}
	allowed := []string{"FREQ"}
	for i, part := range strings.Split(text, ";") {
		key, value, _ := strings.Cut(part, "=")
		if i == 0 {
			frequency, known := allowedRuleParts[value]
			if key != "FREQ" || !known {
				return nil, fmt.Errorf("%q: the rule must begin with FREQ=DAILY, WEEKLY, MONTHLY or YEARLY", text)
			}
			allowed = slices.Concat(allowed, []string{"INTERVAL", "COUNT", "UNTIL", "WKST"}, frequency)
		}
		if !slices.Contains(allowed, key) {
			return nil, fmt.Errorf("%s cannot be used with FREQ=%s", key, parts["FREQ"])
		}
		if _, isRepeated := parts[key]; isRepeated {
			return nil, fmt.Errorf("%s is there twice", key)
		}
		parts[key] = value
	}
	return parts, nil
}

// listOccurrences returns the wall-clock times at which a window begins: the times whose window might not have ended in
// some time zone, and the next maxAhead times. hasMore is true if more times follow. Without a recurrence, the result
// is start.
func listOccurrences(start time.Time, recurrence string, duration time.Duration, now time.Time) (times []time.Time,
	hasMore bool, err error) {
	if recurrence == "" {
		return []time.Time{start}, false, nil
	}
	option, err := parseRecurrence(recurrence, start)
	if err != nil {
		return nil, false, err
	}
	rule, err := rrule.NewRRule(option)
	if err != nil {
		return nil, false, err
	}
	// Before earliest, a window has ended in every time zone. After latest, it has begun in none.
	earliest, latest := now.Add(-duration-maxZoneOffset), now.Add(maxZoneOffset)
	ahead := 0
	next := rule.Iterator()
	for range maxOccurrences {
		at, ok := next()
		if !ok || ahead == maxOccurrencesAhead {
			return times, ok, nil
		}
		if at.After(earliest) {
			times = append(times, at)
		}
		if at.After(latest) {
			ahead++
		}
	}
	return nil, false, fmt.Errorf("the rule has more than %d occurrences until now: choose a later start",
		maxOccurrences)
}

// toInstant returns when the clocks of a time zone show a wall-clock time, by the rules of RFC 5545: the first time if
// they show it twice. If they never show it because they are put forward, the offset before the change applies.
func toInstant(wall time.Time, zone *time.Location) time.Time {
	// early has the offset of the day before wall, and late has the offset of the day after wall.
	early := wall.Add(-computeOffset(wall.Add(-maxZoneOffset), zone))
	late := wall.Add(-computeOffset(wall.Add(maxZoneOffset), zone))
	isShown := func(t time.Time) bool { return t.Add(computeOffset(t, zone)).Equal(wall) }
	switch {
	case isShown(early) && isShown(late) && late.Before(early): // shown twice
		return late
	case isShown(early), !isShown(late):
		return early
	default:
		return late
	}
}

// computeOffset returns the offset of a time zone from UTC at a time.
func computeOffset(t time.Time, zone *time.Location) time.Duration {
	_, seconds := t.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}
