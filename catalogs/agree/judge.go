// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agree

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/agree/olmv1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// comparison compares the walks in one channel.
type comparison struct {
	*packageView
	channel *catalogs.Channel
	head    string
	v1      *olmv1.Selection
}

// namedWalk is one of the three compared walks.
type namedWalk struct {
	name string
	walk Walk
}

const (
	namePlan = "Bellwether"
	nameV0   = "OLM v0"
	nameV1   = "OLM v1"
)

func listWalks(r Route) []namedWalk {
	return []namedWalk{{namePlan, r.Plan}, {nameV0, r.V0}, {nameV1, r.V1}}
}

// judge returns the verdict of the first line in this table that applies:
//
//	a walk goes to a blocked version                                        ToBlocked
//	a walk goes to a lower version                                          Downgrades
//	all walks arrive, OLM v0's by another next hop                          V0Differs
//	all walks arrive, OLM v1's by another next hop                          V1Differs
//	all walks arrive                                                        Agrees
//	no walk moves; the installed version is not in the channel, and higher  Waits
//	only OLM v1 moves, to the same version by another name                  Waits
//	no walk moves; the installed version is not in the channel              NotInChannel
//	only OLM v1 stops, before a deprecated version                          V1Stays
//	otherwise                                                               Stuck
func (j comparison) judge(r Route, harm Verdict) Verdict {
	if harm != "" {
		return harm
	}
	arrived, hasMoved := 0, false
	for _, p := range listWalks(r) {
		if p.walk.End == Arrives {
			arrived++
		}
		hasMoved = hasMoved || len(p.walk.Path) > 0
	}
	switch {
	case arrived == 3 && r.Plan.Next() != r.V0.Next():
		return V0Differs
	case arrived == 3 && r.Plan.Next() != r.V1.Next():
		return V1Differs
	case arrived == 3:
		return Agrees
	case !hasMoved && !j.isInChannel(r.Installed.Name) && j.isHigher(r.Installed.Name, j.head):
		return Waits
	case j.isRenamedHead(r):
		return Waits
	case !hasMoved && !j.isInChannel(r.Installed.Name):
		return NotInChannel
	case arrived == 2 && j.findDeprecatedStop(r, j.v1) != "":
		return V1Stays
	}
	return Stuck
}

// findHarm returns ToBlocked or Downgrades if a walk goes to a blocked or lower version; empty if none does.
func findHarm(walks ...walkResult) Verdict {
	switch {
	case slices.ContainsFunc(walks, func(o walkResult) bool { return o.goesToBlocked }):
		return ToBlocked
	case slices.ContainsFunc(walks, func(o walkResult) bool { return o.goesDown }):
		return Downgrades
	}
	return ""
}

// findBlocked returns the first blocked bundle to which a walk goes; empty if there is none.
func (s *packageView) findBlocked(w Walk) string {
	for _, to := range w.Path {
		if _, blocked := s.Blocked(to); blocked {
			return to
		}
	}
	return ""
}

// findDowngrade returns the first hop of a walk that leads to a lower version; found is false if there is none. The
// walk begins at from.
func (s *packageView) findDowngrade(from string, w Walk) (before, after string, found bool) {
	for _, to := range w.Path {
		if s.isHigher(from, to) {
			return from, to, true
		}
		from = to
	}
	return "", "", false
}

// isHigher reports whether a's version is higher than b's. It is false if one of them is unknown.
func (s *packageView) isHigher(a, b string) bool {
	x, ok := s.versions[a]
	y, both := s.versions[b]
	return ok && both && x.GT(y)
}

// isRenamedHead reports whether the installed bundle is a build of the head's version with another name. OLM v1
// compares versions and treats the two as equal; in OLM v0 nothing replaces the installed bundle.
func (j comparison) isRenamedHead(r Route) bool {
	installed, ok := j.versions[r.Installed.Name]
	return ok && installed.EQ(j.versions[j.head]) && len(r.Plan.Path)+len(r.V0.Path) == 0 &&
		r.V1.End == Arrives && r.V1.Next() == j.head && r.V0.Err == nil
}

func (j comparison) isInChannel(bundle string) bool {
	_, ok := j.channel.Entry(bundle)
	return ok
}

