// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agree compares the upgrade paths of OLM v0, OLM v1 and Bellwether, from every version of a package in every
// channel, until there is no further upgrade.
//
// Its input is a package and, optionally, the bundles that clusters run besides the package's own bundles. OLM v0's
// path comes from its own resolver (package olmv0), OLM v1's path from its rules (package olmv1), and Bellwether's
// path from catalogs.Package.Routes, computed again after each upgrade, as the agent does. The package only compares
// graphs: it changes nothing and fetches nothing, and the same input gives the same report.
//
// It also refuses packages that `opm validate` refuses, by operator-registry's own code (CheckWithOPM), so that every
// other tool can use the catalogs that are compiled and published here.
package agree

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/agree/olmv0"
	"github.com/bellwether-dev/bellwether/catalogs/agree/olmv1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// ErrDisagree means that the upgrade paths of OLM v0, OLM v1 and Bellwether differ, or do not reach the head.
var ErrDisagree = errors.New("the upgrade paths disagree")

// Verdict is the result of comparing the three upgrade paths from one installed version.
type Verdict string

const (
	// Agrees means that all three have the same next hop and end at the head.
	Agrees Verdict = "agrees"
	// Waits means that nothing in the channel is newer than the version: it is blocked without an upgrade path,
	// belongs to another channel, or is the head by another name. Any change would be a downgrade.
	Waits Verdict = "waits"
	// NotInChannel means that all three stay, because nothing in the channel can replace a version that the channel
	// does not have.
	NotInChannel Verdict = "not-in-channel"
	// V1Differs means that OLM v0 follows the plan, OLM v1 has another next hop, and all three end at the head.
	V1Differs Verdict = "v1-differs"
	// V0Differs means that OLM v0 has another next hop than planned, and all three end at the head.
	V0Differs Verdict = "v0-differs"
	// V1Stays means that OLM v1 stays, because it prefers a version that is not deprecated to a higher
	// deprecated version.
	V1Stays Verdict = "v1-stays"
	// Stuck means that at least one of the three does not reach the head.
	Stuck Verdict = "stuck"
	// Downgrades means that at least one of the three would install a lower version.
	Downgrades Verdict = "downgrades"
	// ToBlocked means that at least one of the three would install a blocked version.
	ToBlocked Verdict = "to-blocked"
)

// Report is the comparison for a package.
type Report struct {
	Package string
	// Channels are sorted by name.
	Channels []Channel
	// Unpinned are the paths of OLM v1 only, for a ClusterExtension without a channel, which follows the edges of
	// all channels. The verdict is Agrees if the path ends at the head of any channel. The order is the same as
	// in Channel.
	Unpinned []Route
}

// Channel is the comparison for one channel.
type Channel struct {
	Name, Head string
	// Routes begin with the fresh install, which has no name, followed by the versions, the highest first.
	Routes []Route
}

// Route is the comparison for one installed version.
type Route struct {
	Installed catalogs.Installed
	// Plan is Bellwether's path. Plan and V0 are empty in Report.Unpinned.
	Plan, V0, V1 Walk
	Verdict      Verdict
	// Text describes the difference in one line for users; empty if the verdict is Agrees.
	Text string
}

// Walk is the sequence of upgrades after an installed bundle.
type Walk struct {
	Path []string
	// End is how the walk ended. It ended at the last bundle of Path, or at the installed bundle if Path is empty.
	End End
	// Err is the error that prevented a further hop; nil if there was none.
	Err error
}

// Next returns the first hop; empty if there is none.
func (w Walk) Next() string {
	if len(w.Path) == 0 {
		return ""
	}
	return w.Path[0]
}

// End is how a walk ended.
type End string

const (
	// Arrives means that the walk ends at the head.
	Arrives End = "arrives"
	// Stops means that the walk ends before the head.
	Stops End = "stops"
	// Loops means that the walk reaches a bundle a second time.
	Loops End = "loops"
)

// Disagreement is a route whose paths disagree.
type Disagreement struct {
	// Channel is empty for a ClusterExtension without a channel.
	Channel   string
	Installed catalogs.Installed
	Verdict   Verdict
	Text      string
}

// Check compares the paths of all bundles of a package, of its blocked versions, and of further installed versions,
// in every channel. If several of installed have the same name, it uses the first; a version in the catalog takes
// precedence. The error wraps catalogs.ErrInvalidPackage if a channel does not have exactly one head. It calls OLM
// v0's resolver once per channel, for all versions; a package of 30 versions in 3 channels takes a few milliseconds.
func Check(p *catalogs.Package, installed ...catalogs.Installed) (Report, error) {
	s := newPackageView(p, installed)
	report := Report{Package: p.Name}
	heads := map[string]bool{}
	var hops map[string]hop
	for _, name := range slices.Sorted(maps.Keys(p.Channels)) {
		c, hopsV1, err := s.compareChannel(name)
		if err != nil {
			return Report{}, fmt.Errorf("check channel %q of package %q: %w", name, p.Name, err)
		}
		heads[c.Head], hops = true, hopsV1
		report.Channels = append(report.Channels, c)
	}
	if len(p.Channels) > 1 { // with only one channel, a ClusterExtension without a channel has the same hops
		hops = nil
	}
	unpinned, err := s.compareUnpinned(heads, hops)
	if err != nil {
		return Report{}, fmt.Errorf("check package %q: %w", p.Name, err)
	}
	report.Unpinned = unpinned
	return report, nil
}

