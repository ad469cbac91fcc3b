// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package holds_test

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the tests must not depend on the machine

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// window is a ChangeWindow that selects everything.
func window(kind v1alpha1.ChangeWindowType, start string, duration time.Duration, recurrence,
	zone string) v1alpha1.ChangeWindow {
	w := v1alpha1.ChangeWindow{}
	w.Name = strings.ToLower(string(kind))
	w.Spec = v1alpha1.ChangeWindowSpec{Type: kind, Start: start, Duration: metav1.Duration{Duration: duration},
		Recurrence: recurrence, TimeZone: zone}
	return w
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// look is the expected state at a time: open or closed, and until when (empty means not known).
type look struct {
	at    string
	open  bool
	until string
}

func check(t *testing.T, list []v1alpha1.ChangeWindow, target holds.WindowTarget, looks []look) {
	t.Helper()
	for _, l := range looks {
		got := holds.ReadWindows(list, at(t, l.at)).State(target)
		until := ""
		if !got.Until.IsZero() {
			until = got.Until.UTC().Format(time.RFC3339)
		}
		if got.Open != l.open || until != l.until {
			t.Errorf("at %s: open %t until %q (%s), want open %t until %q", l.at, got.Open, until, got.Message, l.open,
				l.until)
		}
		if got.Open != (got.Message == "") {
			t.Errorf("at %s: open %t with message %q", l.at, got.Open, got.Message)
		}
	}
}

func TestRecurrence(t *testing.T) {
	const hours = time.Hour
	tests := map[string]struct {
		window v1alpha1.ChangeWindow
		looks  []look
	}{
		"once": {
			window(v1alpha1.WindowAllow, "2026-01-05T22:00:00", 4*hours, "", "UTC"), []look{
				{"2026-01-05T21:59:59Z", false, "2026-01-05T22:00:00Z"},
				{"2026-01-05T22:00:00Z", true, "2026-01-06T02:00:00Z"},
				{"2026-01-06T01:59:59Z", true, "2026-01-06T02:00:00Z"},
				{"2026-01-06T02:00:00Z", false, ""},
			}},
		"week nights in Berlin": {
			window(v1alpha1.WindowAllow, "2026-01-05T22:00:00", 6*hours, "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH",
				"Europe/Berlin"),
			[]look{
				{"2026-07-06T19:59:59Z", false, "2026-07-06T20:00:00Z"},
				{"2026-07-06T20:00:00Z", true, "2026-07-07T02:00:00Z"},
				{"2026-01-05T20:00:00Z", false, "2026-01-05T21:00:00Z"},
				{"2026-07-10T12:00:00Z", false, "2026-07-13T20:00:00Z"},
			}},
		// 2026-03-29 02:00 CET becomes 03:00 CEST: 02:30 does not exist, and is taken
		// by the offset before.
		"a start in the hour that clocks skip": {
			window(v1alpha1.WindowAllow, "2026-03-01T02:30:00", 1*hours, "FREQ=DAILY", "Europe/Berlin"), []look{
				{"2026-03-28T01:30:00Z", true, "2026-03-28T02:30:00Z"},
				{"2026-03-29T01:29:59Z", false, "2026-03-29T01:30:00Z"},
				{"2026-03-29T01:30:00Z", true, "2026-03-29T02:30:00Z"},
				{"2026-03-30T00:30:00Z", true, "2026-03-30T01:30:00Z"},
			}},
		// 2026-10-25 03:00 CEST becomes 02:00 CET: 02:30 is there twice, and the first
		// counts.
		"a start in the hour that clocks show twice": {
			window(v1alpha1.WindowAllow, "2026-10-01T02:30:00", 1*hours, "FREQ=DAILY", "Europe/Berlin"), []look{
				{"2026-10-25T00:30:00Z", true, "2026-10-25T01:30:00Z"},
				{"2026-10-25T01:30:00Z", false, "2026-10-26T01:30:00Z"},
			}},
		"a duration over a change of clocks is elapsed time": {
			window(v1alpha1.WindowAllow, "2026-03-28T22:00:00", 8*hours, "", "Europe/Berlin"), []look{
				{"2026-03-29T04:59:59Z", true, "2026-03-29T05:00:00Z"}, // 07:00 in Berlin
				{"2026-03-29T05:00:00Z", false, ""},
			}},
		"a change of clocks by half an hour": {
			window(v1alpha1.WindowAllow, "2026-10-01T02:15:00", 1*hours, "FREQ=DAILY", "Australia/Lord_Howe"), []look{
				{"2026-10-03T15:44:59Z", false, "2026-10-03T15:45:00Z"}, // 02:15 is skipped: 02:45
				{"2026-10-03T15:45:00Z", true, "2026-10-03T16:45:00Z"},
			}},
		"a day that a time zone skipped": {
			window(v1alpha1.WindowAllow, "2011-12-30T12:00:00", 1*hours, "", "Pacific/Apia"), []look{
				{"2011-12-30T22:00:00Z", true, "2011-12-30T23:00:00Z"},
			}},
		"south of the equator": {
			window(v1alpha1.WindowAllow, "2026-01-01T01:00:00", 2*hours, "FREQ=DAILY", "Pacific/Auckland"), []look{
				{"2026-01-10T12:00:00Z", true, "2026-01-10T14:00:00Z"},
				{"2026-07-10T13:00:00Z", true, "2026-07-10T15:00:00Z"},
			}},
		"the last day of each month": {
			window(v1alpha1.WindowDeny, "2026-01-31T00:00:00", 24*hours, "FREQ=MONTHLY;BYMONTHDAY=-1", "UTC"), []look{
				{"2026-02-28T12:00:00Z", false, "2026-03-01T00:00:00Z"},
				{"2026-04-29T12:00:00Z", true, "2026-04-30T00:00:00Z"},
				{"2028-02-29T12:00:00Z", false, "2028-03-01T00:00:00Z"},
			}},
		"the 31st skips short months": {
			window(v1alpha1.WindowAllow, "2026-01-31T00:00:00", 24*hours, "FREQ=MONTHLY", "UTC"), []look{
				{"2026-02-15T00:00:00Z", false, "2026-03-31T00:00:00Z"},
			}},
		"the leap day": {
			window(v1alpha1.WindowAllow, "2024-02-29T10:00:00", 1*hours, "FREQ=YEARLY", "UTC"), []look{
				{"2026-01-01T00:00:00Z", false, "2028-02-29T10:00:00Z"},
				{"2028-02-29T10:30:00Z", true, "2028-02-29T11:00:00Z"},
			}},
		"the second Tuesday of the month": {
			window(v1alpha1.WindowDeny, "2026-01-13T00:00:00", 24*hours, "FREQ=MONTHLY;BYDAY=+2TU", "UTC"), []look{
				{"2026-11-10T10:00:00Z", false, "2026-11-11T00:00:00Z"},
				{"2026-11-11T10:00:00Z", true, "2026-12-08T00:00:00Z"},
			}},
		"COUNT": {
			window(v1alpha1.WindowAllow, "2026-01-01T10:00:00", 1*hours, "FREQ=DAILY;COUNT=2", "UTC"), []look{
				{"2026-01-02T10:00:00Z", true, "2026-01-02T11:00:00Z"},
				{"2026-01-03T10:00:00Z", false, ""},
			}},
		"UNTIL is in the time zone of the window, and included": {
			window(v1alpha1.WindowAllow, "2026-07-01T23:30:00", 1*hours, "FREQ=DAILY;UNTIL=20260703T233000",
				"America/New_York"), []look{
				{"2026-07-04T03:30:00Z", true, "2026-07-04T04:30:00Z"},
				{"2026-07-05T03:30:00Z", false, ""},
			}},
		"every other week": {
			window(v1alpha1.WindowAllow, "2026-01-05T10:00:00", 1*hours, "FREQ=WEEKLY;INTERVAL=2", "UTC"), []look{
				{"2026-01-12T10:30:00Z", false, "2026-01-19T10:00:00Z"},
			}},
		"windows that touch are one": {
			window(v1alpha1.WindowAllow, "2026-01-05T00:00:00", 24*hours, "FREQ=WEEKLY;BYDAY=MO,TU,WE", "UTC"), []look{
				{"2026-01-12T10:00:00Z", true, "2026-01-15T00:00:00Z"},
			}},
		"windows that overlap are one": {
			window(v1alpha1.WindowDeny, "2026-01-05T00:00:00", 36*hours, "FREQ=DAILY;COUNT=3", "UTC"), []look{
				{"2026-01-05T10:00:00Z", false, "2026-01-08T12:00:00Z"},
			}},
		"a window that never ends": {
			window(v1alpha1.WindowAllow, "2026-01-05T00:00:00", 24*hours, "FREQ=DAILY", "UTC"), []look{
				{"2026-02-01T10:00:00Z", true, "2026-04-08T00:00:00Z"}, // as far as it looks
			}},
		"a rule that never matches": {
			window(v1alpha1.WindowAllow, "2026-01-05T00:00:00", 1*hours, "FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30",
				"UTC"), []look{{"2026-02-01T10:00:00Z", false, ""}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			check(t, []v1alpha1.ChangeWindow{test.window}, holds.WindowTarget{}, test.looks)
		})
	}
}

func TestDenyWins(t *testing.T) {
	nights := window(v1alpha1.WindowAllow, "2026-01-01T20:00:00", 10*time.Hour, "FREQ=DAILY", "UTC")
	freeze := window(v1alpha1.WindowDeny, "2026-12-20T00:00:00", 16*24*time.Hour, "", "UTC")
	check(t, []v1alpha1.ChangeWindow{nights, freeze}, holds.WindowTarget{}, []look{
		{"2026-12-19T12:00:00Z", false, "2026-12-19T20:00:00Z"},
		{"2026-12-19T21:00:00Z", true, "2026-12-20T00:00:00Z"}, // the freeze comes before the end of the night
		{"2026-12-24T21:00:00Z", false, "2027-01-05T00:00:00Z"},
		{"2026-12-24T12:00:00Z", false, "2027-01-05T00:00:00Z"},
		{"2027-01-05T12:00:00Z", false, "2027-01-05T20:00:00Z"},
	})
	// It opens only when no window denies and one allows.
	late := freeze
	late.Spec.Duration.Duration -= 12 * time.Hour
	check(t, []v1alpha1.ChangeWindow{nights, late}, holds.WindowTarget{}, []look{
		{"2026-12-24T12:00:00Z", false, "2027-01-04T20:00:00Z"},
	})
}

func TestTheWindowsThatSelectATargetCount(t *testing.T) {
	berlin := holds.WindowTarget{Namespace: "team", OperatorLabels: map[string]string{"tier": "1"},
		ClusterLabels: map[string]string{"stage": "prod"}, TimeZone: "Europe/Berlin"}
	nights := func(change func(*v1alpha1.ChangeWindowSpec)) v1alpha1.ChangeWindow {
		w := window(v1alpha1.WindowAllow, "2026-01-01T22:00:00", 6*time.Hour, "FREQ=DAILY", v1alpha1.TimeZoneOfCluster)
		change(&w.Spec)
		return w
	}
	matching := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	const noon = "2026-07-01T12:00:00Z"
	closed, open := look{noon, false, "2026-07-01T20:00:00Z"}, look{noon, true, ""} // 22:00 in Berlin
	type spec = v1alpha1.ChangeWindowSpec
	tests := map[string]struct {
		change func(*spec)
		want   look
	}{
		"everything":           {func(*spec) {}, closed},
		"its namespace":        {func(s *spec) { s.Namespaces = []string{"team"} }, closed},
		"another namespace":    {func(s *spec) { s.Namespaces = []string{"x"} }, open},
		"its operator labels":  {func(s *spec) { s.OperatorSelector = matching("tier", "1") }, closed},
		"other labels":         {func(s *spec) { s.OperatorSelector = matching("tier", "2") }, open},
		"its cluster's labels": {func(s *spec) { s.ClusterSelector = matching("stage", "prod") }, closed},
		"other clusters":       {func(s *spec) { s.ClusterSelector = matching("stage", "dev") }, open},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			check(t, []v1alpha1.ChangeWindow{nights(test.change)}, berlin, []look{test.want})
		})
	}
	// One set answers for clusters in several time zones.
	set := holds.ReadWindows([]v1alpha1.ChangeWindow{nights(func(*v1alpha1.ChangeWindowSpec) {})}, at(t, noon))
	for zone, want := range map[string]string{"": "2026-07-01T22:00:00Z", "Asia/Tokyo": "2026-07-01T13:00:00Z",
		"America/New_York": "2026-07-02T02:00:00Z"} {
		if got := set.State(holds.WindowTarget{TimeZone: zone}); got.Until.UTC().Format(time.RFC3339) != want {
			t.Errorf("time zone %q: open at %s, want %s", zone, got.Until, want)
		}
	}
}

