// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agree

import (
	"github.com/bellwether-dev/bellwether/catalogs"
)

// walker follows hops until they end. It computes the next hop of each bundle
// once, and the paths of all bundles of a chain share one list: a package with
// thousands of versions has paths of thousands of hops.
type walker struct {
	view  *packageView
	next  func(catalogs.Installed) (string, error)
	heads map[string]bool
	hops  map[string]hop
	done  map[string]outcome // those that end
}

type hop struct {
	next string
	err  error
}

// outcome is a walk, and what is wrong on it.
type outcome struct {
	Walk
	// toBlocked says that the walk goes to a blocked version, and down that it goes to a lower one.
	toBlocked, down bool
	// whole is the path with the bundle in front that it starts from; nil where nobody needed it yet.
	whole []string
}

func newWalker(s *packageView, next func(catalogs.Installed) (string, error), heads ...string) *walker {
	w := &walker{view: s, next: next, heads: map[string]bool{}, hops: map[string]hop{}, done: map[string]outcome{}}
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

// from returns the walk that starts at a bundle. Walks are cheapest if those of
// lower versions are requested first.
func (w *walker) from(start catalogs.Installed) outcome {
	if known, ok := w.done[start.Name]; ok {
		return known
	}
	var passed []string
	seen := map[string]bool{}
	for at := start; ; {
		if rest, ok := w.done[at.Name]; ok {
			if rest.whole == nil {
				rest.whole = append([]string{at.Name}, rest.Path...)
				w.done[at.Name] = rest
			}
			return w.keep(passed, rest)
		}
		passed, seen[at.Name] = append(passed, at.Name), true
		h := w.hop(at)
		switch {
		case h.next == "" && w.heads[at.Name]:
			return w.keep(passed, outcome{Walk: Walk{End: Arrives}})
		case h.next == "":
			return w.keep(passed, outcome{Walk: Walk{End: Stops, Err: h.err}})
		case seen[h.next]:
			return w.loop(append(passed, h.next))
		}
		at = catalogs.Installed{Name: h.next, Version: w.view.versions[h.next].String()}
	}
}

// keep stores the walks of all bundles that were passed before the rest, and returns that of the first.
func (w *walker) keep(passed []string, rest outcome) outcome {
	// A single bundle that joins a path needs no list of its own.
	var whole []string
	if len(passed) > 1 {
		whole = append(passed[:len(passed):len(passed)], rest.whole...)
	}
	for i := len(passed) - 1; i >= 0; i-- {
		rest.Path = rest.whole
		if len(rest.Path) > 0 {
			_, blocked := w.view.Blocked(rest.Path[0])
			rest.toBlocked = rest.toBlocked || blocked
			rest.down = rest.down || w.view.isHigher(passed[i], rest.Path[0])
		}
		rest.whole = nil
		if whole != nil {
			rest.whole = whole[i:]
		}
		w.done[passed[i]] = rest
	}
	return rest
}

// loop is a walk that comes to its last bundle for the second time.
func (w *walker) loop(whole []string) outcome {
	walk := Walk{Path: whole[1:], End: Loops}
	_, _, down := w.view.downgrade(whole[0], walk)
	return outcome{Walk: walk, toBlocked: w.view.firstBlocked(walk) != "", down: down, whole: whole}
}
