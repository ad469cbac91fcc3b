// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"slices"
	"strconv"
	"strings"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
)

// shared merges the regions of a file, and leaves everything else as it is, byte by byte.
func (p *planner) shared(t *target) error {
	locked := subscription.LockedFile{Path: t.path, Kind: convention.Shared, Convention: t.wanted.Convention,
		Executable: t.wanted.Executable}
	isOwn := t.current != nil && t.locked != nil && t.locked.Kind != convention.Shared &&
		Digest(t.current.Text) == t.locked.Digest
	if t.current == nil || isOwn {
		for _, r := range t.wanted.Regions {
			p.plan.Base[t.path] += r.Text
			locked.Regions = append(locked.Regions, lockRegion(r))
		}
		p.plan.Lock.Files = append(p.plan.Lock.Files, locked)
		note := ""
		if t.current == nil && t.locked != nil {
			note = "was missing"
		}
		p.write(t, t.wanted.Text, note)
		return nil
	}
	pieces, err := convention.Split(t.current.Text)
	if err != nil {
		p.refuse(t.path, "its regions are broken: "+err.Error(), "restore the markers of the region")
		return nil //nolint:nilerr // it is a refusal
	}
	s := &sharing{planner: p, target: t, pieces: pieces, base: p.regionsOfBase(t), locked: &locked}
	for _, r := range t.wanted.Regions {
		if err := s.region(r); err != nil {
			return err
		}
	}
	s.removeRegions()
	p.plan.Lock.Files = append(p.plan.Lock.Files, locked)
	s.finish()
	return nil
}

func lockRegion(r convention.Region) subscription.LockedRegion {
	return subscription.LockedRegion{Name: r.Name, Convention: r.Convention, Digest: Digest(r.Text)}
}

// regionsOfBase are the regions of a file as they were rendered last, by their names.
func (p *planner) regionsOfBase(t *target) map[string]string {
	out := map[string]string{}
	text, _ := unixLines(p.Base[t.path])
	pieces, err := convention.Split(text)
	if err != nil {
		return out
	}
	for _, piece := range pieces {
		// A base that somebody has edited is none.
		if r := t.locked.Region(piece.Name); r != nil && r.Digest == Digest(piece.Text) {
			out[piece.Name] = piece.Text
		}
	}
	return out
}

// sharing is the plan of one shared file.
type sharing struct {
	*planner
	target   *target
	pieces   []convention.Piece
	base     map[string]string
	locked   *subscription.LockedFile
	notes    []string
	conflict bool
}

func (s *sharing) find(name string) int {
	return slices.IndexFunc(s.pieces, func(p convention.Piece) bool { return p.Name == name })
}

func (s *sharing) region(wanted convention.Region) error {
	path, before := s.target.path, s.target.locked.Region(wanted.Name)
	at := s.find(wanted.Name)
	if s.isExcepted(path, wanted.Name) {
		s.note("region %s of %s stays as it is, by an exception", wanted.Name, path)
		if before != nil {
			s.locked.Regions = append(s.locked.Regions, *before)
			s.plan.Base[path] += s.base[wanted.Name]
		}
		return nil
	}
	s.locked.Regions = append(s.locked.Regions, lockRegion(wanted))
	s.plan.Base[path] += wanted.Text
	if at < 0 {
		if before != nil {
			s.notes = append(s.notes, "region "+wanted.Name+" was missing")
		}
		s.append(wanted)
		return nil
	}
	current, crlf := unixLines(endLine(s.pieces[at].Text))
	base, hasBase := s.base[wanted.Name]
	overwrite := slices.Contains(s.Overwrite, path) || before == nil && s.Adopt
	switch {
	case current == wanted.Text:
		return nil
	case overwrite:
		s.setPiece(at, wanted.Text, crlf)
		s.notes = append(s.notes, "region "+wanted.Name+" overwritten")
		return nil
	case !hasBase && before != nil && Digest(current) == before.Digest:
		base = current
	case before == nil:
		s.refuse(path, "it has a region "+wanted.Name+" already, with another text", "overwrite it with --adopt",
			"remove the region, with its markers")
		return nil
	case !hasBase:
		s.refuseWithoutBase(path)
		return nil
	}
	text, conflict, err := s.merge(path, current, base, wanted.Text)
	if err != nil {
		return err
	}
	s.conflict = s.conflict || conflict
	s.setPiece(at, text, crlf)
	return nil
}

// endLine ends the last line of a file.
func endLine(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		return text + "\n"
	}
	return text
}