// findDeprecatedStop returns the deprecated bundle because of which OLM v1 stops; empty if OLM v1 does not stop, or
// stops for another reason.
func (s *packageView) findDeprecatedStop(r Route, v1 *olmv1.Selection) string {
	if r.V1.End != Stops || r.V1.Err != nil {
		return ""
	}
	lastBundle := getLastBundle(r.Installed.Name, r.V1)
	return v1.FindDeprecatedStop(catalogs.Installed{Name: lastBundle, Version: s.versions[lastBundle].String()})
}

func getLastBundle(start string, w Walk) string {
	if len(w.Path) == 0 {
		return start
	}
	return w.Path[len(w.Path)-1]
}

// compareUnpinned returns the routes of OLM v1 over the edges of all channels. Hops in knownHops are not
// computed again.
func (s *packageView) compareUnpinned(heads map[string]bool, knownHops map[string]hop) ([]Route, error) {
	v1, err := olmv1.New(s.Package)
	if err != nil {
		return nil, err
	}
	walks := newWalker(s, v1.Next)
	walks.heads = heads
	for from, h := range knownHops {
		if h.err == nil { // an error names the channel, so it differs
			walks.hops[from] = h
		}
	}
	starts := append([]catalogs.Installed{{}}, s.installed...) // the empty element is the fresh install
	out := make([]Route, len(starts))
	for n, i := range slices.Backward(starts) {
		walk := walks.walkFrom(i)
		r := Route{Installed: i, V1: walk.Walk}
		r.Verdict = s.judgeUnpinned(r, findHarm(walk), heads, v1)
		r.Text = s.describeUnpinned(r, v1)
		out[n] = r
	}
	return out, nil
}

// judgeUnpinned returns the verdict on a walk of OLM v1 without a channel.
func (s *packageView) judgeUnpinned(r Route, harm Verdict, heads map[string]bool, v1 *olmv1.Selection) Verdict {
	_, offered := s.Bundles[r.Installed.Name]
	isOutside := len(r.V1.Path) == 0 && !offered
	switch {
	case harm != "":
		return harm
	case r.V1.End == Arrives:
		return Agrees
	case isOutside && s.isHigherThanAll(r.Installed.Name, heads):
		return Waits
	case isOutside:
		return NotInChannel
	case s.findDeprecatedStop(r, v1) != "":
		return V1Stays
	}
	return Stuck
}

func (s *packageView) isHigherThanAll(bundle string, otherBundles map[string]bool) bool {
	for o := range otherBundles {
		if !s.isHigher(bundle, o) {
			return false
		}
	}
	return true
}

// describeRoute describes in one line where and how the walks differ; empty if they agree.
func (j comparison) describeRoute(r Route) string {
	var text string
	switch r.Verdict {
	case Agrees:
		return ""
	case Waits:
		if j.isRenamedHead(r) {
			text = fmt.Sprintf("it has the version of the head %s under another name, and waits for a newer version; "+
				"OLM v1 treats them as the same", j.describe(j.head))
			break
		}
		text = fmt.Sprintf("it is higher than the head %s, and waits for a newer version", j.describe(j.head))
	case NotInChannel:
		text = fmt.Sprintf("it is not in the channel, and nothing there can replace it; the head is %s",
			j.describe(j.head))
	case V1Differs, V0Differs:
		text = j.describeDifferences(r) + "; all end at the head " + j.describe(j.head)
	case V1Stays:
		lastBundle := getLastBundle(r.Installed.Name, r.V1)
		text = fmt.Sprintf("OLM v1 %s, because %s is deprecated; OLM v0 continues to the head %s",
			j.describeStop(lastBundle, r.V1), j.describe(j.findDeprecatedStop(r, j.v1)), j.describe(j.head))
	case Stuck, Downgrades, ToBlocked:
		text = j.describeFailures(r)
	}
	return fmt.Sprintf("channel %s, %s: %s", j.channel.Name, j.describeStart(r.Installed), text)
}

