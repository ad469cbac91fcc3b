// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/agree"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/compile"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
	"github.com/bellwether-dev/bellwether/internal/tools/long"
)

// steps is the number of steps of each random history.
const steps = 30

// histories is the number of random histories.
var histories = long.Cases(12, 300)

// everyGraph calls check with the graph of every ladder of many random histories that compiles.
func everyGraph(t *testing.T, check func(t *testing.T, l *ladder.Ladder, p *catalogs.Package)) {
	t.Helper()
	compiled, empty := 0, 0
	for seed := range uint64(histories) {
		var trail []string
		for _, step := range catalogtest.GenerateHistory(rand.New(rand.NewPCG(seed, 1)), steps) {
			trail = append(trail, step.Description)
			p, err := compile.Graph(step.Ladder)
			if errors.Is(err, compile.ErrNothingToOffer) {
				empty++
				continue
			}
			if err != nil {
				t.Fatalf("seed %d after %q: %v", seed, trail, err)
			}
			compiled++
			check(t, step.Ladder, p)
			if t.Failed() {
				t.Fatalf("seed %d after %q, %s", seed, trail, step.Ladder.Policy.Upgrades)
			}
		}
	}
	if compiled < histories*steps/2 || empty == 0 {
		t.Errorf("%d ladders compiled and %d had nothing to offer: the histories do not try enough", compiled, empty)
	}
}

func versionOf(t *testing.T, p *catalogs.Package, i catalogs.Installed) semver.Version {
	t.Helper()
	if b := p.Bundles[i.Name]; b != nil {
		return b.Version
	}
	v, ok := i.SemVer()
	if !ok {
		t.Fatalf("%q has no version", i.Name)
	}
	return v
}

// known returns every version of the ladder, as a cluster would report it.
func known(l *ladder.Ladder) []catalogs.Installed {
	var out []catalogs.Installed
	for _, b := range l.Bundles {
		out = append(out, catalogs.Installed{Name: l.BundleName(b.Name, b.Version), Version: b.Version})
	}
	for _, r := range l.Retired {
		out = append(out, catalogs.Installed{Name: l.BundleName(r.Name, r.Version), Version: r.Version})
	}
	return out
}

func TestEveryVersionReachesTheHeadWithoutDowngrade(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	everyGraph(t, func(t *testing.T, l *ladder.Ladder, p *catalogs.Package) {
		everyone := append(known(l), catalogtest.GenerateInstalled(r, 4)...)
		for _, c := range p.Channels {
			head, err := c.Head()
			if err != nil {
				t.Errorf("channel %s: %v", c.Name, err)
				continue
			}
			for _, i := range everyone {
				checkWay(t, p, c.Name, i, head)
			}
		}
	})
}

func TestBothOLMsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	everyGraph(t, func(t *testing.T, l *ladder.Ladder, p *catalogs.Package) {
		report, err := agree.Check(p, append(known(l), catalogtest.GenerateInstalled(r, 2)...)...)
		if err != nil {
			t.Error(err)
		}
		for _, d := range report.Disagreements() {
			t.Errorf("%s: %s", d.Verdict, d.Text)
		}
	})
}

func checkWay(t *testing.T, p *catalogs.Package, channel string, from catalogs.Installed, head string) {
	t.Helper()
	start, top := versionOf(t, p, from), p.Bundles[head].Version
	path, err := p.PathFrom(channel, from, head)
	switch {
	case start.GT(top):
		if err == nil {
			t.Errorf("channel %s leads %v down to %s", channel, from, head)
		}
		return
	case start.EQ(top) && from.Name != head: // a build of the head by another name has nowhere to go
		return
	case err != nil:
		t.Errorf("channel %s: %v", channel, err)
		return
	}
	at := start
	for _, hop := range path {
		next := p.Bundles[hop]
		if !next.Version.GT(at) {
			t.Errorf("channel %s: the way %q from %v does not lead up at %s", channel, path, from, hop)
		}
		if _, blocked := p.Blocked(hop); blocked {
			t.Errorf("channel %s: the way %q from %v leads through %s, which is blocked", channel, path, from, hop)
		}
		at = next.Version
	}
}

