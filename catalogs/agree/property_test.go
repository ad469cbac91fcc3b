// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agree_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/agree"
	"github.com/bellwether-dev/bellwether/catalogs/agree/olmv0"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/compile"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
	"github.com/bellwether-dev/bellwether/catalogs/view"
	"github.com/bellwether-dev/bellwether/internal/tools/long"
)

// steps is the number of steps of each random history.
const steps = 30

// histories is the number of random histories.
var histories = long.Cases(10, 200)

// everyCompiled calls check with the compiled graph of every ladder of many random histories that compiles, and with
// everything that a cluster could run of it.
func everyCompiled(t *testing.T, check func(r *rand.Rand, p *catalogs.Package, installed []catalogs.Installed) error) {
	t.Helper()
	for seed := range uint64(histories) {
		r := rand.New(rand.NewPCG(seed, 1))
		var trail []string
		for _, step := range catalogtest.GenerateHistory(r, steps) {
			trail = append(trail, step.Description)
			p, err := compile.Graph(step.Ladder)
			if errors.Is(err, compile.ErrNothingToOffer) {
				continue
			}
			if err == nil {
				err = check(r, p, append(known(step.Ladder), catalogtest.GenerateInstalled(r, 4)...))
			}
			if err != nil {
				t.Fatalf("seed %d after %q, %s: %v\n%s", seed, trail, step.Ladder.Policy.Upgrades, err, graphOf(p))
			}
		}
	}
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

func graphOf(p *catalogs.Package) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p.Channels)) {
		for _, e := range p.Channels[name].Entries {
			deprecation := ""
			if b := p.Bundles[e.Name]; b != nil {
				deprecation = b.Deprecation
			}
			fmt.Fprintf(&text, "%s: %s replaces %q skips %q range %q %s\n", name, e.Name, e.Replaces, e.Skips,
				e.SkipRange, deprecation)
		}
	}
	return text.String()
}

func TestCompiledCatalogsAgree(t *testing.T) {
	everyCompiled(t, func(_ *rand.Rand, p *catalogs.Package, installed []catalogs.Installed) error {
		report, err := agree.Check(p, installed...)
		if err != nil {
			return err
		}
		return report.Strict()
	})
}

// TestBlocksKeepCompiledCatalogsAgreeing blocks versions of the compiled package, as the hub does for its clusters,
// and not of the ladder.
func TestBlocksKeepCompiledCatalogsAgreeing(t *testing.T) {
	everyCompiled(t, func(r *rand.Rand, p *catalogs.Package, installed []catalogs.Installed) error {
		names := slices.Sorted(maps.Keys(p.Bundles))
		var blocks []catalogs.Block
		for range 1 + r.IntN(3) {
			blocks = append(blocks, catalogs.Block{Bundle: names[r.IntN(len(names))], Reason: "test"})
		}
		blocked, err := p.WithBlocked(blocks...)
		if errors.Is(err, catalogs.ErrInvalidPackage) && !goodIn(p, p.DefaultChannel, blocks) {
			return nil // nothing is left of the default channel, and the error says so
		}
		if err != nil {
			return err
		}
		report, err := agree.Check(blocked, installed...)
		if err != nil {
			return fmt.Errorf("with %v blocked: %w", blocks, err)
		}
		// If a block makes a deprecated version the head, only a compiler can remove that deprecation.
		if err := report.Strict(agree.V1Stays); err != nil {
			return fmt.Errorf("with %v blocked: %w\n%s", blocks, err, graphOf(blocked))
		}
		return nil
	})
}

func goodIn(p *catalogs.Package, channel string, blocks []catalogs.Block) bool {
	return slices.ContainsFunc(p.Channels[channel].Entries, func(e catalogs.Entry) bool {
		_, before := p.Blocked(e.Name)
		return !before && !slices.ContainsFunc(blocks, func(b catalogs.Block) bool { return b.Bundle == e.Name })
	})
}

