// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agree_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/agree"
)

// parse makes a package "p" from a notation: a line per entry, as in
//
//	stable: 1.2.0 replaces 1.1.0 skips 1.0.0,1.0.1 range >=1.0.0_<1.1.0 deprecated
//
// where a bundle is named "p.v1.2.0". Nothing checks it: broken packages are wanted too.
func parse(notation string) *catalogs.Package {
	p := &catalogs.Package{Name: "p", DefaultChannel: "stable", Channels: map[string]*catalogs.Channel{},
		Bundles: map[string]*catalogs.Bundle{}}
	for line := range strings.Lines(notation) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		channel, version := strings.TrimSuffix(words[0], ":"), words[1]
		if p.Channels[channel] == nil {
			p.Channels[channel] = &catalogs.Channel{Name: channel}
		}
		e := catalogs.Entry{Name: bundle(version)}
		b := p.Bundles[e.Name]
		if b == nil {
			b = &catalogs.Bundle{Name: e.Name, Version: semver.MustParse(version)}
			p.Bundles[e.Name] = b
		}
		for i, w := range words {
			switch w {
			case "replaces":
				e.Replaces = bundle(words[i+1])
			case "skips":
				for s := range strings.SplitSeq(words[i+1], ",") {
					e.Skips = append(e.Skips, bundle(s))
				}
			case "range":
				e.SkipRange = strings.ReplaceAll(words[i+1], "_", " ")
			case "deprecated":
				b.Deprecation = "old"
			}
		}
		p.Channels[channel].Entries = append(p.Channels[channel].Entries, e)
	}
	return p
}

func bundle(version string) string { return "p.v" + version }

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		graph     string
		installed []catalogs.Installed
		blocks    []catalogs.Block
		// want has the texts of all routes whose verdict is not Agrees, with the verdict.
		want []string
	}{
		"a chain": {
			graph: `stable: 1.0.0
				stable: 1.1.0 replaces 1.0.0
				stable: 1.2.0 replaces 1.1.0`,
		},
		"a head that replaces everything by its range": {
			graph: `stable: 1.0.0
				stable: 1.1.0 replaces 1.0.0
				stable: 1.2.0 replaces 1.1.0 range <1.2.0`,
			installed: []catalogs.Installed{{Name: "p.v0.1.0"}, {Name: "other", Version: "1.0.5"}},
		},
		"a ladder": {
			graph: `candidate: 1.0.0
				candidate: 1.1.0 replaces 1.0.0
				candidate: 1.2.0 replaces 1.1.0
				candidate: 1.3.0 replaces 1.2.0
				stable: 1.0.0
				stable: 1.2.0 replaces 1.0.0 skips 1.1.0`,
			want: []string{"waits: channel stable, from 1.3.0: it is higher than the head 1.2.0, and waits for a " +
				"newer version"},
		},
		"a blocked version with a good one after it": {
			graph: `stable: 1.0.0
				stable: 1.1.0 replaces 1.0.0
				stable: 1.2.0 replaces 1.1.0`,
			blocks: []catalogs.Block{{Version: "1.1.0", Reason: "it leaks"}},
		},
		"a blocked head": {
			graph: `stable: 1.0.0
				stable: 1.1.0 replaces 1.0.0`,
			blocks: []catalogs.Block{{Version: "1.1.0", Reason: "it leaks"}},
			want: []string{
				"waits: channel stable, from 1.1.0 (p.v1.1.0): it is higher than the head 1.0.0, and waits for a " +
					"newer version",
				"waits: no channel chosen, from 1.1.0 (p.v1.1.0): it is higher than every channel's head, and waits " +
					"for a newer version",
			},
		},
		"OLM v1 leaps to a skipped version that OLM v0 avoids": {
			graph: `stable: 1.0.0
				stable: 1.1.0 replaces 1.0.0
				stable: 1.1.1 replaces 1.0.0
				stable: 1.2.0 replaces 1.1.0 skips 1.1.1`,
			want: []string{"v1-differs: channel stable, from 1.0.0: Bellwether and OLM v0 go to 1.1.0, OLM v1 to " +
				"1.1.1; all end at the head 1.2.0"},
		},
		"OLM v0 takes what is nearest to the head, the plan what is fewer hops": {
			graph: `stable: 1.0.0
				stable: 1.1.0 replaces 1.0.0
				stable: 1.2.0 replaces 1.1.0
				stable: 1.3.0 replaces 1.2.0 range <1.1.0
				stable: 1.4.0 replaces 1.3.0
				stable: 1.5.0 replaces 1.4.0
				stable: 1.6.0 replaces 1.5.0 range =1.1.0`,
			want: []string{"v0-differs: channel stable, from 1.0.0: Bellwether goes to 1.1.0, OLM v0 and OLM v1 to " +
				"1.3.0; all end at the head 1.6.0"},
		},
		"OLM v1 stays before a deprecated version": {
			graph: `stable: 1.0.0
				stable: 1.1.0 replaces 1.0.0 deprecated
				stable: 1.2.0 replaces 1.1.0`,
			want: []string{
				"v1-stays: channel stable, from 1.0.0: OLM v1 stays, because 1.1.0 is deprecated; OLM v0 continues " +
					"to the head 1.2.0",
				"v1-stays: no channel chosen, from 1.0.0: OLM v1 stays, because 1.1.0 is deprecated",
			},
		},
		"a deprecated head": {
			graph: `stable: 1.0.0
				stable: 1.1.0 replaces 1.0.0 deprecated`,
			want: []string{
				"v1-stays: channel stable, fresh install: OLM v1 stops at 1.0.0, because 1.1.0 is deprecated; OLM v0 " +
					"continues to the head 1.1.0",
				"v1-stays: channel stable, from 1.0.0: OLM v1 stays, because 1.1.0 is deprecated; OLM v0 continues " +
					"to the head 1.1.0",
				"v1-stays: no channel chosen, fresh install: OLM v1 stops at 1.0.0, because 1.1.0 is deprecated",
				"v1-stays: no channel chosen, from 1.0.0: OLM v1 stays, because 1.1.0 is deprecated",
			},
		},
		"a version that only a skipped one replaces": {
			graph: `stable: 1.0.0
				stable: 1.0.1 skips 1.0.0
				stable: 1.1.0 skips 1.0.1`,
			want: []string{"stuck: channel stable, from 1.0.0: OLM v0 stays, because 1.0.1 could follow but is " +
				"skipped; the head is 1.1.0"},
		},
		"a version that has left, and no range for it": {
			graph: `stable: 1.0.0
				stable: 1.1.0 replaces 1.0.0`,
			installed: []catalogs.Installed{{Name: "p.v0.9.0"}},
			want: []string{
				"not-in-channel: channel stable, from 0.9.0 (p.v0.9.0): it is not in the channel, and nothing " +
					"there can " +
					"replace it; the head is 1.1.0",
				"not-in-channel: no channel chosen, from 0.9.0 (p.v0.9.0): it is not in the catalog, and nothing " +
					"there can " +
					"replace it",
			},
		},
		"the head by another name": {
			graph: `stable: 1.0.0
				stable: 1.1.0 replaces 1.0.0 range <1.1.0`,
			installed: []catalogs.Installed{{Name: "mine", Version: "1.1.0"}},
			want: []string{"waits: channel stable, from 1.1.0 (mine): it has the version of the head 1.1.0 " +
				"under another name, and waits for a newer version; OLM v1 treats them as the same"},
		},
		"what is installed has no version, which OLM takes for 0.0.0": {
			graph: `stable: 1.0.0
				stable: 1.1.0 replaces 1.0.0 range <1.1.0`,
			installed: []catalogs.Installed{{Name: "mine"}},
		},
		"replaces that runs downwards": {
			graph: `stable: 1.2.0
				stable: 1.1.0 replaces 1.2.0`,
			want: []string{
				"stuck: channel stable, fresh install: OLM v1 stops at 1.2.0; the head is 1.1.0",
				"downgrades: channel stable, from 1.2.0: Bellwether downgrades from 1.2.0 to 1.1.0, OLM v0 " +
					"downgrades " +
					"from 1.2.0 to 1.1.0, OLM v1 stays; the head is 1.1.0",
				"stuck: no channel chosen, fresh install: OLM v1 stops at 1.2.0, and does not reach the head of a " +
					"channel",
				"stuck: no channel chosen, from 1.2.0: OLM v1 stays, and does not reach the head of a channel",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := parse(tc.graph)
			if err := p.Validate(); err != nil {
				t.Fatal(err)
			}
			p, err := p.WithBlocked(tc.blocks...)
			if err != nil {
				t.Fatal(err)
			}
			report, err := agree.Check(p, tc.installed...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, texts(report)); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			strict := slices.ContainsFunc(tc.want, func(s string) bool { return !strings.HasPrefix(s, "waits") })
			if err := report.Strict(); (err != nil) != strict || (err != nil && !errors.Is(err, agree.ErrDisagree)) {
				t.Errorf("strict: got %v, want an error: %t", err, strict)
			}
		})
	}
}

