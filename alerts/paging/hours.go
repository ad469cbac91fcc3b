// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"strings"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// dayHours are hours that begin and end on the same day, as Alertmanager requires.
type dayHours struct {
	start, end string
	// days are in lower case. Empty: each day.
	days []string
}

const (
	dayBegins = "00:00"
	dayEnds   = "24:00"
)

// splitHours returns the hours of tickets as hours within one day. Hours that end before
// they begin cross midnight: they begin on the named days, and end on the following days.
func splitHours(h *v1alpha1.TicketHours) []dayHours {
	days := make([]string, 0, len(h.Days))
	for _, day := range h.Days {
		days = append(days, strings.ToLower(string(day)))
	}
	if h.Start <= h.End {
		return []dayHours{{start: h.Start, end: h.End, days: days}}
	}
	evening := dayHours{start: h.Start, end: dayEnds, days: days}
	if h.End == dayBegins {
		return []dayHours{evening}
	}
	morning := dayHours{start: dayBegins, end: h.End, days: make([]string, 0, len(days))}
	for _, day := range days {
		morning.days = append(morning.days, nextDay[day])
	}
	return []dayHours{evening, morning}
}

var nextDay = map[string]string{"monday": "tuesday", "tuesday": "wednesday", "wednesday": "thursday",
	"thursday": "friday", "friday": "saturday", "saturday": "sunday", "sunday": "monday"}