// A window that a RolloutPolicy requires applies even if it does not select the target. A required window that does
// not exist closes the target.
func TestRequiredWindows(t *testing.T) {
	const noon = "2026-07-01T12:00:00Z"
	nights := window(v1alpha1.WindowAllow, "2026-01-01T22:00:00", 6*time.Hour, "FREQ=DAILY", "UTC")
	nights.Name, nights.Spec.Namespaces = "nights", []string{"other"}
	tests := map[string]struct {
		required map[string]string
		open     bool
		message  string
	}{
		"none":                {open: true},
		"nights":              {required: map[string]string{"nights": "house"}, message: "outside of"},
		"one that is missing": {required: map[string]string{"weekends": "house"}, message: "does not exist"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := holds.ReadWindows([]v1alpha1.ChangeWindow{nights}, at(t, noon))
			got := set.State(holds.WindowTarget{Namespace: "team", Required: test.required})
			if got.Open != test.open || !strings.Contains(got.Message, test.message) {
				t.Errorf("open %t: %s", got.Open, got.Message)
			}
		})
	}
}

// A window of any type that cannot be evaluated closes the targets that it selects.
func TestInvalidWindowsClose(t *testing.T) {
	type spec = v1alpha1.ChangeWindowSpec
	rule := func(text string) func(*spec) { return func(s *spec) { s.Recurrence = text } }
	tests := map[string]struct {
		change func(*spec)
		says   string
	}{
		"start":        {func(s *spec) { s.Start = "2026-02-30T00:00:00" }, "start"},
		"time zone":    {func(s *spec) { s.TimeZone = "Europe/Nowhere" }, `"Europe/Nowhere"`},
		"local zone":   {func(s *spec) { s.TimeZone = "Local" }, `"Local"`},
		"cluster zone": {func(s *spec) { s.TimeZone = "Cluster" }, "annotation bellwether.dev/time-zone"},
		"selector": {func(s *spec) {
			s.OperatorSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"-": "x y"}}
		}, "selector"},
		"frequency":       {rule("FREQ=SECONDLY"), "must begin with FREQ=DAILY"},
		"no frequency":    {rule("BYDAY=MO;FREQ=WEEKLY"), "must begin with FREQ"},
		"hours":           {rule("FREQ=DAILY;BYHOUR=1,2"), "BYHOUR cannot be used"},
		"month day":       {rule("FREQ=DAILY;BYMONTHDAY=30"), "BYMONTHDAY cannot"},
		"twice":           {rule("FREQ=DAILY;COUNT=1;COUNT=2"), "COUNT is there twice"},
		"interval":        {rule("FREQ=DAILY;INTERVAL=0"), "INTERVAL must be"},
		"count":           {rule("FREQ=DAILY;COUNT=0"), "COUNT must be"},
		"until":           {rule("FREQ=DAILY;UNTIL=20261231T235959Z"), "without a time zone"},
		"until a day":     {rule("FREQ=DAILY;UNTIL=20261231"), "must be a date and time"},
		"until and count": {rule("FREQ=DAILY;COUNT=2;UNTIL=20261231T235959"), "exclude"},
		"numbered day":    {rule("FREQ=WEEKLY;BYDAY=2MO"), "BYDAY can have numbers"},
		"month":           {rule("FREQ=MONTHLY;BYMONTH=13"), "recurrence"},
		"never matching": {rule("FREQ=DAILY;INTERVAL=7;BYDAY=MO"),
			"INTERVAL above 1"},
	}
	for name, test := range tests {
		for _, kind := range []v1alpha1.ChangeWindowType{v1alpha1.WindowAllow, v1alpha1.WindowDeny} {
			t.Run(name+" "+string(kind), func(t *testing.T) {
				w := window(kind, "2026-01-01T00:00:00", 24*time.Hour, "FREQ=DAILY", "UTC")
				test.change(&w.Spec)
				got := holds.ReadWindows([]v1alpha1.ChangeWindow{w}, at(t, "2026-01-02T12:00:00Z")).
					State(holds.WindowTarget{TimeZone: "no/zone"})
				if got.Open || !strings.Contains(got.Message, test.says) || !strings.Contains(got.Message, w.Name) {
					t.Errorf("open %t: %s, want %q in it", got.Open, got.Message, test.says)
				}
			})
		}
	}
}