func TestHeadIsHighestUnblockedVersion(t *testing.T) {
	everyGraph(t, func(t *testing.T, l *ladder.Ladder, p *catalogs.Package) {
		for _, name := range l.ListChannels() {
			want := ""
			var highest semver.Version
			for _, b := range l.Bundles {
				_, blocked := l.Blocked(b.Version)
				v := semver.MustParse(b.Version)
				if !blocked && l.Reaches(b.Channel, name) && (want == "" || v.GT(highest)) {
					want, highest = l.BundleName(b.Name, b.Version), v
				}
			}
			got := ""
			if c := p.Channels[name]; c != nil {
				got, _ = c.Head()
			}
			if got != want {
				t.Errorf("the head of %s is %q, want %q", name, got, want)
			}
		}
	})
}

func TestDirectUpgradeIsOneHop(t *testing.T) {
	everyGraph(t, func(t *testing.T, l *ladder.Ladder, p *catalogs.Package) {
		for _, c := range p.Channels {
			routes, err := p.Routes(c.Name, known(l)...)
			if err != nil {
				t.Error(err)
			}
			for name, r := range routes {
				if l.Policy.Upgrades == ladder.Direct && r.Hops > 1 {
					t.Errorf("channel %s: from %s it is %d hops", c.Name, name, r.Hops)
				}
			}
		}
	})
}

// Blocking a version in the ladder must have the same effect as blocking it in the compiled catalog: a hub that
// blocks a version must not send clusters along another path than the next published catalog. With deprecated
// versions the hub's path can be longer.
func TestLadderBlocksEqualCatalogBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	everyGraph(t, func(t *testing.T, l *ladder.Ladder, _ *catalogs.Package) {
		l = l.Clone()
		l.Deprecations = nil
		p, err := compile.Graph(l)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			b := l.Bundles[r.IntN(len(l.Bundles))]
			later := l.Clone()
			if later.Block(ladder.Block{Version: b.Version, Reason: "loses data"}, catalogtest.HistoryDay) != nil {
				continue
			}
			want, err := compile.Graph(later)
			if err != nil {
				continue
			}
			got, err := p.WithBlocked(catalogs.Block{Version: b.Version, Reason: "loses data"})
			if err != nil {
				t.Errorf("block %s: %v", b.Version, err)
				continue
			}
			if diff := cmp.Diff(allRoutes(t, want, known(l)), allRoutes(t, got, known(l))); diff != "" {
				t.Errorf("block %s: routes of the ladder (-) and of the catalog (+):\n%s", b.Version, diff)
			}
		}
	})
}

func allRoutes(t *testing.T, p *catalogs.Package, from []catalogs.Installed) map[string]map[string]catalogs.Route {
	t.Helper()
	out := map[string]map[string]catalogs.Route{}
	for name := range p.Channels {
		routes, err := p.Routes(name, from...)
		if err != nil {
			t.Error(err)
		}
		out[name] = routes
	}
	return out
}

func TestOrderInFileDoesNotMatter(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	everyGraph(t, func(t *testing.T, l *ladder.Ladder, p *catalogs.Package) {
		shuffled := l.Clone()
		r.Shuffle(len(shuffled.Bundles), func(i, j int) {
			shuffled.Bundles[i],
				shuffled.Bundles[j] = shuffled.Bundles[j], shuffled.Bundles[i]
		})
		r.Shuffle(len(shuffled.Blocks), func(i, j int) {
			shuffled.Blocks[i], shuffled.Blocks[j] = shuffled.Blocks[j],
				shuffled.Blocks[i]
		})
		again, err := compile.Graph(shuffled)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWaitingVersionsHaveNoPath(t *testing.T) {
	everyGraph(t, func(t *testing.T, l *ladder.Ladder, p *catalogs.Package) {
		waiting, err := compile.WaitingVersions(l)
		if err != nil {
			t.Error(err)
		}
		for name := range p.Channels {
			routes, err := p.Routes(name, known(l)...)
			if err != nil {
				t.Error(err)
			}
			var want, got []string
			for _, i := range known(l) {
				if reached(l, i.Version, name) && routes[i.Name].Hops < 0 {
					want = append(want, i.Name)
				}
			}
			for _, w := range waiting {
				if w.Channel == name {
					got = append(got, w.Bundle)
				}
			}
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("channel %s: without a way (-) and reported (+):\n%s", name, diff)
			}
		}
	})
}

func reached(l *ladder.Ladder, version, channel string) bool {
	for _, b := range l.Bundles {
		if b.Version == version {
			return l.Reaches(b.Channel, channel)
		}
	}
	for _, r := range l.Retired {
		if r.Version == version {
			return l.Reaches(r.Channel, channel)
		}
	}
	panic(fmt.Sprintf("no version %s", version))
}