// foreign returns a random package that looks as if it was written manually: a chain of replaces, with some skips
// and ranges.
func foreign(r *rand.Rand) *catalogs.Package {
	p := &catalogs.Package{Name: "p", DefaultChannel: "stable", Channels: map[string]*catalogs.Channel{},
		Bundles: map[string]*catalogs.Bundle{}}
	n := 2 + r.IntN(9)
	for i := range n {
		b := &catalogs.Bundle{Name: fmt.Sprintf("p.v1.%d.0", i), Version: semver.Version{Major: 1, Minor: uint64(i)}}
		if r.IntN(10) == 0 {
			b.Deprecation = "old"
		}
		p.Bundles[b.Name] = b
	}
	for _, name := range []string{"stable", "fast"}[:1+r.IntN(2)] {
		p.Channels[name] = &catalogs.Channel{Name: name, Entries: foreignEntries(r, n)}
	}
	return p
}

func foreignEntries(r *rand.Rand, n int) []catalogs.Entry {
	var out []catalogs.Entry
	for i := range n {
		e := catalogs.Entry{Name: fmt.Sprintf("p.v1.%d.0", i)}
		if i > 0 && r.IntN(6) > 0 {
			e.Replaces = fmt.Sprintf("p.v1.%d.0", i-1-r.IntN(min(i, 2)))
		}
		for j := range i {
			if r.IntN(5) == 0 {
				e.Skips = append(e.Skips, fmt.Sprintf("p.v1.%d.0", j))
			}
		}
		if i > 0 && r.IntN(4) == 0 {
			low := r.IntN(i)
			e.SkipRange = fmt.Sprintf(">=1.%d.0 <1.%d.0", low, low+1+r.IntN(i-low))
		}
		out = append(out, e)
	}
	return out
}

// everyForeign calls check with many valid packages that were not compiled.
func everyForeign(t *testing.T, check func(r *rand.Rand, p *catalogs.Package) error) {
	t.Helper()
	valid, tried := 0, long.Cases(4000, 40_000)
	for seed := range uint64(tried) {
		r := rand.New(rand.NewPCG(seed, 5))
		p := foreign(r)
		if p.Validate() != nil {
			continue
		}
		valid++
		if err := check(r, p); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, graphOf(p))
		}
	}
	if valid < tried/8 {
		t.Errorf("only %d of %d packages are valid", valid, tried)
	}
}

func TestForeignPackagesCoverEveryVerdict(t *testing.T) {
	seen := map[agree.Verdict]int{}
	everyForeign(t, func(_ *rand.Rand, p *catalogs.Package) error {
		report, err := agree.Check(p)
		if err != nil {
			return err
		}
		for _, c := range report.Channels {
			for _, route := range c.Routes {
				seen[route.Verdict]++
				if err := consistent(c, route); err != nil {
					return err
				}
			}
		}
		return nil
	})
	for _, v := range []agree.Verdict{agree.Agrees, agree.V1Differs, agree.V0Differs, agree.V1Stays, agree.Stuck} {
		if seen[v] == 0 {
			t.Errorf("no package was found to be %s: %v", v, seen)
		}
	}
}

// consistent checks properties that a route has in every valid graph.
func consistent(c agree.Channel, r agree.Route) error {
	switch {
	case r.Plan.End != agree.Arrives:
		return fmt.Errorf("from %q there is no plan, in a graph whose every entry leads to the head", r.Installed.Name)
	case r.V0.End == agree.Loops || r.V1.End == agree.Loops:
		return fmt.Errorf("from %q OLM loops: %v, %v", r.Installed.Name, r.V0.Path, r.V1.Path)
	case (r.V0.End == agree.Arrives) != (r.V0.Next() == c.Head || r.Installed.Name == c.Head || len(r.V0.Path) > 1):
		return fmt.Errorf("from %q OLM v0 gets onto the chain with %v and does not follow it", r.Installed.Name,
			r.V0.Path)
	case len(r.V0.Path) > 0 && len(r.Plan.Path) > len(r.V0.Path):
		return fmt.Errorf("from %q the plan %v takes more hops than OLM v0 does, %v", r.Installed.Name, r.Plan.Path,
			r.V0.Path)
	}
	return nil
}

