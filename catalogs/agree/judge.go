// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agree

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/agree/olmv1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// comparison compares the walks in one channel.
type comparison struct {
	*packageView
	channel *catalogs.Channel
	head    string
	v1      *olmv1.Selection
}

// namedWalk is one of the three walks that are compared.
type namedWalk struct {
	name string
	walk Walk
}

const (
	namePlan = "Bellwether"
	nameV0   = "OLM v0"
	nameV1   = "OLM v1"
)

func namedWalks(r Route) []namedWalk {
	return []namedWalk{{namePlan, r.Plan}, {nameV0, r.V0}, {nameV1, r.V1}}
}

// verdict, worst first:
//
//	any walk goes to a blocked version        ToBlocked
//	any walk goes to a lower version          Downgrades
//	all arrive, by the same next hop          Agrees
//	all arrive, OLM v1 by another next hop    V1Differs
//	all arrive, OLM v0 by another next hop    V0Differs
//	all stay, a higher version not here       Waits
//	only OLM v1 moves, to the same version    Waits
//	all stay, a lower version not here        NotInChannel
//	only OLM v1 stops, before a deprecated    V1Stays
//	anything else                             Stuck
func (j comparison) verdict(r Route, harm Verdict) Verdict {
	if harm != "" {
		return harm
	}
	arrived, moved := 0, false
	for _, p := range namedWalks(r) {
		if p.walk.End == Arrives {
			arrived++
		}
		moved = moved || len(p.walk.Path) > 0
	}
	switch {
	case arrived == 3 && r.Plan.Next() != r.V0.Next():
		return V0Differs
	case arrived == 3 && r.Plan.Next() != r.V1.Next():
		return V1Differs
	case arrived == 3:
		return Agrees
	case !moved && !j.isInChannel(r.Installed.Name) && j.isHigher(r.Installed.Name, j.head), j.isHead(r):
		return Waits
	case !moved && !j.isInChannel(r.Installed.Name):
		return NotInChannel
	case arrived == 2 && j.heldBackBy(r, j.v1) != "":
		return V1Stays
	}
	return Stuck
}

// worst returns the verdict on walks of which one does harm; empty if none does.
func worst(walks ...outcome) Verdict {
	switch {
	case slices.ContainsFunc(walks, func(o outcome) bool { return o.toBlocked }):
		return ToBlocked
	case slices.ContainsFunc(walks, func(o outcome) bool { return o.down }):
		return Downgrades
	}
	return ""
}

// firstBlocked returns the first blocked bundle that a walk goes to; empty if there is none.
func (s *packageView) firstBlocked(w Walk) string {
	for _, to := range w.Path {
		if _, blocked := s.Blocked(to); blocked {
			return to
		}
	}
	return ""
}

// downgrade returns the first hop of a walk that leads to a lower version.
func (s *packageView) downgrade(from string, w Walk) (before, after string, found bool) {
	for _, to := range w.Path {
		if s.isHigher(from, to) {
			return from, to, true
		}
		from = to
	}
	return "", "", false
}

// isHigher reports whether a's version is higher than b's. It is false if
// either is unknown.
func (s *packageView) isHigher(a, b string) bool {
	x, ok := s.versions[a]
	y, both := s.versions[b]
	return ok && both && x.GT(y)
}

// isHead reports whether the installed bundle is a build of the head's version
// by another name. OLM v1 compares versions and treats them as the same; in OLM
// v0 nothing replaces it.
func (j comparison) isHead(r Route) bool {
	installed, ok := j.versions[r.Installed.Name]
	return ok && installed.EQ(j.versions[j.head]) && len(r.Plan.Path)+len(r.V0.Path) == 0 &&
		r.V1.End == Arrives && r.V1.Next() == j.head && r.V0.Err == nil
}

func (j comparison) isInChannel(bundle string) bool {
	_, ok := j.channel.Entry(bundle)
	return ok
}

// heldBackBy returns the deprecated bundle before which OLM v1 stops; empty if
// it does not stop, or for another reason.
func (s *packageView) heldBackBy(r Route, v1 *olmv1.Selection) string {
	if r.V1.End != Stops || r.V1.Err != nil {
		return ""
	}
	at := lastBundle(r.Installed.Name, r.V1)
	return v1.HeldBackBy(catalogs.Installed{Name: at, Version: s.versions[at].String()})
}

func lastBundle(start string, w Walk) string {
	if len(w.Path) == 0 {
		return start
	}
	return w.Path[len(w.Path)-1]
}

// unpinnedRoutes compares the walks of OLM v1 over the edges of all channels. Known hops need not be looked up.
func (s *packageView) unpinnedRoutes(heads map[string]bool, known map[string]hop) ([]Route, error) {
	v1, err := olmv1.New(s.Package)
	if err != nil {
		return nil, err
	}
	walks := newWalker(s, v1.Next)
	walks.heads = heads
	for from, h := range known {
		if h.err == nil { // an error names the channel
			walks.hops[from] = h
		}
	}
	starts := append([]catalogs.Installed{{}}, s.installed...)
	out := make([]Route, len(starts))
	for n, i := range slices.Backward(starts) {
		walk := walks.from(i)
		r := Route{Installed: i, V1: walk.Walk}
		r.Verdict = s.unpinnedVerdict(r, worst(walk), heads, v1)
		r.Text = s.unpinnedText(r, v1)
		out[n] = r
	}
	return out, nil
}

