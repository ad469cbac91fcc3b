// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compiletest makes random but plausible histories of a package for property tests: versions are added,
// promoted, blocked, unblocked, retired and deprecated, in any order that the ladder allows.
package compiletest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
)

// Package is the name of the package that histories are about.
const Package = "echo-operator"

// Now is the day on which histories happen.
var Now = time.Date(2026, time.November, 21, 0, 0, 0, 0, time.UTC)

// Step is one edit, and the ladder after it.
type Step struct {
	// What says what was done, as in "promote 1.1.0 to fast".
	What   string
	Ladder *ladder.Ladder
}

// History plays n edits that the ladder accepts, beginning with an added version; each step is a ladder of its own. The
// same random numbers give the same history. A ladder need not compile: everything may be blocked.
func History(r *rand.Rand, n int) []Step {
	p := generator{rand: r, ladder: &ladder.Ladder{APIVersion: ladder.APIVersion, Kind: ladder.Kind, Package: Package}}
	if r.IntN(2) == 0 {
		p.ladder.Policy.Upgrades = ladder.Direct
	}
	p.ladder.Channels = ladder.DefaultChannels()[:1+r.IntN(3)]
	var steps []Step
	for tries := 0; len(steps) < n && tries < 100*n; tries++ {
		if what, ok := p.edit(); ok {
			steps = append(steps, Step{What: what, Ladder: p.ladder.Clone()})
		}
	}
	return steps
}

// Installed returns some of what clusters may run besides the versions that the ladder knows: builds that were never
// published, with conventional names and with others.
func Installed(r *rand.Rand, n int) []catalogs.Installed {
	var out []catalogs.Installed
	for i := range n {
		v := semver.Version{Major: uint64(r.IntN(3)), Minor: uint64(r.IntN(5)), Patch: 100 + uint64(i)}
		if r.IntN(2) == 0 {
			out = append(out, catalogs.Installed{Name: Package + ".v" + v.String()})
		} else {
			out = append(out, catalogs.Installed{Name: fmt.Sprintf("custom-build-%d", i), Version: v.String()})
		}
	}
	return out
}

type generator struct {
	rand   *rand.Rand
	ladder *ladder.Ladder
}

// edit tries one edit. Additions and promotions are the most frequent ones.
func (p *generator) edit() (string, bool) {
	if len(p.ladder.Bundles) == 0 {
		return p.add()
	}
	version := p.ladder.Bundles[p.rand.IntN(len(p.ladder.Bundles))].Version
	switch p.rand.IntN(12) {
	case 0, 1, 2, 3:
		return p.add()
	case 4, 5, 6:
		to, err := p.ladder.Promote(version, "")
		return "promote " + version + " to " + to, err == nil
	case 7, 8:
		return "block " + version, p.ladder.Block(p.block(version), Now) == nil
	case 9:
		return "unblock " + version, p.ladder.Unblock(version) == nil
	case 10:
		return "retire " + version, p.ladder.Retire(version, "old") == nil
	default:
		return "deprecate " + version, p.ladder.Deprecate(ladder.Deprecation{Version: version, Message: "old"}) == nil
	}
}

func (p *generator) block(version string) ladder.Block {
	b := ladder.Block{Version: version, Reason: "loses data"}
	if p.rand.IntN(3) == 0 {
		b.Instead = p.ladder.Bundles[p.rand.IntN(len(p.ladder.Bundles))].Version
	}
	return b
}

// add publishes the next patch, minor or major version after any version, so that old lines get fixes as well.
func (p *generator) add() (string, bool) {
	v := semver.Version{Major: 1}
	if all := p.versions(); len(all) > 0 {
		v = all[p.rand.IntN(len(all))]
		if p.rand.IntN(2) == 0 {
			v = slices.MaxFunc(all, semver.Version.Compare)
		}
		switch p.rand.IntN(6) {
		case 0:
			v = semver.Version{Major: v.Major + 1}
		case 1, 2:
			v = semver.Version{Major: v.Major, Minor: v.Minor + 1}
		default:
			v.Patch++
		}
	}
	b := ladder.Bundle{Version: v.String(), Image: Image(v.String())}
	if p.rand.IntN(8) == 0 {
		b.Name = "echo-rebuilt." + v.String()
	}
	before := len(p.ladder.Bundles)
	err := p.ladder.Add(b)
	return "add " + b.Version, err == nil && len(p.ladder.Bundles) > before
}

func (p *generator) versions() []semver.Version {
	var out []semver.Version
	for _, b := range p.ladder.Bundles {
		out = append(out, semver.MustParse(b.Version))
	}
	for _, r := range p.ladder.Retired {
		out = append(out, semver.MustParse(r.Version))
	}
	return out
}

// Image is the image of a version, by a digest that is made up from the version.
func Image(version string) string {
	digest := ""
	for _, c := range version + "................................" {
		digest += fmt.Sprintf("%02x", c)
	}
	return "registry.example.com/bundles/" + Package + "@sha256:" + digest[:64]
}
