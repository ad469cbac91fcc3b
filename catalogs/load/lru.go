// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"container/list"
	"sync"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// lru keeps what was used last, up to a sum of sizes.
type lru struct {
	mu    sync.Mutex
	left  int
	order *list.List
	byKey map[string]*list.Element
}

type kept struct {
	key   string
	value any
	size  int
}

func newLRU(capacity int) *lru {
	return &lru{left: capacity, order: list.New(), byKey: map[string]*list.Element{}}
}

func (l *lru) get(key string) (any, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.byKey[key]
	if !ok {
		return nil, false
	}
	l.order.MoveToFront(e)
	return e.Value.(kept).value, true
}

func (l *lru) put(key string, value any, size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old, ok := l.byKey[key]; ok {
		l.remove(old)
	}
	l.byKey[key] = l.order.PushFront(kept{key, value, size})
	l.left -= size
	for l.left < 0 {
		l.remove(l.order.Back())
	}
}

func (l *lru) remove(e *list.Element) {
	k := l.order.Remove(e).(kept)
	delete(l.byKey, k.key)
	l.left += k.size
}

// perItem is an estimate for the pointers, maps and slices around a name.
const perItem = 200

func sizeOfPackage(p *catalogs.Package) int {
	size := perItem
	for _, c := range p.Channels {
		size += perItem * (1 + len(c.Entries))
	}
	for _, b := range p.Bundles {
		size += perItem * (1 + len(b.RelatedImages))
		for _, o := range b.Objects {
			size += len(o)
		}
		for _, property := range b.Properties {
			size += len(property.Value) + perItem/2
		}
	}
	return size
}

func sizeOfSummary(s catalogs.Summary) int {
	size := perItem
	for _, p := range s.Packages {
		size += perItem*(1+len(p.Channels)) + perItem/4*(len(p.Versions)+len(p.Provides)) + len(p.Problem)
	}
	return size
}
