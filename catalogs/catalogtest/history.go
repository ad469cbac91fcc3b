// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
)

// HistoryPackage is the name of the package in all histories.
const HistoryPackage = "echo-operator"

// HistoryDay is the day of all histories.
var HistoryDay = time.Date(2026, time.November, 21, 0, 0, 0, 0, time.UTC)

// HistoryStep is one edit, and the ladder after it.
type HistoryStep struct {
	// Description describes the edit, such as "promote 1.1.0 to fast".
	Description string
	Ladder      *ladder.Ladder
}

// GenerateHistory applies up to n edits that the ladder accepts, beginning with an added version. Each step has its own
// copy of the ladder. The same random numbers give the same history. A ladder might not compile, because all its
// versions might be blocked.
func GenerateHistory(r *rand.Rand, n int) []HistoryStep {
	p := historyGenerator{rand: r, ladder: &ladder.Ladder{APIVersion: ladder.APIVersion, Kind: ladder.Kind,
		Package: HistoryPackage}}
	if r.IntN(2) == 0 {
		p.ladder.Policy.Upgrades = ladder.Direct
	}
	p.ladder.Channels = ladder.DefaultChannels()[:1+r.IntN(3)]
	var steps []HistoryStep
	for tries := 0; len(steps) < n && tries < 100*n; tries++ {
		if description, ok := p.tryEdit(); ok {
			steps = append(steps, HistoryStep{Description: description, Ladder: p.ladder.Clone()})
		}
	}
	return steps
}

// GenerateInstalled returns n bundles that clusters could run besides the versions of the ladder: builds that were
// never published, with conventional and other names.
func GenerateInstalled(r *rand.Rand, n int) []catalogs.Installed {
	var out []catalogs.Installed
	for i := range n {
		v := semver.Version{Major: uint64(r.IntN(3)), Minor: uint64(r.IntN(5)), Patch: 100 + uint64(i)}
		if r.IntN(2) == 0 {
			out = append(out, catalogs.Installed{Name: HistoryPackage + ".v" + v.String()})
		} else {
			out = append(out, catalogs.Installed{Name: fmt.Sprintf("custom-build-%d", i), Version: v.String()})
		}
	}
	return out
}

type historyGenerator struct {
	rand   *rand.Rand
	ladder *ladder.Ladder
}

// tryEdit tries one edit and describes it; false if the ladder does not accept the edit. Additions and promotions are
// the most frequent edits.
func (p *historyGenerator) tryEdit() (string, bool) {
	if len(p.ladder.Bundles) == 0 {
		return p.addVersion()
	}
	version := p.ladder.Bundles[p.rand.IntN(len(p.ladder.Bundles))].Version
	switch p.rand.IntN(12) {
	case 0, 1, 2, 3:
		return p.addVersion()
	case 4, 5, 6:
		to, err := p.ladder.Promote(version, "")
		return "promote " + version + " to " + to, err == nil
	case 7, 8:
		return "block " + version, p.ladder.Block(p.newBlock(version), HistoryDay) == nil
	case 9:
		return "unblock " + version, p.ladder.Unblock(version) == nil
	case 10:
		return "retire " + version, p.ladder.Retire(version, "old") == nil
	default:
		return "deprecate " + version, p.ladder.Deprecate(ladder.Deprecation{Version: version, Message: "old"}) == nil
	}
}

func (p *historyGenerator) newBlock(version string) ladder.Block {
	b := ladder.Block{Version: version, Reason: "loses data"}
	if p.rand.IntN(3) == 0 {
		b.Instead = p.ladder.Bundles[p.rand.IntN(len(p.ladder.Bundles))].Version
	}
	return b
}

// NextVersion returns a version that follows v, at random: most often the next patch version, least often the next
// major version.
func NextVersion(r *rand.Rand, v semver.Version) semver.Version {
	switch r.IntN(6) {
	case 0:
		return semver.Version{Major: v.Major + 1}
	case 1, 2:
		return semver.Version{Major: v.Major, Minor: v.Minor + 1}
	default:
		v.Patch++
		return v
	}
}

// addVersion adds the next patch, minor or major version after the highest version or, so that old minor versions get
// fixes too, after a random version. It describes the edit; false if the ladder refuses the version or already has it.
func (p *historyGenerator) addVersion() (string, bool) {
	v := semver.Version{Major: 1}
	if all := p.listVersions(); len(all) > 0 {
		v = all[p.rand.IntN(len(all))]
		if p.rand.IntN(2) == 0 {
			v = slices.MaxFunc(all, semver.Version.Compare)
		}
		v = NextVersion(p.rand, v)
	}
	b := ladder.Bundle{Version: v.String(), Image: HistoryImage(v.String())}
	if p.rand.IntN(8) == 0 {
		b.Name = "echo-rebuilt." + v.String()
	}
	before := len(p.ladder.Bundles)
	err := p.ladder.Add(b)
	return "add " + b.Version, err == nil && len(p.ladder.Bundles) > before
}

func (p *historyGenerator) listVersions() []semver.Version {
	var out []semver.Version
	for _, b := range p.ladder.Bundles {
		out = append(out, semver.MustParse(b.Version))
	}
	for _, r := range p.ladder.Retired {
		out = append(out, semver.MustParse(r.Version))
	}
	return out
}

// HistoryImage returns the image of a version, with a digest that is derived from the version.
func HistoryImage(version string) string {
	digest := ""
	for _, c := range version + strings.Repeat(".", 32) { // a digest has 64 hexadecimal digits
		digest += fmt.Sprintf("%02x", c)
	}
	return "registry.example.com/bundles/" + HistoryPackage + "@sha256:" + digest[:64]
}
