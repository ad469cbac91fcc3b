// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"slices"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
)

// Eject plans the end of the subscription to a convention, or to all conventions if name is empty: the files
// stay, but without the headers and markers of the convention. The plan has the lock and the base texts of the
// remaining conventions.
func Eject(lock *subscription.Lock, base map[string]string, current map[string]*File, name string) *Plan {
	isEjected := func(convention string) bool { return name == "" || convention == name }
	isKept := func(convention string) bool { return !isEjected(convention) }
	// The error is nil, because no text is merged.
	plan, _ := New(Input{Lock: filterLock(lock, isEjected), Current: current, eject: true})
	plan.Lock = filterLock(lock, isKept)
	for _, f := range plan.Lock.Files {
		if text, ok := base[f.Path]; ok {
			plan.Base[f.Path] = filterBase(text, f)
		}
	}
	return plan
}

// filterLock returns the part of a lock that belongs to the selected conventions.
func filterLock(lock *subscription.Lock, isSelected func(convention string) bool) *subscription.Lock {
	out := &subscription.Lock{Parameters: lock.Parameters, Excepted: lock.Excepted}
	for _, l := range lock.Conventions {
		if isSelected(l.Name) {
			out.Conventions = append(out.Conventions, l)
		}
	}
	for _, f := range lock.Files {
		if f.Kind == convention.Shared {
			f.Regions = slices.DeleteFunc(slices.Clone(f.Regions),
				func(r subscription.LockedRegion) bool { return !isSelected(r.Convention) })
			if len(f.Regions) == 0 {
				continue
			}
			f.Convention = f.Regions[0].Convention
		}
		if isSelected(f.Convention) {
			out.Files = append(out.Files, f)
		}
	}
	return out
}

// filterBase returns the part of a base text whose regions are in the lock.
func filterBase(text string, file subscription.LockedFile) string {
	pieces, err := convention.Split(text)
	if file.Kind != convention.Shared || err != nil {
		return text
	}
	out := ""
	for _, piece := range pieces {
		if file.Region(piece.Name) != nil {
			out += piece.Text
		}
	}
	return out
}

// releaseFile plans a file that no convention brings. The file is removed unless a user has edited it or it is ejected.
func (p *planner) releaseFile(t *target) {
	switch {
	case t.current == nil, t.locked.Kind == convention.Once: // there is no file, or it belongs to the repository
	case t.locked.Kind == convention.Shared:
		p.planShared(t)
	case p.eject && t.locked.Kind == convention.Owned:
		p.planBytes(t, convention.RemoveHeader(t.current.Text), "", false)
	case p.eject: // a merged file stays unchanged
	case t.isAsRendered():
		p.planRemoval(t, "no longer of a convention")
	default:
		p.addNote("%s is no longer of a convention; it was edited by hand, and stays as a file of the repository",
			t.path)
	}
}
