// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
)

// sharedPlanner plans one shared file.
type sharedPlanner struct {
	*planner
	*target
	isWhole  bool // the whole file is written: it does not exist, or a convention owned it
	pieces   []convention.Region
	rendered map[string]string // the regions as they were rendered last, by name
	after    subscription.LockedFile
	notes    []string
	conflict bool
}

// planShared plans the regions of a file. It does not change any other byte of the file.
func (p *planner) planShared(t *target) {
	wanted := t.wanted
	if wanted == nil {
		wanted = &convention.Rendered{}
	}
	s := &sharedPlanner{planner: p, target: t, after: subscription.LockedFile{Path: t.path, Kind: convention.Shared,
		Convention: wanted.Convention, Executable: wanted.Executable}}
	s.isWhole = t.current == nil || t.isAsRendered() && t.locked.Kind != convention.Shared
	text := toLineEnds(wanted.Text, t.crlf)
	if !s.isWhole {
		text = t.current.Text
	}
	var err error
	switch s.pieces, err = convention.Split(text); {
	case err != nil && t.wanted == nil:
		p.addNote("%s is no longer of a convention; its regions are broken (%v), and it stays as it is", t.path, err)
		return
	case err != nil:
		p.addRefusal(t.path, "its regions are broken: "+err.Error(), "restore the markers of the region")
		return
	case t.current == nil && t.locked != nil:
		s.notes = []string{"was missing"}
	}
	s.readBase()
	for _, r := range wanted.Regions {
		s.planRegion(r)
	}
	s.removeRegions(wanted.Regions)
	if t.wanted != nil {
		p.plan.Lock.Files = append(p.plan.Lock.Files, s.after)
	}
	s.planFile()
}

// readBase reads the regions as they were rendered last. It ignores a base text that a user has edited.
func (s *sharedPlanner) readBase() {
	s.rendered = map[string]string{}
	text, _ := toUnixLines(s.Base[s.path])
	pieces, err := convention.Split(text)
	if err != nil {
		return
	}
	for _, piece := range pieces {
		if r := s.findLocked(piece.Name); r != nil && r.Digest == Digest(piece.Text) {
			s.rendered[piece.Name] = piece.Text
		}
	}
}

// findLocked returns the entry of a region in the lock, or nil.
func (s *sharedPlanner) findLocked(name string) *subscription.LockedRegion {
	return s.target.locked.Region(name)
}

// findRegion returns the index of a region, or -1.
func findRegion(pieces []convention.Region, name string) int {
	return slices.IndexFunc(pieces, func(p convention.Region) bool { return p.Name == name })
}

// planRegion plans one region that a convention brings: it merges the region into the file, or appends a missing
// region. A region with an exception stays unchanged.
func (s *sharedPlanner) planRegion(wanted convention.Region) {
	locked, index := s.findLocked(wanted.Name), findRegion(s.pieces, wanted.Name)
	if !s.isWhole && subscription.IsExcepted(s.Exceptions, s.path, wanted.Name, s.Now) {
		s.addNote("region %s of %s stays as it is, by an exception", wanted.Name, s.path)
		if locked != nil {
			s.after.Regions = append(s.after.Regions, *locked)
			s.plan.Base[s.path] += s.rendered[wanted.Name]
		}
		return
	}
	s.after.Regions = append(s.after.Regions, subscription.LockedRegion{Name: wanted.Name,
		Convention: wanted.Convention, Digest: Digest(wanted.Text)})
	s.plan.Base[s.path] += wanted.Text
	switch {
	case index >= 0:
		s.mergeRegion(wanted, locked, &s.pieces[index])
		return
	case locked != nil:
		s.notes = append(s.notes, "region "+wanted.Name+" was missing")
	}
	s.appendRegion(wanted)
}

// mergeRegion plans a region that exists in the file: it sets the text of piece, which is the region in the file.
// locked is the region in the lock, or nil. Without a base text, and for a region that no convention brought, the
// update is refused.
func (s *sharedPlanner) mergeRegion(wanted convention.Region, locked *subscription.LockedRegion,
	piece *convention.Region) {
	current, crlf := toUnixLines(convention.EndLine(piece.Text))
	base, hasBase := s.rendered[wanted.Name]
	if !hasBase && locked != nil && Digest(current) == locked.Digest { // the region is unchanged
		base, hasBase = current, true
	}
	switch {
	case current == wanted.Text: // no change is needed
	case slices.Contains(s.Overwrite, s.path), locked == nil && s.Adopt:
		piece.Text = toLineEnds(wanted.Text, crlf)
		s.notes = append(s.notes, "region "+wanted.Name+" overwritten")
	case locked == nil:
		s.addRefusal(s.path, "it has a region "+wanted.Name+" already, with another text", "overwrite it with --adopt",
			"remove the region, with its markers")
	case !hasBase:
		s.refuseWithoutBase(s.path)
	default:
		text, conflict := s.mergeText(s.path, current, base, wanted.Text)
		piece.Text, s.conflict = toLineEnds(text, crlf), s.conflict || conflict
	}
}

// appendRegion adds a region at the end of the file, after an empty line.
func (s *sharedPlanner) appendRegion(r convention.Region) {
	text := r.Text
	if last := len(s.pieces) - 1; last >= 0 {
		s.pieces[last].Text = toLineEnds(convention.EndLine(s.pieces[last].Text), s.crlf)
		text = "\n" + text
	}
	s.pieces = append(s.pieces, convention.Region{Name: r.Name, Text: toLineEnds(text, s.crlf)})
}

// removeRegions removes the regions that no convention brings. A region that a user has edited stays, without
// its markers.
func (s *sharedPlanner) removeRegions(wanted []convention.Region) {
	if s.target.locked == nil {
		return
	}
	for _, r := range s.target.locked.Regions {
		index := findRegion(s.pieces, r.Name)
		switch {
		case index < 0 || findRegion(wanted, r.Name) >= 0: // the region is not in the file, or is still wanted
		case s.eject:
			s.pieces[index].Text = s.pieces[index].Unmark()
		case subscription.IsExcepted(s.Exceptions, s.path, r.Name, s.Now):
			s.addNote("region %s of %s is no longer of a convention, and stays as it is, by an exception", r.Name,
				s.path)
		case Digest(convention.EndLine(s.pieces[index].Text)) == r.Digest:
			s.pieces[index].Text = ""
			s.trimGap(index)
			s.notes = append(s.notes, "region "+r.Name+" removed")
		default:
			s.pieces[index].Text = s.pieces[index].Unmark()
			s.notes = append(s.notes, "region "+r.Name+" was edited by hand, and stays without its markers")
		}
	}
}

// trimGap removes the empty line before a region at the end of the file, which appendRegion had added.
func (s *sharedPlanner) trimGap(index int) {
	if index == 0 || index != len(s.pieces)-1 {
		return
	}
	previous := &s.pieces[index-1].Text
	for _, lineEnd := range []string{"\r\n", "\n"} {
		if strings.HasSuffix(*previous, lineEnd+lineEnd) {
			*previous = strings.TrimSuffix(*previous, lineEnd)
			return
		}
	}
}

// planFile adds the change of the whole file to the plan. A file that no convention brings and that is empty
// is removed.
func (s *sharedPlanner) planFile() {
	text := ""
	for _, piece := range s.pieces {
		text += piece.Text
	}
	if s.wanted == nil && !s.eject && strings.TrimSpace(text) == "" {
		s.planRemoval(s.target, "nothing is left in it")
		return
	}
	s.planBytes(s.target, text, strings.Join(s.notes, "; "), s.conflict)
}
