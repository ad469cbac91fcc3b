// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"strings"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// dayHours are hours that begin and end on the same day, as Alertmanager needs them.
type dayHours struct {
	start, end string
	// days are in small letters; none: each day.
	days []string
}

const (
	dayBegins = "00:00"
	dayEnds   = "24:00"
)

// hoursOf are the hours of tickets. Those that end before they begin go over midnight: they begin on the days that they
// name, and end on the days after these.
func hoursOf(h *v1alpha1.TicketHours) []dayHours {
	days := make([]string, 0, len(h.Days))
	for _, day := range h.Days {
		days = append(days, strings.ToLower(string(day)))
	}
	if h.Start <= h.End {
		return []dayHours{{h.Start, h.End, days}}
	}
	evening := dayHours{h.Start, dayEnds, days}
	if h.End == dayBegins {
		return []dayHours{evening}
	}
	morning := dayHours{dayBegins, h.End, make([]string, 0, len(days))}
	for _, day := range days {
		morning.days = append(morning.days, dayAfter[day])
	}
	return []dayHours{evening, morning}
}

var dayAfter = map[string]string{"monday": "tuesday", "tuesday": "wednesday", "wednesday": "thursday",
	"thursday": "friday", "friday": "saturday", "saturday": "sunday", "sunday": "monday"}
