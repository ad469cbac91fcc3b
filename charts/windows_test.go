// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"os"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// TestWindowAdmission compares the ChangeWindows that the API server admits with
// the windows that the hub can evaluate. Problems that the API server cannot detect
// are in the window's status.
func TestWindowAdmission(t *testing.T) {
	text, err := os.ReadFile("bellwether/files/crds/bellwether.dev_changewindows.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, crd); err != nil {
		t.Fatal(err)
	}
	validator := newValidator(t, crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"])
	for name, test := range map[string]struct {
		start, recurrence, zone string
		// refused is part of the API server's message; empty: it admits the window.
		refused string
		// stalled is true if the API server admits the window and the hub cannot evaluate it.
		stalled bool
	}{
		"once":                        {},
		"each night":                  {recurrence: "FREQ=DAILY"},
		"each night of some months":   {recurrence: "FREQ=DAILY;BYMONTH=1,12;BYDAY=MO"},
		"weekdays":                    {recurrence: "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TU;WKST=SU"},
		"first and last day":          {recurrence: "FREQ=MONTHLY;BYMONTHDAY=1,-1"},
		"second Tuesday":              {recurrence: "FREQ=MONTHLY;BYDAY=2TU"},
		"last weekday":                {recurrence: "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1"},
		"a day of the year":           {recurrence: "FREQ=YEARLY;BYYEARDAY=100,-1"},
		"a week":                      {recurrence: "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO"},
		"ten times":                   {recurrence: "FREQ=DAILY;COUNT=10"},
		"until":                       {recurrence: "FREQ=DAILY;UNTIL=20261231T235959"},
		"of each cluster":             {zone: "Cluster"},
		"a zone":                      {zone: "America/Argentina/Buenos_Aires"},
		"an offset with a name":       {zone: "Etc/GMT+3"},
		"a leap day":                  {start: "2028-02-29T00:00:00"},
		"no leap year":                {start: "2026-02-29T00:00:00", refused: "that exists"},
		"an hour that is not":         {start: "2026-02-01T25:00:00", refused: "that exists"},
		"no zone of that name":        {zone: "Mars/Base", refused: "IANA time zone database"},
		"a zone with a mistake":       {zone: "Europe/Berln", refused: "IANA time zone database"},
		"the zone of the server":      {zone: "Local", refused: "IANA time zone database"},
		"an offset":                   {zone: "+02:00", refused: "must be a name"},
		"days with numbers":           {recurrence: "FREQ=WEEKLY;BYDAY=1MO", refused: "BYDAY without numbers"},
		"no day":                      {recurrence: "FREQ=WEEKLY;BYDAY=XX", refused: "with values of RFC 5545"},
		"a day of the month, daily":   {recurrence: "FREQ=DAILY;BYMONTHDAY=1", refused: "FREQ=DAILY and FREQ=WEEKLY can have"},
		"a week of the year, monthly": {recurrence: "FREQ=MONTHLY;BYWEEKNO=1", refused: "FREQ=MONTHLY can have"},
		"the 32nd":                    {recurrence: "FREQ=MONTHLY;BYMONTHDAY=32", refused: "FREQ=MONTHLY can have"},
		"a 13th month":                {recurrence: "FREQ=YEARLY;BYMONTH=13", refused: "FREQ=YEARLY can have"},
		"never again":                 {recurrence: "FREQ=DAILY;INTERVAL=0", refused: "INTERVAL is at most 1000"},
		"in a long time":              {recurrence: "FREQ=DAILY;INTERVAL=1001", refused: "INTERVAL is at most 1000"},
		"no times":                    {recurrence: "FREQ=DAILY;COUNT=0", refused: "COUNT at most 100000"},
		"too many times":              {recurrence: "FREQ=DAILY;COUNT=100001", refused: "COUNT at most 100000"},
		"until a day":                 {recurrence: "FREQ=DAILY;UNTIL=20261231", refused: "UNTIL is a date and time"},
		"until a time in UTC":         {recurrence: "FREQ=DAILY;UNTIL=20261231T235959Z", refused: "UNTIL is a date and time"},
		"count and until":             {recurrence: "FREQ=DAILY;COUNT=1;UNTIL=20261231T235959", refused: "exclude each other"},
		"twice":                       {recurrence: "FREQ=DAILY;COUNT=1;COUNT=2", refused: "can be there once"},
		"every second day in January": {recurrence: "FREQ=DAILY;INTERVAL=2;BYMONTH=1", refused: "INTERVAL above 1"},
		"an hour":                     {recurrence: "FREQ=DAILY;BYHOUR=1", refused: "the time of day is that of start"},
		"each second":                 {recurrence: "FREQ=SECONDLY", refused: "begins with FREQ=DAILY"},
		"in words":                    {recurrence: "every Monday", refused: "must be an RRULE"},

		"until a day that is not": {recurrence: "FREQ=DAILY;UNTIL=20260230T000000", stalled: true},
	} {
		t.Run(name, func(t *testing.T) {
			spec := map[string]any{"type": "Allow", "duration": "6h", "start": "2026-01-05T22:00:00",
				"recurrence": test.recurrence, "timeZone": "UTC"}
			if test.start != "" {
				spec["start"] = test.start
			}
			if test.zone != "" {
				spec["timeZone"] = test.zone
			}
			problems, _ := validator.Validate(t.Context(), field.NewPath("spec"), nil, spec, nil,
				celconfig.RuntimeCELCostBudget)
			if got := problems.ToAggregate(); test.refused == "" && got != nil ||
				test.refused != "" && (got == nil || !strings.Contains(got.Error(), test.refused)) {
				t.Errorf("the API server says %v, want %q", got, test.refused)
			}
			window := &v1alpha1.ChangeWindow{Spec: v1alpha1.ChangeWindowSpec{Type: v1alpha1.WindowAllow,
				Start: spec["start"].(string), Duration: metav1.Duration{Duration: 6 * time.Hour},
				Recurrence: test.recurrence,
				TimeZone:   spec["timeZone"].(string)}}
			is := holds.SummarizeWindow(window, nil, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
			if cannot := test.refused != "" || test.stalled; (is.Failure != nil) != cannot {
				t.Errorf("the hub says %v, want a failure: %v", is.Failure, cannot)
			}
		})
	}
}