// FuzzRecurrence looks for rules that crash or take too long, and for states that
// contradict themselves.
func FuzzRecurrence(f *testing.F) {
	for _, rule := range []string{"FREQ=SECONDLY", "FREQ=DAILY", "FREQ=WEEKLY;BYDAY=MO,TU;INTERVAL=2;WKST=SU",
		"FREQ=MONTHLY;BYDAY=-1FR;BYSETPOS=1", "FREQ=YEARLY;BYWEEKNO=53;BYDAY=MO", "FREQ=YEARLY;BYYEARDAY=-366",
		"FREQ=YEARLY;BYDAY=+53MO", "FREQ=MONTHLY;BYMONTHDAY=31;BYMONTH=2,4", "FREQ=DAILY;COUNT=100000",
		"FREQ=YEARLY;BYMONTHDAY=30;BYMONTH=2", "FREQ=WEEKLY;INTERVAL=1000;BYMONTH=2"} {
		f.Add(rule, int64(24*time.Hour), int64(1_767_225_600), uint8(1))
	}
	zones := []string{"UTC", "Europe/Berlin", "Pacific/Apia", "Australia/Lord_Howe"}
	f.Fuzz(func(t *testing.T, rule string, duration, now int64, zone uint8) {
		if duration < int64(time.Minute) || duration > int64(8784*time.Hour) || now < 0 || now > 1<<33 ||
			len(rule) > 256 {
			t.Skip()
		}
		for _, kind := range []v1alpha1.ChangeWindowType{v1alpha1.WindowAllow, v1alpha1.WindowDeny} {
			w := window(kind, "2000-02-29T02:30:00", time.Duration(duration), rule, zones[int(zone)%len(zones)])
			when := time.Unix(now, 0)
			got := holds.ReadWindows([]v1alpha1.ChangeWindow{w}, when).State(holds.WindowTarget{})
			if !got.Until.IsZero() && !got.Until.After(when) {
				t.Fatalf("%s: %q at %s: until %s", kind, rule, when, got.Until)
			}
			if strings.Contains(got.Message, "cannot be evaluated") || got.Until.IsZero() {
				continue
			}
			// Just before that time it still holds; a closed target opens then.
			set := holds.ReadWindows([]v1alpha1.ChangeWindow{w}, got.Until.Add(-time.Second))
			before := set.State(holds.WindowTarget{})
			after := holds.ReadWindows([]v1alpha1.ChangeWindow{w}, got.Until).State(holds.WindowTarget{})
			if got.Open && !before.Open || !got.Open && !after.Open {
				t.Fatalf("%s: %q at %s: %+v, before %+v, then %+v", kind, rule, when, got, before, after)
			}
		}
	})
}
