// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agree

import (
	"slices"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// walker follows hops until they end. It computes the next hop of each bundle
// once.
type walker struct {
	view  *packageView
	next  func(catalogs.Installed) (string, error)
	heads map[string]bool
	hops  map[string]hop
	done  map[string]Walk // those that end
}

type hop struct {
	next string
	err  error
}

func newWalker(s *packageView, next func(catalogs.Installed) (string, error), heads ...string) *walker {
	w := &walker{view: s, next: next, heads: map[string]bool{}, hops: map[string]hop{}, done: map[string]Walk{}}
	for _, h := range heads {
		w.heads[h] = true
	}
	return w
}

func (w *walker) hop(from catalogs.Installed) hop {
	h, ok := w.hops[from.Name]
	if !ok {
		h.next, h.err = w.next(from)
		w.hops[from.Name] = h
	}
	return h
}

func (w *walker) from(start catalogs.Installed) Walk {
	walk := w.walk(start)
	if walk.End != Loops {
		w.done[start.Name] = walk
	}
	return walk
}

func (w *walker) walk(start catalogs.Installed) Walk {
	var walk Walk
	for at := start; ; {
		// Reuse the rest of an earlier walk.
		if rest, ok := w.done[at.Name]; ok {
			walk.Path = append(walk.Path, rest.Path...)
			walk.End, walk.Err = rest.End, rest.Err
			return walk
		}
		h := w.hop(at)
		switch {
		case h.next == "" && w.heads[at.Name]:
			walk.End = Arrives
			return walk
		case h.next == "":
			walk.End, walk.Err = Stops, h.err
			return walk
		}
		again := h.next == start.Name || slices.Contains(walk.Path, h.next)
		walk.Path = append(walk.Path, h.next)
		if again {
			walk.End = Loops
			return walk
		}
		at = catalogs.Installed{Name: h.next, Version: w.view.versions[h.next].String()}
	}
}
