// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
)

// sharing is the plan of one shared file.
type sharing struct {
	*planner
	*target
	isWhole  bool // the whole file is written: there is none, or one that a convention owned
	pieces   []convention.Region
	rendered map[string]string // the regions as they were rendered last, by their names
	after    subscription.LockedFile
	notes    []string
	conflict bool
}

// shared merges the regions of a file, and leaves everything else as it is, byte by byte.
func (p *planner) shared(t *target) {
	wanted := t.wanted
	if wanted == nil {
		wanted = &convention.Rendered{}
	}
	s := &sharing{planner: p, target: t, after: subscription.LockedFile{Path: t.path, Kind: convention.Shared,
		Convention: wanted.Convention, Executable: wanted.Executable}}
	s.isWhole = t.current == nil || t.isAsRendered() && t.locked.Kind != convention.Shared
	text := lineEnds(wanted.Text, t.crlf)
	if !s.isWhole {
		text = t.current.Text
	}
	var err error
	switch s.pieces, err = convention.Split(text); {
	case err != nil && t.wanted == nil:
		p.note("%s is no longer of a convention; its regions are broken (%v), and it stays as it is", t.path, err)
		return
	case err != nil:
		p.refuse(t.path, "its regions are broken: "+err.Error(), "restore the markers of the region")
		return
	case t.current == nil && t.locked != nil:
		s.notes = []string{"was missing"}
	}
	s.readBase()
	for _, r := range wanted.Regions {
		s.region(r)
	}
	s.removeRegions(wanted.Regions)
	if t.wanted != nil {
		p.plan.Lock.Files = append(p.plan.Lock.Files, s.after)
	}
	s.finish()
}

// readBase reads the regions as they were rendered last. A base that somebody has edited is none.
func (s *sharing) readBase() {
	s.rendered = map[string]string{}
	text, _ := unixLines(s.Base[s.path])
	pieces, err := convention.Split(text)
	if err != nil {
		return
	}
	for _, piece := range pieces {
		if r := s.locked(piece.Name); r != nil && r.Digest == Digest(piece.Text) {
			s.rendered[piece.Name] = piece.Text
		}
	}
}

// locked is a region as it was locked; nil if it was not.
func (s *sharing) locked(name string) *subscription.LockedRegion { return s.target.locked.Region(name) }

func find(pieces []convention.Region, name string) int {
	return slices.IndexFunc(pieces, func(p convention.Region) bool { return p.Name == name })
}

// region plans one region.
func (s *sharing) region(wanted convention.Region) {
	before, at := s.locked(wanted.Name), find(s.pieces, wanted.Name)
	if !s.isWhole && subscription.IsExcepted(s.Exceptions, s.path, wanted.Name, s.Now) {
		s.note("region %s of %s stays as it is, by an exception", wanted.Name, s.path)
		if before != nil {
			s.after.Regions = append(s.after.Regions, *before)
			s.plan.Base[s.path] += s.rendered[wanted.Name]
		}
		return
	}
	s.after.Regions = append(s.after.Regions, subscription.LockedRegion{Name: wanted.Name,
		Convention: wanted.Convention, Digest: Digest(wanted.Text)})
	s.plan.Base[s.path] += wanted.Text
	switch {
	case at >= 0:
		s.mergeRegion(wanted, before, &s.pieces[at])
		return
	case before != nil:
		s.notes = append(s.notes, "region "+wanted.Name+" was missing")
	}
	s.append(wanted)
}

// mergeRegion merges a region that is there.
func (s *sharing) mergeRegion(wanted convention.Region, before *subscription.LockedRegion, piece *convention.Region) {
	current, crlf := unixLines(convention.EndLine(piece.Text))
	base, hasBase := s.rendered[wanted.Name]
	if !hasBase && before != nil && Digest(current) == before.Digest {
		base, hasBase = current, true
	}
	switch {
	case current == wanted.Text:
	case slices.Contains(s.Overwrite, s.path), before == nil && s.Adopt:
		piece.Text = lineEnds(wanted.Text, crlf)
		s.notes = append(s.notes, "region "+wanted.Name+" overwritten")
	case before == nil:
		s.refuse(s.path, "it has a region "+wanted.Name+" already, with another text", "overwrite it with --adopt",
			"remove the region, with its markers")
	case !hasBase:
		s.refuseWithoutBase(s.path)
	default:
		text, conflict := s.merge(s.path, current, base, wanted.Text)
		piece.Text, s.conflict = lineEnds(text, crlf), s.conflict || conflict
	}
}

// append adds a region at the end of the file, with an empty line in front of it.
func (s *sharing) append(r convention.Region) {
	text := r.Text
	if last := len(s.pieces) - 1; last >= 0 {
		s.pieces[last].Text = lineEnds(convention.EndLine(s.pieces[last].Text), s.crlf)
		text = "\n" + text
	}
	s.pieces = append(s.pieces, convention.Region{Name: r.Name, Text: lineEnds(text, s.crlf)})
}

// removeRegions removes the regions that no convention brings any more. What somebody has edited stays, without the
// markers.
func (s *sharing) removeRegions(wanted []convention.Region) {
	if s.target.locked == nil {
		return
	}
	for _, r := range s.target.locked.Regions {
		at := find(s.pieces, r.Name)
		switch {
		case at < 0 || find(wanted, r.Name) >= 0:
		case s.eject:
			s.pieces[at].Text = s.pieces[at].Unmark()
		case subscription.IsExcepted(s.Exceptions, s.path, r.Name, s.Now):
			s.note("region %s of %s is no longer of a convention, and stays as it is, by an exception", r.Name, s.path)
		case Digest(convention.EndLine(s.pieces[at].Text)) == r.Digest:
			s.pieces[at].Text = ""
			s.trimGap(at)
			s.notes = append(s.notes, "region "+r.Name+" removed")
		default:
			s.pieces[at].Text = s.pieces[at].Unmark()
			s.notes = append(s.notes, "region "+r.Name+" was edited by hand, and stays without its markers")
		}
	}
}

// trimGap removes the empty line in front of a region at the end of a file, which append has added.
func (s *sharing) trimGap(at int) {
	if at == 0 || at != len(s.pieces)-1 {
		return
	}
	before := &s.pieces[at-1].Text
	for _, end := range []string{"\r\n", "\n"} {
		if strings.HasSuffix(*before, end+end) {
			*before = strings.TrimSuffix(*before, end)
			return
		}
	}
}

func (s *sharing) finish() {
	text := ""
	for _, piece := range s.pieces {
		text += piece.Text
	}
	if s.wanted == nil && !s.eject && strings.TrimSpace(text) == "" {
		s.remove(s.target, "nothing is left in it")
		return
	}
	s.change(s.target, text, strings.Join(s.notes, "; "), s.conflict)
}