// describeDifferences describes the next hop of each of the three, such as "Bellwether and OLM v0 go to 1.1.0, OLM v1
// to 1.2.0".
func (j comparison) describeDifferences(r Route) string {
	var order []string
	names := map[string][]string{}
	for _, p := range listWalks(r) {
		next := p.walk.Next()
		if names[next] == nil {
			order = append(order, next)
		}
		names[next] = append(names[next], p.name)
	}
	parts := make([]string, 0, len(order))
	for i, next := range order {
		verb := phrase.Word(len(names[next]), "goes", "go")
		if i > 0 {
			verb = "" // "OLM v0 goes to 1.1.0, OLM v1 to 1.2.0"
		}
		where := "to " + j.describe(next)
		if next == "" {
			where = "nowhere"
		}
		parts = append(parts, strings.Join(strings.Fields(strings.Join(names[next], " and ")+" "+verb+" "+where), " "))
	}
	return strings.Join(parts, ", ")
}

// describeFailures describes each walk that fails.
func (j comparison) describeFailures(r Route) string {
	var parts []string
	for _, p := range listWalks(r) {
		text := j.describeFailure(r.Installed.Name, p.walk)
		if text == "" {
			continue
		}
		if p.name == nameV0 && p.walk.End == Stops && p.walk.Err == nil {
			text += j.describeSkipped(getLastBundle(r.Installed.Name, p.walk))
		}
		parts = append(parts, p.name+" "+text)
	}
	return strings.Join(parts, ", ") + "; the head is " + j.describe(j.head)
}

// describeSkipped describes why OLM v0 stays although there are successors: it never installs a skipped bundle.
func (j comparison) describeSkipped(bundle string) string {
	names := j.v1.Successors(catalogs.Installed{Name: bundle, Version: j.versions[bundle].String()})
	if len(names) == 0 {
		return ""
	}
	for i, n := range names {
		names[i] = j.describe(n)
	}
	return fmt.Sprintf(", because %s could follow but %s skipped", strings.Join(names, ", "),
		phrase.Word(len(names), "is", "are"))
}

// describeFailure describes why a walk fails; empty if it does not fail.
func (s *packageView) describeFailure(start string, w Walk) string {
	if to := s.findBlocked(w); to != "" {
		return fmt.Sprintf("goes to %s, which is blocked", s.describe(to))
	}
	if before, after, down := s.findDowngrade(start, w); down {
		return fmt.Sprintf("downgrades from %s to %s", s.describe(before), s.describe(after))
	}
	lastBundle := getLastBundle(start, w)
	switch w.End {
	case Loops:
		return "loops through " + s.describe(lastBundle)
	case Stops:
		return s.describeStop(lastBundle, w)
	case Arrives: // the walk does not fail
	}
	return ""
}

func (s *packageView) describeStop(lastBundle string, w Walk) string {
	text := "stops at " + s.describe(lastBundle)
	if len(w.Path) == 0 {
		text = "stays"
	}
	if w.Err != nil {
		text += fmt.Sprintf(" (%v)", w.Err)
	}
	return text
}

// describeUnpinned describes in one line why a walk of OLM v1 without a channel does not end at a head; empty if it
// does.
func (s *packageView) describeUnpinned(r Route, v1 *olmv1.Selection) string {
	var text string
	switch r.Verdict {
	case Waits:
		text = "it is higher than every channel's head, and waits for a newer version"
	case NotInChannel:
		text = "it is not in the catalog, and nothing there can replace it"
	case V1Stays:
		text = fmt.Sprintf("OLM v1 %s, because %s is deprecated", s.describeStop(getLastBundle(r.Installed.Name, r.V1),
			r.V1),
			s.describe(s.findDeprecatedStop(r, v1)))
	case ToBlocked, Downgrades:
		text = "OLM v1 " + s.describeFailure(r.Installed.Name, r.V1)
	case Stuck:
		text = fmt.Sprintf("OLM v1 %s, and does not reach the head of a channel",
			s.describeFailure(r.Installed.Name, r.V1))
	default:
		return ""
	}
	return fmt.Sprintf("no channel chosen, %s: %s", s.describeStart(r.Installed), text)
}

func (s *packageView) describeStart(i catalogs.Installed) string {
	if i.Name == "" {
		return "fresh install"
	}
	return "from " + s.describe(i.Name)
}

// describe returns the version of a bundle, or its name if the version is unknown.
func (s *packageView) describe(bundle string) string {
	if b := s.Bundles[bundle]; b != nil {
		return b.VersionString()
	}
	if v, ok := s.versions[bundle]; ok {
		return fmt.Sprintf("%s (%s)", v, bundle)
	}
	return bundle
}
