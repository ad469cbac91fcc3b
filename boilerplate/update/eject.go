// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"slices"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
)

// Eject plans what is left of a repository's files when one convention, or with an empty name all of them, is no longer
// subscribed to: the files as they are, without the headers and markers of the convention. It returns the lock and the
// base of the conventions that stay.
func Eject(lock *subscription.Lock, base map[string]string, current map[string]*File, name string) *Plan {
	goes := func(convention string) bool { return name == "" || convention == name }
	stays := func(convention string) bool { return !goes(convention) }
	plan, _ := New(Input{Lock: part(lock, goes), Current: current, eject: true}) // Nothing is merged.
	plan.Lock = part(lock, stays)
	for _, f := range plan.Lock.Files {
		if text, ok := base[f.Path]; ok {
			plan.Base[f.Path] = baseOf(text, f)
		}
	}
	return plan
}

// part is what a lock has of some conventions.
func part(lock *subscription.Lock, has func(convention string) bool) *subscription.Lock {
	out := &subscription.Lock{Parameters: lock.Parameters, Excepted: lock.Excepted}
	for _, l := range lock.Conventions {
		if has(l.Name) {
			out.Conventions = append(out.Conventions, l)
		}
	}
	for _, f := range lock.Files {
		if f.Kind == convention.Shared {
			f.Regions = slices.DeleteFunc(slices.Clone(f.Regions),
				func(r subscription.LockedRegion) bool { return !has(r.Convention) })
			if len(f.Regions) == 0 {
				continue
			}
			f.Convention = f.Regions[0].Convention
		}
		if has(f.Convention) {
			out.Files = append(out.Files, f)
		}
	}
	return out
}

// baseOf is what is left of the base of a file.
func baseOf(text string, file subscription.LockedFile) string {
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

// release removes what a convention no longer brings, unless somebody has edited it, or it was ejected.
func (p *planner) release(t *target) {
	switch {
	case t.current == nil, t.locked.Kind == convention.Once:
	case t.locked.Kind == convention.Shared:
		p.shared(t)
	case p.eject && t.locked.Kind == convention.Owned:
		p.change(t, convention.WithoutHeader(t.current.Text), "", false)
	case p.eject:
	case t.isAsRendered():
		p.remove(t, "no longer of a convention")
	default:
		p.note("%s is no longer of a convention; it was edited by hand, and stays as a file of the repository", t.path)
	}
}
