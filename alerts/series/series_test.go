// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package series_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

var (
	exported = regexp.MustCompile(`^bellwether_operator_[a-z_]+[a-z]$`)
	hub      = regexp.MustCompile(`^bellwether_(fleet|operator|rollout|catalog|slo|paging|alert)_[a-z_]+[a-z]$`)
	programs = regexp.MustCompile(`^bellwether_[a-z_]+[a-z]$`)
	recorded = regexp.MustCompile(`^bellwether:[a-z_]+:[a-z]+$`)
	label    = regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
)

// TestNames checks names against the conventions of Prometheus: names of exported series
// contain only underscores, and names of recorded series have the form level:metric:operation.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for name, test := range map[string]struct {
		all  []series.Series
		form *regexp.Regexp
	}{
		"exported": {series.Exported(), exported},
		"hub":      {series.Hub(), hub},
		"programs": {series.Programs(), programs},
		"hosting":  {series.Hosting(), programs},
		"recorded": {series.Recorded(), recorded},
	} {
		for _, s := range test.all {
			if !test.form.MatchString(s.Name) {
				t.Errorf("%s: %s is not of the form %s", name, s.Name, test.form)
			}
			if seen[s.Name] {
				t.Errorf("%s is listed twice", s.Name)
			}
			seen[s.Name] = true
			if !strings.HasSuffix(s.Help, ".") {
				t.Errorf("the help of %s is no sentence: %q", s.Name, s.Help)
			}
			if (s.Type == "counter") != strings.HasSuffix(s.Name, "_total") {
				t.Errorf("%s is a %s", s.Name, s.Type)
			}
			for _, l := range s.Labels {
				if !label.MatchString(l) {
					t.Errorf("%s has a label %q", s.Name, l)
				}
			}
		}
	}
}
