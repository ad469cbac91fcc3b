// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oncall

import (
	"strings"
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	const layout = "01-02 15:04"
	now := time.Date(2026, 11, 22, 8, 30, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		flags         shiftFlags
		from, to, err string
	}{
		"by default":          {flags: shiftFlags{}, from: "11-21 20:30", to: "11-22 08:30"},
		"the last hours":      {flags: shiftFlags{since: 2 * time.Hour}, from: "11-22 06:30", to: "11-22 08:30"},
		"hours before an end": {flags: shiftFlags{since: time.Hour, to: "08:00"}, from: "11-22 07:00", to: "11-22 08:00"},
		"over midnight":       {flags: shiftFlags{from: "20:00", to: "08:00"}, from: "11-21 20:00", to: "11-22 08:00"},
		"of the evening":      {flags: shiftFlags{from: "12:00", to: "20:00"}, from: "11-21 12:00", to: "11-21 20:00"},
		"around the clock":    {flags: shiftFlags{from: "08:00", to: "08:00"}, from: "11-21 08:00", to: "11-22 08:00"},
		"in a time zone": {flags: shiftFlags{from: "20:00", to: "08:00", zone: "Europe/Berlin"}, from: "11-21 19:00",
			to: "11-22 07:00"},
		"over midnight elsewhere": {flags: shiftFlags{from: "20:00", zone: "Asia/Tokyo"}, from: "11-21 11:00",
			to: "11-22 08:30"},
		"with dates": {flags: shiftFlags{from: "2026-11-20 07:00", to: "2026-11-21T07:00:00+01:00"}, from: "11-20 07:00",
			to: "11-21 06:00"},
		"the night of 13 hours": {flags: shiftFlags{from: "2026-11-01 00:00", to: "2026-11-01T12:00", zone: "America/New_York"},
			from: "11-01 04:00", to: "11-01 17:00"},
		"both":          {flags: shiftFlags{from: "20:00", since: time.Hour}, err: "--from and --since exclude each other"},
		"backwards":     {flags: shiftFlags{from: "2026-11-22 08:00", to: "2026-11-22 07:00"}, err: "invalid shift"},
		"negative":      {flags: shiftFlags{since: -time.Hour}, err: "invalid shift"},
		"the future":    {flags: shiftFlags{to: "2026-11-22 09:00"}, err: "the shift ends in the future"},
		"too long":      {flags: shiftFlags{since: 32 * 24 * time.Hour}, err: "invalid shift"},
		"too long ago":  {flags: shiftFlags{since: time.Hour, to: "2026-10-01 08:00"}, err: "invalid shift"},
		"no time":       {flags: shiftFlags{from: "yesterday"}, err: `invalid value "yesterday" of --from`},
		"no time of it": {flags: shiftFlags{to: "24:00"}, err: `invalid value "24:00" of --to`},
		"no such zone":  {flags: shiftFlags{zone: "Berlin"}, err: `invalid value "Berlin" of --time-zone`},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := test.flags.computeShift(now)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want %q in it", err, test.err)
				}
				return
			}
			from, to := in.From.UTC().Format(layout), in.To.UTC().Format(layout)
			if err != nil || from != test.from || to != test.to || !in.Now.Equal(now) {
				t.Errorf("from %s to %s (%v), want from %s to %s", from, to, err, test.from, test.to)
			}
		})
	}
}
