// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/bundles"
)

func TestParseSupport(t *testing.T) {
	within := func(low, high string) bundles.Support {
		return bundles.Support{Kubernetes: bundles.KubernetesRange{Min: low, Max: high}}
	}
	for text, want := range map[string]bundles.Support{
		`{"endOfSupport": "2027-06-30"}`:                  {EndOfSupport: "2027-06-30"},
		`{"kubernetes": {"min": "1.9", "max": "1.37"}}`:   within("1.9", "1.37"),
		`{"kubernetes": {"max": "1.37"}}`:                 within("", "1.37"),
		`{"kubernetes": {"min": "1.32", "max": "1.32"}} `: within("1.32", "1.32"),
	} {
		if got, err := bundles.ParseSupport([]byte(text)); err != nil || got != want {
			t.Errorf("%s: %+v (%v)", text, got, err)
		}
	}
	for text, want := range map[string]string{
		`{}`:                                "neither endOfSupport nor kubernetes",
		`null`:                              "neither endOfSupport nor kubernetes",
		`{"endOfSupport": "30.6.2027"}`:     `endOfSupport "30.6.2027" is no day`,
		`{"endOfSupport": "2027-02-30"}`:    "is no day",
		`{"kubernetes": {"min": "1.32.1"}}`: `kubernetes.min "1.32.1" is no version such as 1.32`,
		`{"kubernetes": {"max": ">=1.32"}}`: "kubernetes.max",
		`{"kubernetes": {"min": "1.32", "max": "1.9"}}`: "kubernetes.min 1.32 is newer than kubernetes.max 1.9",
		`{"eol": "2027-06-30"}`:                         `unknown field "eol"`,
		`{"endOfSupport": "2027-06-30"} {}`:             "more than one value",
		`[]`:                                            "cannot unmarshal",
	} {
		_, err := bundles.ParseSupport([]byte(text))
		if !errors.Is(err, bundles.ErrSupport) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestKubernetesRange(t *testing.T) {
	for _, test := range []struct {
		low, high, version string
		want               bool
		text               string
	}{
		{"1.32", "1.37", "v1.37.4+k3s1", true, "1.32 to 1.37"},
		{"1.32", "1.37", "1.38.0", false, "1.32 to 1.37"},
		{"1.32", "", "1.31.9", false, "1.32 or newer"},
		{"", "1.9", "1.10.0", false, "1.9 or older"},
		{"1.9", "1.9", "1.9.0", true, "1.9"},
		{"", "", "1.9.0", true, ""},
	} {
		r := bundles.KubernetesRange{Min: test.low, Max: test.high}
		if got := r.Contains(test.version); got != test.want || r.String() != test.text {
			t.Errorf("%q contains %s: %t", r, test.version, got)
		}
	}
}

func TestSupportEnded(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for day, want := range map[string]bool{"2026-11-20": true, "2026-11-21": false, "2026-11-22": false, "": false,
		"soon": false} {
		if got := bundles.IsSupportEnded(day, noon); got != want {
			t.Errorf("%q: %t", day, got)
		}
	}
}
