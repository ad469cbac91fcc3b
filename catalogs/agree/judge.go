// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agree

import (
	"fmt"
	"strings"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/agree/olmv1"
)

// judge compares the walks in one channel.
type judge struct {
	*subject
	channel *catalogs.Channel
	head    string
	v1      *olmv1.Selection
}

// party is one of the three whose walks are compared.
type party struct {
	name string
	walk Walk
}

const (
	partyPlan = "Bellwether"
	partyV0   = "OLM v0"
	partyV1   = "OLM v1"
)

func parties(r Route) []party {
	return []party{{partyPlan, r.Plan}, {partyV0, r.V0}, {partyV1, r.V1}}
}

// verdict, worst first:
//
//	anybody goes to a blocked version         ToBlocked
//	anybody goes to a lower version           Downgrades
//	all arrive, by the same next hop          Agrees
//	all arrive, OLM v1 by another next hop    V1Leaps
//	all arrive, OLM v0 by another next hop    Detours
//	nobody moves, a higher version not here   Waits
//	only OLM v1 moves, to the same version    Waits
//	nobody moves, a lower version not here    Apart
//	only OLM v1 stops, before a deprecated    V1Holds
//	anything else                             Stuck
func (j judge) verdict(r Route) Verdict {
	arrived, moved := 0, false
	for _, p := range parties(r) {
		if j.toBlocked(p.walk) != "" {
			return ToBlocked
		}
	}
	for _, p := range parties(r) {
		if _, _, down := j.downgrade(r.Installed.Name, p.walk); down {
			return Downgrades
		}
		if p.walk.End == Arrives {
			arrived++
		}
		moved = moved || len(p.walk.Path) > 0
	}
	switch {
	case arrived == 3 && r.Plan.Next() != r.V0.Next():
		return Detours
	case arrived == 3 && r.Plan.Next() != r.V1.Next():
		return V1Leaps
	case arrived == 3:
		return Agrees
	case !moved && !j.has(r.Installed.Name) && j.higher(r.Installed.Name, j.head), j.isHead(r):
		return Waits
	case !moved && !j.has(r.Installed.Name):
		return Apart
	case arrived == 2 && j.held(r, j.v1) != "":
		return V1Holds
	}
	return Stuck
}

// toBlocked returns the first blocked bundle that a walk goes to; empty if there is none.
func (s *subject) toBlocked(w Walk) string {
	for _, to := range w.Path {
		if _, blocked := s.Blocked(to); blocked {
			return to
		}
	}
	return ""
}

// downgrade returns the first hop of a walk that leads to a lower version.
func (s *subject) downgrade(from string, w Walk) (before, after string, found bool) {
	for _, to := range w.Path {
		if s.higher(from, to) {
			return from, to, true
		}
		from = to
	}
	return "", "", false
}

// higher reports whether a's version is higher than b's. Where a version is not known nothing is.
func (s *subject) higher(a, b string) bool {
	x, ok := s.versions[a]
	y, both := s.versions[b]
	return ok && both && x.GT(y)
}

// isHead reports whether the installed bundle is a build of the head's version by another name. OLM v1 goes by the
// version and takes one for the other; to OLM v0 nothing follows it.
func (j judge) isHead(r Route) bool {
	installed, ok := j.versions[r.Installed.Name]
	return ok && installed.EQ(j.versions[j.head]) && len(r.Plan.Path)+len(r.V0.Path) == 0 &&
		r.V1.End == Arrives && r.V1.Next() == j.head && r.V0.Err == nil
}

func (j judge) has(bundle string) bool {
	_, ok := j.channel.Entry(bundle)
	return ok
}

// held returns the deprecated bundle before which OLM v1 stops; empty when it does not, or for another reason.
func (s *subject) held(r Route, v1 *olmv1.Selection) string {
	if r.V1.End != Stops || r.V1.Err != nil {
		return ""
	}
	at := last(r.Installed.Name, r.V1)
	return v1.Held(catalogs.Installed{Name: at, Version: s.versions[at].String()})
}

func last(start string, w Walk) string {
	if len(w.Path) == 0 {
		return start
	}
	return w.Path[len(w.Path)-1]
}

// unpinned judges the walks of OLM v1 over the edges of all channels.
func (s *subject) unpinned(heads map[string]bool) ([]Route, error) {
	v1, err := olmv1.New(s.Package)
	if err != nil {
		return nil, err
	}
	walks := newWalker(s, v1.Next)
	walks.heads = heads
	var out []Route
	for _, i := range append([]catalogs.Installed{{}}, s.installed...) {
		r := Route{Installed: i, V1: walks.from(i)}
		r.Verdict = s.verdictUnpinned(r, heads, v1)
		r.Text = s.textUnpinned(r, v1)
		out = append(out, r)
	}
	return out, nil
}

func (s *subject) verdictUnpinned(r Route, heads map[string]bool, v1 *olmv1.Selection) Verdict {
	_, _, down := s.downgrade(r.Installed.Name, r.V1)
	_, offered := s.Bundles[r.Installed.Name]
	apart := len(r.V1.Path) == 0 && !offered
	switch {
	case s.toBlocked(r.V1) != "":
		return ToBlocked
	case down:
		return Downgrades
	case r.V1.End == Arrives:
		return Agrees
	case apart && s.higherThanAll(r.Installed.Name, heads):
		return Waits
	case apart:
		return Apart
	case s.held(r, v1) != "":
		return V1Holds
	}
	return Stuck
}

