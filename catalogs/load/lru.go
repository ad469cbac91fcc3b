// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"container/list"
	"sync"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// lru keeps the values that were used last, up to a sum of sizes.
type lru struct {
	mu    sync.Mutex
	free  int
	order *list.List
	byKey map[string]*list.Element
}

type cacheItem struct {
	key   string
	value any
	size  int
}

func newLRU(capacity int) *lru {
	return &lru{free: capacity, order: list.New(), byKey: map[string]*list.Element{}}
}

// get returns the value of a key and marks the value as used last; false if there is none.
func (l *lru) get(key string) (any, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.byKey[key]
	if !ok {
		return nil, false
	}
	l.order.MoveToFront(e)
	return e.Value.(cacheItem).value, true
}

// put adds a value, and removes the values that were not used for the longest time until all values fit. A value that
// is larger than the capacity is removed too.
func (l *lru) put(key string, value any, size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old, ok := l.byKey[key]; ok {
		l.remove(old)
	}
	l.byKey[key] = l.order.PushFront(cacheItem{key: key, value: value, size: size})
	l.free -= size
	for l.free < 0 {
		l.remove(l.order.Back())
	}
}

func (l *lru) remove(e *list.Element) {
	k := l.order.Remove(e).(cacheItem)
	delete(l.byKey, k.key)
	l.free += k.size
}

// perItem is an estimate for the pointers, maps and slices around a name, in bytes.
const perItem = 200

// estimatePackageSize estimates the memory of a package in bytes.
func estimatePackageSize(p *catalogs.Package) int {
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

func estimateSummarySize(s catalogs.Summary) int {
	size := perItem
	for _, p := range s.Packages {
		size += perItem*(1+len(p.Channels)) + perItem/4*(len(p.Versions)+len(p.Provides)) + len(p.Problem)
	}
	return size
}
