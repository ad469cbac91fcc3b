// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agree compares where OLM v0, OLM v1 and Bellwether take a cluster, from every version of a package, in every
// channel, until each of them comes to rest.
//
// Its input is a package and, if wanted, what clusters run besides the package's own bundles. OLM v0's answer is that
// of its own resolver (package olmv0), OLM v1's that of its rules (package olmv1), and Bellwether's is
// catalogs.Package.Routes, asked again after each upgrade, as the agent does. The package judges graphs only: it
// changes nothing, fetches nothing, and the same input gives the same report.
package agree

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/agree/olmv0"
	"github.com/bellwether-dev/bellwether/catalogs/agree/olmv1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// ErrDisagree says that the two OLMs and Bellwether do not go the same way, or do not get to the head.
var ErrDisagree = errors.New("the upgrade paths disagree")

// Verdict says how the three ways of one installed version compare.
type Verdict string

const (
	// Agrees means that all make the same next hop, and all end at the head.
	Agrees Verdict = "agrees"
	// Waits means that nothing in the channel is newer than the version. It is a block without an upgrade path, another
	// channel's version, or the head's by another name. Any move would be a downgrade.
	Waits Verdict = "waits"
	// Apart means that all stay, since nothing in the channel can replace a version that the channel does not have.
	Apart Verdict = "apart"
	// V1Leaps means that OLM v0 goes as planned, OLM v1 takes another hop, and all end at the head.
	V1Leaps Verdict = "v1-leaps"
	// Detours means that OLM v0 takes another hop than planned, and all end at the head.
	Detours Verdict = "detours"
	// V1Holds means that OLM v1 stays, since it prefers a version that is not deprecated to a higher one that is.
	V1Holds Verdict = "v1-holds"
	// Stuck means that at least one of the three never gets to the head.
	Stuck Verdict = "stuck"
	// Downgrades means that at least one of the three would go to a lower version on its way.
	Downgrades Verdict = "downgrades"
	// ToBlocked means that at least one of the three would go to a blocked version.
	ToBlocked Verdict = "to-blocked"
)

// Report is how the ways of a package compare.
type Report struct {
	Package string
	// Channels are sorted by name.
	Channels []Channel
	// Unpinned are the ways of OLM v1 alone, for a ClusterExtension that names no channel and so goes along the edges
	// of all of them. It agrees when it ends at the head of some channel. Order as in Channel.
	Unpinned []Route
}

// Channel is how the ways of one channel compare.
type Channel struct {
	Name, Head string
	// Routes start with that of a fresh install, which has no name; then the highest version comes first.
	Routes []Route
}

// Route compares the ways of one installed version.
type Route struct {
	Installed catalogs.Installed
	// Plan is Bellwether's way; it and V0 are empty among Report.Unpinned.
	Plan, V0, V1 Walk
	Verdict      Verdict
	// Text says what differs, for people: one line. It is empty where the verdict is Agrees.
	Text string
}

// Walk is what comes after an installed bundle, hop by hop.
type Walk struct {
	Path []string
	// End says how the walk ended; the last of Path is where, or the installed bundle if Path is empty.
	End End
	// Err is why there was no further hop, where that was an error.
	Err error
}

// Next is the first hop; empty when there is none.
func (w Walk) Next() string {
	if len(w.Path) == 0 {
		return ""
	}
	return w.Path[0]
}

// End says how a walk ended.
type End string

const (
	// Arrives at the head, and stays there.
	Arrives End = "arrives"
	// Stops short of the head.
	Stops End = "stops"
	// Loops comes to a bundle for the second time.
	Loops End = "loops"
)

// Disagreement is one route that is not as it should be.
type Disagreement struct {
	// Channel is empty for a ClusterExtension that names none.
	Channel   string
	Installed catalogs.Installed
	Verdict   Verdict
	Text      string
}

// Check compares the ways of all bundles of a package, of those it blocks, and of what else is installed, in every
// channel. Of several installed with one name the first counts, and a bundle's version is that of the catalog if it has
// one. The error wraps catalogs.ErrInvalidPackage: a channel has no head, or several.
//
// It asks OLM v0's resolver once per channel, about all versions; a package of 30 versions in 3 channels takes a few
// milliseconds.
func Check(p *catalogs.Package, installed ...catalogs.Installed) (Report, error) {
	s := newSubject(p, installed)
	report := Report{Package: p.Name}
	heads := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(p.Channels)) {
		c, err := s.channel(name)
		if err != nil {
			return Report{}, fmt.Errorf("check channel %q of package %q: %w", name, p.Name, err)
		}
		heads[c.Head] = true
		report.Channels = append(report.Channels, c)
	}
	unpinned, err := s.unpinned(heads)
	if err != nil {
		return Report{}, fmt.Errorf("check package %q: %w", p.Name, err)
	}
	report.Unpinned = unpinned
	return report, nil
}