// TestOLMv0FollowsThePlanInViews runs OLM's resolver on the views that an agent serves: it must take the planned hop
// of a view, and stay in a view without a hop, independently of its choice in the published graph.
func TestOLMv0FollowsThePlanInViews(t *testing.T) {
	everyForeign(t, func(_ *rand.Rand, p *catalogs.Package) error {
		for _, b := range p.Bundles {
			b.Image = "registry.example.com/p@sha256:0000000000000000000000000000000000000000000000000000000000000000"
		}
		report, err := agree.Check(p, catalogs.Installed{Name: "p.v0.5.0"})
		if err != nil {
			return err
		}
		for _, c := range report.Channels {
			for _, route := range c.Routes {
				if err := viewed(p, c.Name, route); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func viewed(p *catalogs.Package, channel string, r agree.Route) error {
	v, err := view.Build(view.Input{Package: p, Channel: channel, Installed: r.Installed, Next: r.Plan.Next()})
	if err != nil {
		return err
	}
	if len(v.Packages) == 0 {
		return nil // nothing is installed and nothing is to be
	}
	c, err := olmv0.New(v.Packages[0], v.Channel)
	if err != nil {
		return err
	}
	next, err := c.Next(r.Installed)
	if err != nil || next != r.Plan.Next() {
		return fmt.Errorf("in the view OLM v0 goes from %q to %q (%w), not to %q", r.Installed.Name, next, err,
			r.Plan.Next())
	}
	return nil
}

// TestBlocksStrandNoClusterInForeignPackages blocks a version of a package that was not compiled: clusters that
// reached the head before must still reach it, unless there is no newer good version; and no cluster must be upgraded
// to the blocked version.
func TestBlocksStrandNoClusterInForeignPackages(t *testing.T) {
	blocked := 0
	everyForeign(t, func(r *rand.Rand, p *catalogs.Package) error {
		names := slices.Sorted(maps.Keys(p.Bundles))
		bad := names[r.IntN(len(names))]
		after, err := p.WithBlocked(catalogs.Block{Bundle: bad, Reason: "test"})
		if err != nil {
			return fmt.Errorf("block %s: %w", bad, err)
		}
		blocked++
		between := []catalogs.Installed{{Name: "other", Version: fmt.Sprintf("1.%d.5", r.IntN(9))},
			{Name: "early", Version: "0.1.0"}}
		old, err := agree.Check(p, between...)
		if err != nil {
			return err
		}
		report, err := agree.Check(after, between...)
		if err != nil {
			return fmt.Errorf("block %s: %w", bad, err)
		}
		if err := noWorse(p, old, report, bad); err != nil {
			return fmt.Errorf("block %s: %w\n%s", bad, err, graphOf(after))
		}
		return nil
	})
	if blocked < 500 {
		t.Errorf("only %d blocks", blocked)
	}
}

// noWorse compares the reports before and after a block. A version that is not in the channel can lose its path if
// only the skipRange of a blocked head contained it, because no remaining version declares that it can replace it.
func noWorse(p *catalogs.Package, old, report agree.Report, bad string) error {
	for _, c := range report.Channels {
		was := old.Channels[slices.IndexFunc(old.Channels, func(o agree.Channel) bool { return o.Name == c.Name })]
		for _, route := range c.Routes {
			i := slices.IndexFunc(was.Routes,
				func(o agree.Route) bool { return o.Installed.Name == route.Installed.Name })
			_, entry := p.Channels[c.Name].Entry(route.Installed.Name)
			excused := route.Verdict == agree.Waits || (bad == was.Head && !entry)
			switch {
			case slices.Contains(route.Plan.Path, bad) || slices.Contains(route.V0.Path, bad) ||
				slices.Contains(route.V1.Path, bad):
				return fmt.Errorf("from %q somebody goes to the blocked version: %v, %v, %v", route.Installed.Name,
					route.Plan.Path, route.V0.Path, route.V1.Path)
			case !excused && was.Routes[i].V0.End == agree.Arrives && route.V0.End != agree.Arrives:
				return fmt.Errorf("from %q OLM v0 got to the head, and now does not: %s", route.Installed.Name,
					route.Text)
			case !excused && was.Routes[i].Plan.End == agree.Arrives && route.Plan.End != agree.Arrives:
				return fmt.Errorf("from %q there is no plan any more: %s", route.Installed.Name, route.Text)
			case route.Verdict == agree.Downgrades:
				return errors.New(route.Text)
			}
		}
	}
	return nil
}
