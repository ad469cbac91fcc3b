// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agree

import "github.com/bellwether-dev/bellwether/catalogs"

// walker repeats hops. It asks for each bundle once.
type walker struct {
	subject *subject
	next    func(catalogs.Installed) (string, error)
	heads   map[string]bool
	known   map[string]hop
}

type hop struct {
	next string
	err  error
}

func newWalker(s *subject, next func(catalogs.Installed) (string, error), heads ...string) *walker {
	w := &walker{subject: s, next: next, heads: map[string]bool{}, known: map[string]hop{}}
	for _, h := range heads {
		w.heads[h] = true
	}
	return w
}

func (w *walker) hop(from catalogs.Installed) hop {
	h, ok := w.known[from.Name]
	if !ok {
		h.next, h.err = w.next(from)
		w.known[from.Name] = h
	}
	return h
}

func (w *walker) from(start catalogs.Installed) Walk {
	var walk Walk
	seen := map[string]bool{start.Name: true}
	for at := start; ; {
		h := w.hop(at)
		switch {
		case h.next == "" && w.heads[at.Name]:
			walk.End, walk.Err = Arrives, nil
			return walk
		case h.next == "":
			walk.End, walk.Err = Stops, h.err
			return walk
		}
		walk.Path = append(walk.Path, h.next)
		if seen[h.next] {
			walk.End = Loops
			return walk
		}
		seen[h.next] = true
		at = catalogs.Installed{Name: h.next, Version: w.subject.versions[h.next].String()}
	}
}
