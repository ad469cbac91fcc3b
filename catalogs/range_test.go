// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs"
)

const allVersions = "0.9.0 1.0.0 1.2.0-rc.1 1.2.0 1.2.3 1.3.0-rc.1 1.3.0-rc.2 1.3.0 1.4.0-rc.1 1.5.1 2.0.0-alpha 2.0.0"

func parseVersions(text string) []semver.Version {
	var out []semver.Version
	for _, v := range strings.Fields(text) {
		out = append(out, semver.MustParse(v))
	}
	return out
}

func formatVersions(list []semver.Version) string {
	var out []string
	for _, v := range list {
		out = append(out, v.String())
	}
	return strings.Join(out, " ")
}

func TestRange(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		">=1.2.0 <2.0.0":                   "1.2.0 1.2.3 1.3.0 1.5.1",
		">= 1.2.0   < 2.0.0":               "1.2.0 1.2.3 1.3.0 1.5.1",
		"<=1.0.0":                          "0.9.0 1.0.0",
		">1.3.0":                           "1.5.1 2.0.0",
		"=1.2.3":                           "1.2.3",
		"==1.2.3":                          "1.2.3",
		">=1.2.0 <2.0.0 !1.3.0":            "1.2.0 1.2.3 1.5.1",
		">=1.2.0 <2.0.0 !=1.3.0":           "1.2.0 1.2.3 1.5.1",
		"1.2.x":                            "1.2.0 1.2.3",
		"1.x":                              "1.0.0 1.2.0 1.2.3 1.3.0 1.5.1",
		"1.2.x || >=1.5.1 <2.0.0":          "1.2.0 1.2.3 1.5.1",
		"1.2.x||2.x":                       "1.2.0 1.2.3 2.0.0",
		">=1.3.0-rc.1 <2.0.0":              "1.3.0-rc.1 1.3.0-rc.2 1.3.0 1.5.1",
		">=1.3.0-rc.2 <1.3.0":              "1.3.0-rc.2",
		">=1.2.0 <2.0.0 || =1.3.0-rc.2":    "1.2.0 1.2.3 1.3.0-rc.2 1.3.0 1.5.1",
		">=1.2.0 <2.0.0-beta":              "1.2.0 1.2.3 1.3.0 1.5.1 2.0.0-alpha",
		">=1.2.0+build.7 <1.2.3":           "1.2.0",
		">=1.6.0 <2.0.0":                   "",
		">=2.0.0 <1.0.0":                   "",
		"<1.0.0 || >=1.3.0-next.1 <=1.3.0": "0.9.0 1.3.0-rc.1 1.3.0-rc.2 1.3.0",
		"!=1.3.0-next.1 >1.3.0 <=2.0.0":    "1.5.1 2.0.0",
	} {
		r, err := catalogs.ParseRange(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got []semver.Version
		for _, v := range parseVersions(allVersions) {
			if r.Contains(v) {
				got = append(got, v)
			}
		}
		if formatVersions(got) != want {
			t.Errorf("%s has %s, want %s", text, formatVersions(got), want)
		}
		library, err := semver.ParseRange(strings.ReplaceAll(text, "||", " || "))
		if strings.Contains(text, "next") {
			continue // the library takes the x for a wildcard
		}
		if err != nil {
			t.Errorf("%s: the library does not read it: %v", text, err)
			continue
		}
		for _, v := range parseVersions(allVersions) {
			if r.Contains(v) != library(v) && len(v.Pre) == 0 || r.Contains(v) && !library(v) {
				t.Errorf("%s has %s: %v, and to the library %v", text, v, r.Contains(v), library(v))
			}
		}
		if catalogs.IsExact(text) {
			t.Errorf("%s counts as one version", text)
		}
	}
}

func TestRangesThatAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                 "a comparison is missing",
		"||":               "a comparison is missing",
		">=1.2.0 ||":       "a comparison is missing",
		">=1.2.0 <":        `no version after "<"`,
		">=1.2":            `"1.2" is neither a whole version such as 1.2.0 nor a wildcard such as 1.2.x`,
		"^1.2.0":           `"^1.2.0" is neither`,
		"~1.2.0":           `"~1.2.0" is neither`,
		"1.2.0 - 2.0.0":    `"-" is neither`,
		">=1.2.0, <2.0.0":  `"1.2.0," is neither`,
		">=v1.2.0":         `"v1.2.0" is neither`,
		"*":                `"*" is neither`,
		"x":                `"x" is neither`,
		">=1.x":            `a wildcard stands without an operator, and ">=1.x" has ">="`,
		"!1.2.x":           `a wildcard stands without an operator, and "!1.2.x" has "!"`,
		"1.x.x":            `"1.x.x" is no wildcard such as 1.2.x or 1.x`,
		"1.2.3.x":          `"1.2.3.x" is no wildcard`,
		">==1.2.0":         `">==" is no comparison`,
		">=1.2.0-01 <2.x.": `"1.2.0-01" is neither`,
	} {
		_, err := catalogs.ParseRange(text)
		if !errors.Is(err, catalogs.ErrNotRange) || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "write it as >=1.2.0 <2.0.0, as 1.2.x, or as") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"1.2.3", "1.2.3-rc.1", "1.2.3+build", "v1.2.3"} {
		if !catalogs.IsExact(text) {
			t.Errorf("%s does not count as one version", text)
		}
	}
}

func TestNearestToARange(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		">=1.6.0 <1.9.0":                   "2.0.0-alpha 1.5.1",
		">=3.0.0":                          "2.0.0",
		"<0.5.0":                           "0.9.0",
		"0.5.x":                            "0.9.0",
		">=1.2.1 <1.2.2 || >=5.0.0 <6.0.0": "2.0.0 1.2.3 1.2.0",
	} {
		r, err := catalogs.ParseRange(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, formatVersions(r.Nearest(parseVersions(allVersions)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	r, err := catalogs.ParseRange(">=1.4.0-rc.0 <1.5.0")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{"1.4.0-rc.1", "1.3.0", "1.5.0-rc.1"} {
		if got := r.ExcludesPrerelease(semver.MustParse(v)); got != (v == "1.5.0-rc.1") {
			t.Errorf("leaves out %s: %v", v, got)
		}
	}
}