// Disagreements returns every route on which the two OLMs and Bellwether differ, or do not get to the head. Waits and
// Apart are none: all three stay.
func (r Report) Disagreements() []Disagreement { return r.except(Agrees, Waits, Apart) }

// Strict returns an error unless every version gets to the head of every channel by the same hops everywhere, which is
// what a compiled catalog promises. Versions that nothing is newer than may wait. Further verdicts can be accepted: who
// deprecates a channel's head, for instance, cannot but accept V1Holds. The error wraps ErrDisagree and says what
// differs; after a few it counts.
func (r Report) Strict(accepted ...Verdict) error {
	found := r.except(append(accepted, Agrees, Waits)...)
	if len(found) == 0 {
		return nil
	}
	const listed = 8
	var lines []string
	for _, d := range found {
		lines = append(lines, d.Text)
	}
	return fmt.Errorf("%w in package %q: %s", ErrDisagree, r.Package,
		strings.Join(phrase.Limit(lines, listed), "; "))
}

func (r Report) except(fine ...Verdict) []Disagreement {
	var out []Disagreement
	add := func(channel string, routes []Route) {
		for _, route := range routes {
			if !slices.Contains(fine, route.Verdict) {
				out = append(out, Disagreement{Channel: channel, Installed: route.Installed, Verdict: route.Verdict,
					Text: route.Text})
			}
		}
	}
	for _, c := range r.Channels {
		add(c.Name, c.Routes)
	}
	add("", r.Unpinned)
	return out
}

// subject is a package with everything that may be installed of it.
type subject struct {
	*catalogs.Package
	installed []catalogs.Installed // without the fresh install, the highest first
	versions  map[string]semver.Version
}

func newSubject(p *catalogs.Package, extra []catalogs.Installed) *subject {
	s := &subject{Package: p, versions: map[string]semver.Version{}}
	known := map[string]bool{"": true}
	add := func(i catalogs.Installed) {
		if known[i.Name] {
			return
		}
		known[i.Name] = true
		if v, ok := i.SemVer(); ok {
			s.versions[i.Name] = v
		} else {
			// To OLM a ClusterServiceVersion without a version is 0.0.0; the plan must answer the same question.
			i.Version = semver.Version{}.String()
		}
		s.installed = append(s.installed, i)
	}
	for name, b := range p.Bundles {
		add(catalogs.Installed{Name: name, Version: b.Version.String()})
	}
	for name, b := range p.Blocks {
		add(catalogs.Installed{Name: name, Version: b.Version})
	}
	for _, i := range extra {
		add(i)
	}
	slices.SortFunc(s.installed, func(a, b catalogs.Installed) int {
		x, y := s.versions[a.Name], s.versions[b.Name]
		return cmp.Or(y.Compare(x), cmp.Compare(a.Name, b.Name))
	})
	return s
}

func (s *subject) channel(name string) (Channel, error) {
	c, err := s.Channel(name)
	if err != nil {
		return Channel{}, err
	}
	head, err := c.Head()
	if err != nil {
		return Channel{}, err
	}
	routes, err := s.Routes(name, s.installed...)
	if err != nil {
		return Channel{}, err
	}
	v0, err := olmv0.New(s.Package, name)
	if err != nil {
		return Channel{}, err
	}
	v1, err := olmv1.New(s.Package, name)
	if err != nil {
		return Channel{}, err
	}
	plan := newWalker(s, func(i catalogs.Installed) (string, error) { return planned(routes, i, head) }, head)
	starts := append([]catalogs.Installed{{}}, s.installed...)
	walk0, walk1 := newWalker(s, v0.Next, head), newWalker(s, v1.Next, head)
	for i, answer := range v0.NextOfEach(starts...) {
		walk0.known[starts[i].Name] = hop{answer.Next, answer.Err}
	}
	j := judge{subject: s, channel: c, head: head, v1: v1}
	out := Channel{Name: c.Name, Head: head}
	for _, i := range starts {
		route := Route{Installed: i, Plan: plan.from(i), V0: walk0.from(i), V1: walk1.from(i)}
		route.Verdict = j.verdict(route)
		route.Text = j.text(route)
		out.Routes = append(out.Routes, route)
	}
	return out, nil
}

func planned(routes map[string]catalogs.Route, i catalogs.Installed, head string) (string, error) {
	if i.Name == "" {
		return head, nil
	}
	route := routes[i.Name]
	if route.Hops < 0 {
		return "", catalogs.ErrNoPath
	}
	return route.Next, nil
}