func (s *packageView) unpinnedVerdict(r Route, harm Verdict, heads map[string]bool, v1 *olmv1.Selection) Verdict {
	_, offered := s.Bundles[r.Installed.Name]
	apart := len(r.V1.Path) == 0 && !offered
	switch {
	case harm != "":
		return harm
	case r.V1.End == Arrives:
		return Agrees
	case apart && s.isHigherThanAll(r.Installed.Name, heads):
		return Waits
	case apart:
		return NotInChannel
	case s.heldBackBy(r, v1) != "":
		return V1Stays
	}
	return Stuck
}

func (s *packageView) isHigherThanAll(bundle string, others map[string]bool) bool {
	for o := range others {
		if !s.isHigher(bundle, o) {
			return false
		}
	}
	return true
}

// describeRoute describes in one line where and how the walks differ.
func (j comparison) describeRoute(r Route) string {
	var what string
	switch r.Verdict {
	case Agrees:
		return ""
	case Waits:
		if j.isHead(r) {
			what = fmt.Sprintf("it has the version of the head %s under another name, and waits for a newer version; "+
				"OLM v1 treats them as the same", j.describe(j.head))
			break
		}
		what = fmt.Sprintf("it is higher than the head %s, and waits for a newer version", j.describe(j.head))
	case NotInChannel:
		what = fmt.Sprintf("it is not in the channel, and nothing there can replace it; the head is %s",
			j.describe(j.head))
	case V1Differs, V0Differs:
		what = j.describeDifferences(r) + "; all end at the head " + j.describe(j.head)
	case V1Stays:
		at := lastBundle(r.Installed.Name, r.V1)
		what = fmt.Sprintf("OLM v1 %s, because %s is deprecated; OLM v0 continues to the head %s",
			j.describeStop(at, r.V1), j.describe(j.heldBackBy(r, j.v1)), j.describe(j.head))
	case Stuck, Downgrades, ToBlocked:
		what = j.describeFailures(r)
	}
	return fmt.Sprintf("channel %s, %s: %s", j.channel.Name, j.describeStart(r.Installed), what)
}

// describeDifferences describes who takes which next hop.
func (j comparison) describeDifferences(r Route) string {
	var order []string
	names := map[string][]string{}
	for _, p := range namedWalks(r) {
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
	for _, p := range namedWalks(r) {
		text := j.describeFailure(r.Installed.Name, p.walk)
		if text == "" {
			continue
		}
		if p.name == nameV0 && p.walk.End == Stops && p.walk.Err == nil {
			text += j.describeSkipped(lastBundle(r.Installed.Name, p.walk))
		}
		parts = append(parts, p.name+" "+text)
	}
	return strings.Join(parts, ", ") + "; the head is " + j.describe(j.head)
}

// describeSkipped says why OLM v0 stays although there are successors: it never
// installs a skipped bundle.
func (j comparison) describeSkipped(at string) string {
	names := j.v1.Successors(catalogs.Installed{Name: at, Version: j.versions[at].String()})
	if len(names) == 0 {
		return ""
	}
	for i, n := range names {
		names[i] = j.describe(n)
	}
	return fmt.Sprintf(", because %s could follow but %s skipped", strings.Join(names, ", "),
		phrase.Word(len(names), "is", "are"))
}

// describeFailure describes why one walk fails; empty if it does not.
func (s *packageView) describeFailure(start string, w Walk) string {
	if to := s.firstBlocked(w); to != "" {
		return fmt.Sprintf("goes to %s, which is blocked", s.describe(to))
	}
	if before, after, down := s.downgrade(start, w); down {
		return fmt.Sprintf("downgrades from %s to %s", s.describe(before), s.describe(after))
	}
	at := lastBundle(start, w)
	switch w.End {
	case Loops:
		return "loops through " + s.describe(at)
	case Stops:
		return s.describeStop(at, w)
	case Arrives:
	}
	return ""
}

func (s *packageView) describeStop(at string, w Walk) string {
	text := "stops at " + s.describe(at)
	if len(w.Path) == 0 {
		text = "stays"
	}
	if w.Err != nil {
		text += fmt.Sprintf(" (%v)", w.Err)
	}
	return text
}

func (s *packageView) unpinnedText(r Route, v1 *olmv1.Selection) string {
	var what string
	switch r.Verdict {
	case Waits:
		what = "it is higher than every channel's head, and waits for a newer version"
	case NotInChannel:
		what = "it is not in the catalog, and nothing there can replace it"
	case V1Stays:
		what = fmt.Sprintf("OLM v1 %s, because %s is deprecated", s.describeStop(lastBundle(r.Installed.Name, r.V1),
			r.V1),
			s.describe(s.heldBackBy(r, v1)))
	case ToBlocked, Downgrades:
		what = "OLM v1 " + s.describeFailure(r.Installed.Name, r.V1)
	case Stuck:
		what = fmt.Sprintf("OLM v1 %s, and does not reach the head of a channel",
			s.describeFailure(r.Installed.Name, r.V1))
	default:
		return ""
	}
	return fmt.Sprintf("no channel chosen, %s: %s", s.describeStart(r.Installed), what)
}

func (s *packageView) describeStart(i catalogs.Installed) string {
	if i.Name == "" {
		return "fresh install"
	}
	return "from " + s.describe(i.Name)
}

// describe names a bundle by its version, if the catalog or the cluster knows
// it.
func (s *packageView) describe(bundle string) string {
	if b := s.Bundles[bundle]; b != nil {
		return b.VersionString()
	}
	if v, ok := s.versions[bundle]; ok {
		return fmt.Sprintf("%s (%s)", v, bundle)
	}
	return bundle
}
