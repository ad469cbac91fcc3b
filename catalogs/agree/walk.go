// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agree

import (
	"github.com/bellwether-dev/bellwether/catalogs"
)

// walker follows hops until they end. It computes the next hop of each bundle once, and the paths of all bundles of a
// chain share one list, because a package with thousands of versions has paths of thousands of hops.
type walker struct {
	view  *packageView
	next  func(catalogs.Installed) (string, error)
	heads map[string]bool
	hops  map[string]hop
	done  map[string]walkResult // the results by the bundle at which a walk starts
}

type hop struct {
	next string
	err  error
}

// walkResult is a walk, and the harm that it does.
type walkResult struct {
	Walk
	// goesToBlocked is true if the walk goes to a blocked version, goesDown if it goes to a lower version.
	goesToBlocked, goesDown bool
	// fullPath is the path with the start bundle in front; nil if it was not needed yet.
	fullPath []string
}

// newWalker returns a walker. next returns the next hop of a bundle; a walk arrives if it ends at one of the heads.
func newWalker(s *packageView, next func(catalogs.Installed) (string, error), heads ...string) *walker {
	w := &walker{view: s, next: next, heads: map[string]bool{}, hops: map[string]hop{}, done: map[string]walkResult{}}
	for _, h := range heads {
		w.heads[h] = true
	}
	return w
}

// findHop returns the next hop of a bundle, and computes it only once.
func (w *walker) findHop(from catalogs.Installed) hop {
	h, ok := w.hops[from.Name]
	if !ok {
		h.next, h.err = w.next(from)
		w.hops[from.Name] = h
	}
	return h
}

// walkFrom returns the walk that starts at a bundle. It is fastest if walks of lower versions are requested first.
func (w *walker) walkFrom(start catalogs.Installed) walkResult {
	if existing, ok := w.done[start.Name]; ok {
		return existing
	}
	var visited []string
	isPassed := map[string]bool{}
	for current := start; ; {
		if rest, ok := w.done[current.Name]; ok {
			if rest.fullPath == nil {
				rest.fullPath = append([]string{current.Name}, rest.Path...)
				w.done[current.Name] = rest
			}
			return w.storeWalks(visited, rest)
		}
		visited, isPassed[current.Name] = append(visited, current.Name), true
		h := w.findHop(current)
		switch {
		case h.next == "" && w.heads[current.Name]:
			return w.storeWalks(visited, walkResult{Walk: Walk{End: Arrives}})
		case h.next == "":
			return w.storeWalks(visited, walkResult{Walk: Walk{End: Stops, Err: h.err}})
		case isPassed[h.next]:
			return w.newLoop(append(visited, h.next))
		}
		current = catalogs.Installed{Name: h.next, Version: w.view.versions[h.next].String()}
	}
}

// storeWalks stores the walks of all visited bundles, which continue with rest, and returns the walk of the first
// visited bundle.
func (w *walker) storeWalks(visited []string, rest walkResult) walkResult {
	// A single bundle that joins a path needs no list.
	var fullPath []string
	if len(visited) > 1 {
		fullPath = append(visited[:len(visited):len(visited)], rest.fullPath...)
	}
	// The walk of each bundle is the walk of the bundle after it, with one more hop in front.
	for i := len(visited) - 1; i >= 0; i-- {
		rest.Path = rest.fullPath
		if len(rest.Path) > 0 {
			_, blocked := w.view.Blocked(rest.Path[0])
			rest.goesToBlocked = rest.goesToBlocked || blocked
			rest.goesDown = rest.goesDown || w.view.isHigher(visited[i], rest.Path[0])
		}
		rest.fullPath = nil
		if fullPath != nil {
			rest.fullPath = fullPath[i:]
		}
		w.done[visited[i]] = rest
	}
	return rest
}

// newLoop returns a walk that reaches its last bundle for the second time.
func (w *walker) newLoop(fullPath []string) walkResult {
	walk := Walk{Path: fullPath[1:], End: Loops}
	_, _, down := w.view.findDowngrade(fullPath[0], walk)
	return walkResult{Walk: walk, goesToBlocked: w.view.findBlocked(walk) != "", goesDown: down, fullPath: fullPath}
}
