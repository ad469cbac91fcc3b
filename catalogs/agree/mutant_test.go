// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agree_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/agree"
	"github.com/bellwether-dev/bellwether/catalogs/compile"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
)

// compiled is a correctly compiled package: 1.1.0 and 1.3.0 are blocked, 1.4.0 is retired, and 1.6.0 is new.
func compiled(t *testing.T) *catalogs.Package {
	t.Helper()
	l := &ladder.Ladder{APIVersion: ladder.APIVersion, Kind: ladder.Kind, Package: "p",
		Channels: []string{"candidate", "stable"}}
	for _, v := range []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.5.0"} {
		l.Bundles = append(l.Bundles, ladder.Bundle{Version: v, Path: v, Channel: "stable"})
	}
	l.Bundles = append(l.Bundles, ladder.Bundle{Version: "1.6.0", Path: "1.6.0", Channel: "candidate"})
	l.Retired = []ladder.Retired{{Version: "1.4.0", Channel: "stable", Reason: "too slow"}}
	l.Blocks = []ladder.Block{{Version: "1.1.0", Reason: "it leaks"}, {Version: "1.3.0", Reason: "it loops"}}
	p, err := compile.Graph(l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestMutantsAreDetected breaks a compiled package in the ways in which a compiler could be wrong. Each mutant must
// be detected, even if opm would accept the package.
func TestMutantsAreDetected(t *testing.T) {
	entry := func(p *catalogs.Package, version string) *catalogs.Entry {
		c := p.Channels["stable"]
		return &c.Entries[slices.IndexFunc(c.Entries, func(e catalogs.Entry) bool { return e.Name == bundle(version) })]
	}
	unskip := func(e *catalogs.Entry, version string) {
		e.Skips = slices.DeleteFunc(slices.Clone(e.Skips), func(s string) bool { return s == bundle(version) })
	}
	undeprecate := func(p *catalogs.Package, version string) {
		b := *p.Bundles[bundle(version)]
		b.Deprecation = ""
		p.Bundles[b.Name] = &b
	}
	for name, tc := range map[string]struct {
		mutate  func(*catalogs.Package)
		verdict agree.Verdict // of the first disagreement
		text    string
	}{
		"nothing is wrong": {mutate: func(*catalogs.Package) {}},
		"a blocked version is still led to": {
			mutate: func(p *catalogs.Package) {
				entry(p, "1.3.0").Replaces = bundle("1.2.0")
				e := entry(p, "1.5.0")
				e.Replaces, e.SkipRange = bundle("1.3.0"), ">=1.3.0 <1.5.0"
				unskip(e, "1.3.0")
			},
			verdict: agree.ToBlocked,
			text: "from 1.2.0: Bellwether goes to 1.3.0, which is blocked, OLM v0 goes to 1.3.0, which is " +
				"blocked, OLM v1 stays",
		},
		"a blocked version that only OLM v1 goes to": {
			mutate: func(p *catalogs.Package) {
				entry(p, "1.3.0").Replaces = bundle("1.1.0")
				undeprecate(p, "1.3.0")
				e := entry(p, "1.2.0")
				unskip(e, "1.1.0")
				e = entry(p, "1.5.0")
				e.Skips = append(slices.Clone(e.Skips), bundle("1.1.0"))
				e.SkipRange = ">=1.3.0 <1.5.0"
				p.Bundles[bundle("1.5.0")].Deprecation = "old"
			},
			verdict: agree.ToBlocked, text: "from 1.1.0: OLM v1 goes to 1.3.0, which is blocked",
		},
		"a version between two is forgotten": {
			mutate: func(p *catalogs.Package) {
				e := entry(p, "1.5.0")
				e.SkipRange = ""
				unskip(e, "1.4.0")
			},
			verdict: agree.NotInChannel, text: "from 1.4.0",
		},
		"a range ends too early": {
			mutate:  func(p *catalogs.Package) { entry(p, "1.5.0").SkipRange = ">=1.2.0 <1.4.0" },
			verdict: agree.NotInChannel, text: "from 1.4.5",
		},
		"a range holds higher versions": {
			mutate:  func(p *catalogs.Package) { entry(p, "1.5.0").SkipRange = ">=1.2.0" },
			verdict: agree.Downgrades, text: "from 1.6.0: Bellwether downgrades from 1.6.0 to 1.5.0",
		},
		"a range of a lower version holds higher ones": {
			mutate:  func(p *catalogs.Package) { entry(p, "1.2.0").SkipRange = ">=1.0.0 <1.5.1" },
			verdict: agree.Downgrades, text: "from 1.5.0: OLM v0 downgrades from 1.5.0 to 1.2.0; the head is 1.5.0",
		},
		"the chain is upside down": {
			mutate: func(p *catalogs.Package) {
				entry(p, "1.5.0").Replaces = ""
				entry(p, "1.5.0").SkipRange = ">=1.3.0 <1.5.0"
				entry(p, "1.2.0").Replaces = bundle("1.5.0")
				entry(p, "1.5.0").Replaces = bundle("1.0.0")
			},
			verdict: agree.Downgrades, text: "1.5.0 to 1.2.0",
		},
		"a good version is skipped": {
			mutate: func(p *catalogs.Package) {
				e := entry(p, "1.5.0")
				e.Skips = append(slices.Clone(e.Skips), bundle("1.2.0"))
			},
			verdict: agree.Stuck, text: "OLM v0 stays, because 1.2.0 could follow but is skipped",
		},
		"a version of the middle is deprecated": {
			mutate: func(p *catalogs.Package) {
				b := *p.Bundles[bundle("1.2.0")]
				b.Deprecation = "old"
				p.Bundles[b.Name] = &b
			},
			verdict: agree.V1Stays, text: "from 1.0.0: OLM v1 stays, because 1.2.0 is deprecated",
		},
		"a higher version than the head is among the entries": {
			mutate: func(p *catalogs.Package) {
				c := p.Channels["stable"]
				c.Entries = append(slices.Clone(c.Entries), catalogs.Entry{Name: bundle("1.6.0")})
				e := entry(p, "1.5.0")
				e.Skips = append(slices.Clone(e.Skips), bundle("1.6.0"))
			},
			verdict: agree.Downgrades, text: "from 1.6.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := compiled(t)
			tc.mutate(p)
			report, err := agree.Check(p, catalogs.Installed{Name: bundle("1.4.0")},
				catalogs.Installed{Name: "nightly", Version: "1.4.5"})
			if err != nil {
				t.Fatal(err)
			}
			err = report.Strict()
			if tc.verdict == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			found := verdicts(report)
			if err == nil || !slices.Contains(found, tc.verdict) {
				t.Errorf("got verdicts %v, want %s among them; strict: %v\n%s", found, tc.verdict, err, graphOf(p))
			}
			if all := strings.Join(texts(report), "\n"); !strings.Contains(all, tc.text) {
				t.Errorf("got texts\n%s\nwant among them %q", all, tc.text)
			}
		})
	}
}

func verdicts(r agree.Report) []agree.Verdict {
	var out []agree.Verdict
	for _, c := range r.Channels {
		for _, route := range c.Routes {
			out = append(out, route.Verdict)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