func (s *sharing) setPiece(at int, text string, crlf bool) {
	if text, _ = unixLines(text); crlf {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	s.pieces[at].Text = text
}

// append adds a region at the end of the file, with an empty line in front of it.
func (s *sharing) append(r convention.Region) {
	text := r.Text
	if last := len(s.pieces) - 1; last >= 0 {
		end := "\n"
		if s.target.crlf {
			end = "\r\n"
		}
		if before := s.pieces[last].Text; !strings.HasSuffix(before, "\n") {
			s.pieces[last].Text += end
		}
		text = "\n" + text
	}
	if s.target.crlf {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	s.pieces = append(s.pieces, convention.Piece{Region: convention.Region{Name: r.Name, Text: text}})
}

// removeRegions removes the regions that no convention brings any more. What somebody has edited stays, without the
// markers.
func (s *sharing) removeRegions() {
	if s.target.locked == nil {
		return
	}
	for _, r := range s.target.locked.Regions {
		at := s.find(r.Name)
		isWanted := s.target.wanted != nil && slices.ContainsFunc(s.target.wanted.Regions,
			func(w convention.Region) bool { return w.Name == r.Name })
		switch {
		case at < 0 || isWanted:
		case s.isExcepted(s.target.path, r.Name):
			s.note("region %s of %s is no longer of a convention, and stays as it is, by an exception", r.Name,
				s.target.path)
		case Digest(endLine(s.pieces[at].Text)) == r.Digest:
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
	for _, end := range []string{"\r\n\r\n", "\n\n"} {
		if strings.HasSuffix(*before, end) {
			*before = strings.TrimSuffix(*before, end[len(end)/2:])
			return
		}
	}
}

func (s *sharing) finish() {
	var text strings.Builder
	for _, piece := range s.pieces {
		text.WriteString(piece.Text)
	}
	if strings.TrimSpace(text.String()) == "" && s.target.wanted == nil {
		s.plan.Changes = append(s.plan.Changes, Change{Path: s.target.path, Action: Remove, Kind: convention.Shared,
			Convention: s.target.locked.Convention, Before: s.target.current, Note: "nothing is left in it"})
		return
	}
	if s.conflict {
		s.notes = append(s.notes, "conflict")
	}
	s.change(s.target, text.String(), strings.Join(s.notes, "; "), s.conflict)
}

// releaseRegions removes all regions of a file that no convention brings any more.
func (p *planner) releaseRegions(t *target) {
	pieces, err := convention.Split(t.current.Text)
	if err != nil {
		p.note("%s is no longer of a convention; its regions are broken (%v), and it stays as it is", t.path, err)
		return
	}
	s := &sharing{planner: p, target: t, pieces: pieces}
	s.removeRegions()
	s.finish()
}

// Eject plans what is left of a repository's files when one convention, or with an empty name all of them, is no longer
// subscribed to: the files as they are, without the headers and markers of the convention. It returns the lock and the
// base of the conventions that stay.
func Eject(lock *subscription.Lock, base map[string]string, current map[string]*File, name string) *Plan {
	plan := &Plan{Lock: &subscription.Lock{Parameters: lock.Parameters}, Base: map[string]string{}}
	goes := func(convention string) bool { return name == "" || convention == name }
	for _, l := range lock.Conventions {
		if !goes(l.Name) {
			plan.Lock.Conventions = append(plan.Lock.Conventions, l)
		}
	}
	for _, f := range lock.Files {
		if stays, ok := lockAfter(f, goes); ok {
			plan.Lock.Files = append(plan.Lock.Files, stays)
			if text, ok := base[f.Path]; ok {
				plan.Base[f.Path] = keepRegions(text, stays)
			}
		}
		file := current[f.Path]
		if file == nil || file.Obstacle != "" {
			continue
		}
		if text := ejected(f, file.Text, goes); text != file.Text {
			plan.Changes = append(plan.Changes, Change{Path: f.Path, Action: Update, Kind: f.Kind,
				Convention: f.Convention, Before: file, After: &File{Text: text, Executable: file.Executable}})
		}
	}
	return plan
}

// lockAfter is the entry of a file without the conventions that go; false if nothing of it stays.
func lockAfter(f subscription.LockedFile, goes func(string) bool) (subscription.LockedFile, bool) {
	if f.Kind != convention.Shared {
		return f, !goes(f.Convention)
	}
	f.Regions = slices.DeleteFunc(slices.Clone(f.Regions),
		func(r subscription.LockedRegion) bool { return goes(r.Convention) })
	if len(f.Regions) > 0 && goes(f.Convention) {
		f.Convention = f.Regions[0].Convention
	}
	return f, len(f.Regions) > 0
}

// ejected is the text of a file without the headers and markers of the conventions that go.
func ejected(f subscription.LockedFile, text string, goes func(string) bool) string {
	switch {
	case f.Kind == convention.Shared:
		return unmark(text, func(region string) bool {
			r := f.Region(region)
			return r != nil && goes(r.Convention)
		})
	case f.Kind == convention.Owned && goes(f.Convention):
		return convention.WithoutHeader(text)
	}
	return text
}

// keepRegions returns the base of a file with the regions that stay.
func keepRegions(base string, file subscription.LockedFile) string {
	if file.Kind != convention.Shared {
		return base
	}
	pieces, err := convention.Split(base)
	if err != nil {
		return base
	}
	var out strings.Builder
	for _, piece := range pieces {
		if file.Region(piece.Name) != nil {
			out.WriteString(piece.Text)
		}
	}
	return out.String()
}

// unmark removes the markers of some regions. A text with broken regions stays as it is.
func unmark(text string, goes func(region string) bool) string {
	pieces, err := convention.Split(text)
	if err != nil {
		return text
	}
	var out strings.Builder
	for _, piece := range pieces {
		if piece.Name != "" && goes(piece.Name) {
			out.WriteString(piece.Unmark())
			continue
		}
		out.WriteString(piece.Text)
	}
	return out.String()
}

// at names a line of a file for people.
func at(path string, line int) string {
	if line == 0 {
		return path
	}
	return path + ":" + strconv.Itoa(line)
}