// Disagreements returns every route on which OLM v0, OLM v1 and Bellwether differ or do not reach the head. It does
// not return routes with Waits and NotInChannel, because all three stay there.
func (r Report) Disagreements() []Disagreement {
	return r.listDisagreementsExcept(Agrees, Waits, NotInChannel)
}

// Strict returns an error unless all three reach the head of every channel from every version by the same hops. A
// compiled catalog always passes. Versions above the head can wait. Further verdicts can be accepted: a channel with a
// deprecated head, for instance, has V1Stays. The error wraps ErrDisagree and describes the first differences.
func (r Report) Strict(accepted ...Verdict) error {
	found := r.listDisagreementsExcept(append(accepted, Agrees, Waits)...)
	if len(found) == 0 {
		return nil
	}
	const maxListed = 8
	var lines []string
	for _, d := range found {
		lines = append(lines, d.Text)
	}
	return fmt.Errorf("%w in package %q: %s", ErrDisagree, r.Package,
		strings.Join(phrase.Limit(lines, maxListed), "; "))
}

// listDisagreementsExcept returns the routes of all channels and without a channel whose verdict is not accepted.
func (r Report) listDisagreementsExcept(accepted ...Verdict) []Disagreement {
	var out []Disagreement
	add := func(channel string, routes []Route) {
		for _, route := range routes {
			if !slices.Contains(accepted, route.Verdict) {
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

// packageView is a package with all its versions that could be installed.
type packageView struct {
	*catalogs.Package
	installed []catalogs.Installed // without the fresh install, the highest first
	versions  map[string]semver.Version
}

// newPackageView returns the view of a package with its bundles, its blocked versions, and extra installed versions.
func newPackageView(p *catalogs.Package, extra []catalogs.Installed) *packageView {
	s := &packageView{Package: p, versions: map[string]semver.Version{}}
	isKnown := map[string]bool{"": true}
	add := func(i catalogs.Installed) {
		if isKnown[i.Name] {
			return
		}
		isKnown[i.Name] = true
		if v, ok := i.SemVer(); ok {
			s.versions[i.Name] = v
		} else {
			// OLM treats a ClusterServiceVersion without a version as 0.0.0, so the plan must do the same.
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

// compareChannel compares the paths in one channel, for the fresh install and each version. It also returns the hops of
// OLM v1, by bundle.
func (s *packageView) compareChannel(name string) (Channel, map[string]hop, error) {
	c, err := s.Channel(name)
	if err != nil {
		return Channel{}, nil, err
	}
	head, err := c.Head()
	if err != nil {
		return Channel{}, nil, err
	}
	v0, err := olmv0.New(s.Package, name)
	if err != nil {
		return Channel{}, nil, err
	}
	v1, err := olmv1.New(s.Package, name)
	if err != nil {
		return Channel{}, nil, err
	}
	starts := append([]catalogs.Installed{{}}, s.installed...) // the empty element is the fresh install
	walk0, walk1 := newWalker(s, v0.Next, head), newWalker(s, v1.Next, head)
	// OLM v0's resolver takes as long as all other work together, so it runs concurrently.
	var resolver sync.WaitGroup
	resolver.Go(func() {
		for i, answer := range v0.NextForAll(starts...) {
			walk0.hops[starts[i].Name] = hop{answer.Next, answer.Err}
		}
	})
	for _, i := range starts {
		walk1.findHop(i)
	}
	routes, err := s.Routes(name, s.installed...)
	resolver.Wait()
	if err != nil {
		return Channel{}, nil, err
	}
	plan := newWalker(s, func(i catalogs.Installed) (string, error) { return getPlannedHop(routes, i, head) }, head)
	j := comparison{packageView: s, channel: c, head: head, v1: v1}
	out := Channel{Name: c.Name, Head: head, Routes: make([]Route, len(starts))}
	for n, i := range slices.Backward(starts) {
		planned, next0, next1 := plan.walkFrom(i), walk0.walkFrom(i), walk1.walkFrom(i)
		route := Route{Installed: i, Plan: planned.Walk, V0: next0.Walk, V1: next1.Walk}
		route.Verdict = j.judge(route, findHarm(planned, next0, next1))
		route.Text = j.describeRoute(route)
		out.Routes[n] = route
	}
	return out, walk1.hops, nil
}

// getPlannedHop returns the next hop of Bellwether's path; empty at the head.
func getPlannedHop(routes map[string]catalogs.Route, i catalogs.Installed, head string) (string, error) {
	if i.Name == "" {
		return head, nil
	}
	route := routes[i.Name]
	if route.Hops < 0 {
		return "", catalogs.ErrNoPath
	}
	return route.Next, nil
}