func texts(r agree.Report) []string {
	var out []string
	add := func(routes []agree.Route) {
		for _, route := range routes {
			if (route.Text == "") != (route.Verdict == agree.Agrees) {
				out = append(out, fmt.Sprintf("verdict %s with text %q", route.Verdict, route.Text))
			} else if route.Text != "" {
				out = append(out, fmt.Sprintf("%s: %s", route.Verdict, route.Text))
			}
		}
	}
	for _, c := range r.Channels {
		add(c.Routes)
	}
	add(r.Unpinned)
	return out
}

// The memory of a check must grow linearly with the number of versions, because packages have thousands of versions.
func TestCheckOfManyVersions(t *testing.T) {
	allocated := func(versions int) uint64 {
		var text strings.Builder
		for j := range versions {
			fmt.Fprintf(&text, "stable: 1.%d.0", j)
			if j > 0 {
				fmt.Fprintf(&text, " replaces 1.%d.0 range >=1.%d.0_<1.%d.0", j-1, j-1, j)
			}
			text.WriteByte('\n')
		}
		p := parse(text.String())
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		report, err := agree.Check(p)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		if err := report.Strict(); err != nil {
			t.Fatal(err)
		}
		routes := report.Channels[0].Routes
		if got := len(routes[len(routes)-1].V0.Path); got != versions-1 {
			t.Fatalf("the path from the lowest version has %d hops, want %d", got, versions-1)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	few, many := allocated(200), allocated(800)
	t.Logf("200 versions take %d KiB, 800 take %d KiB", few>>10, many>>10)
	if many > 8*few {
		t.Errorf("four times the versions take %d times the memory", many/few)
	}
}