func (s *subject) higherThanAll(bundle string, others map[string]bool) bool {
	for o := range others {
		if !s.higher(bundle, o) {
			return false
		}
	}
	return true
}

// text says in one line what is different, beginning with where.
func (j judge) text(r Route) string {
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
	case Apart:
		what = fmt.Sprintf("it is not in the channel, and nothing there can replace it; the head is %s",
			j.describe(j.head))
	case V1Leaps, Detours:
		what = j.differences(r) + "; all end at the head " + j.describe(j.head)
	case V1Holds:
		at := last(r.Installed.Name, r.V1)
		what = fmt.Sprintf("OLM v1 %s, because %s is deprecated; OLM v0 continues to the head %s",
			j.stops(at, r.V1), j.describe(j.held(r, j.v1)), j.describe(j.head))
	case Stuck, Downgrades, ToBlocked:
		what = j.failures(r)
	}
	return fmt.Sprintf("channel %s, %s: %s", j.channel.Name, j.start(r.Installed), what)
}

// differences names those who take one next hop together.
func (j judge) differences(r Route) string {
	var order []string
	names := map[string][]string{}
	for _, p := range parties(r) {
		next := p.walk.Next()
		if names[next] == nil {
			order = append(order, next)
		}
		names[next] = append(names[next], p.name)
	}
	parts := make([]string, 0, len(order))
	for i, next := range order {
		verb := "go"
		if len(names[next]) == 1 {
			verb = "goes"
		}
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

// failures says of each party that goes down or does not arrive what becomes of it.
func (j judge) failures(r Route) string {
	var parts []string
	for _, p := range parties(r) {
		text := j.failure(r.Installed.Name, p.walk)
		if text == "" {
			continue
		}
		if p.name == partyV0 && p.walk.End == Stops && p.walk.Err == nil {
			text += j.whySkipped(last(r.Installed.Name, p.walk))
		}
		parts = append(parts, p.name+" "+text)
	}
	return strings.Join(parts, ", ") + "; the head is " + j.describe(j.head)
}

// whySkipped says why OLM v0 stays although there are successors: it goes to none that is skipped.
func (j judge) whySkipped(at string) string {
	names := j.v1.Successors(catalogs.Installed{Name: at, Version: j.versions[at].String()})
	if len(names) == 0 {
		return ""
	}
	for i, n := range names {
		names[i] = j.describe(n)
	}
	verb := "is"
	if len(names) > 1 {
		verb = "are"
	}
	return fmt.Sprintf(", because %s could follow but %s skipped", strings.Join(names, ", "), verb)
}

// failure is what goes wrong on one walk; empty when nothing does.
func (s *subject) failure(start string, w Walk) string {
	if to := s.toBlocked(w); to != "" {
		return fmt.Sprintf("goes to %s, which is blocked", s.describe(to))
	}
	if before, after, down := s.downgrade(start, w); down {
		return fmt.Sprintf("goes back from %s to %s", s.describe(before), s.describe(after))
	}
	at := last(start, w)
	switch w.End {
	case Loops:
		return "goes in a circle through " + s.describe(at)
	case Stops:
		return s.stops(at, w)
	case Arrives:
	}
	return ""
}

func (s *subject) stops(at string, w Walk) string {
	text := "stops at " + s.describe(at)
	if len(w.Path) == 0 {
		text = "stays"
	}
	if w.Err != nil {
		text += fmt.Sprintf(" (%v)", w.Err)
	}
	return text
}

func (s *subject) textUnpinned(r Route, v1 *olmv1.Selection) string {
	var what string
	switch r.Verdict {
	case Waits:
		what = "it is higher than every channel's head, and waits for a newer version"
	case Apart:
		what = "it is not in the catalog, and nothing there can replace it"
	case V1Holds:
		what = fmt.Sprintf("OLM v1 %s, because %s is deprecated", s.stops(last(r.Installed.Name, r.V1), r.V1),
			s.describe(s.held(r, v1)))
	case ToBlocked, Downgrades:
		what = "OLM v1 " + s.failure(r.Installed.Name, r.V1)
	case Stuck:
		what = fmt.Sprintf("OLM v1 %s, and does not reach the head of a channel", s.failure(r.Installed.Name, r.V1))
	default:
		return ""
	}
	return fmt.Sprintf("no channel chosen, %s: %s", s.start(r.Installed), what)
}

func (s *subject) start(i catalogs.Installed) string {
	if i.Name == "" {
		return "fresh install"
	}
	return "from " + s.describe(i.Name)
}

// describe names a bundle for people: by its version, where the catalog or the cluster knows it.
func (s *subject) describe(bundle string) string {
	if b := s.Bundles[bundle]; b != nil {
		return b.VersionString()
	}
	if v, ok := s.versions[bundle]; ok {
		return fmt.Sprintf("%s (%s)", v, bundle)
	}
	return bundle
}
