// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"slices"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry/resolver/cache"
)

// chain is a channel in the order of sortChannel of OLM's resolver: from the head along replaces. The resolver sorts
// the whole channel for each Subscription. That takes seconds and gigabytes for thousands of versions, although only
// the entries that can replace the installed version matter.
type chain struct {
	// entries are the entries on the chain, the head first. It is nil if the resolver would refuse the channel, or if
	// two entries have the same name. The resolver then gets the whole channel.
	entries []cache.Entry
	// skippedBy are the names of the entries that skip an entry, by the name of the skipped entry.
	skippedBy map[string][]string
}

// newChain returns the chain of a channel with these entries. It has no entries if two entries have the same name, or
// if the channel has no head, several heads or a cycle.
func newChain(all []cache.Entry) chain {
	byName := make(map[string]*cache.Entry, len(all))
	replaced := map[string]bool{}
	skippedBy := map[string][]string{}
	for i := range all {
		e := &all[i]
		if byName[e.Name] != nil {
			return chain{}
		}
		byName[e.Name], replaced[e.Replaces] = e, true
		for _, skipped := range e.Skips {
			replaced[skipped] = true
			skippedBy[skipped] = append(skippedBy[skipped], e.Name)
		}
	}
	var head *cache.Entry
	for i := range all {
		if replaced[all[i].Name] {
			continue
		}
		if head != nil {
			return chain{}
		}
		head = &all[i]
	}
	out := chain{skippedBy: skippedBy}
	for current := head; current != nil; current = byName[current.Replaces] {
		if len(out.entries) == len(all) {
			return chain{} // a cycle
		}
		out.entries = append(out.entries, *current)
	}
	return out
}

// selectDecidingEntries returns entries for which the resolver has the same result as for the whole channel: the
// entries that can replace the installed version, and the entries between them on the chain. If there are none, it
// returns the head, which does not replace the installed version. If other entries change the order or the skipped
// entries, it returns the whole channel. TestShortcutsKeepAnswers compares the results.
func (c *Channel) selectDecidingEntries(name string, version semver.Version) []cache.Entry {
	if len(c.chain.entries) == 0 {
		return c.entries
	}
	canReplace := cache.Or(cache.SkipRangeIncludesPredicate(version), cache.ReplacesPredicate(name))
	firstIndex, lastIndex := -1, 0
	for i := range c.chain.entries {
		if !canReplace.Test(&c.chain.entries[i]) {
			continue
		}
		if firstIndex < 0 {
			firstIndex = i
		}
		lastIndex = i
	}
	if firstIndex < 0 {
		return c.chain.entries[:1]
	}
	part := c.chain.entries[firstIndex : lastIndex+1]
	if !c.chain.hasSameOrder(part) {
		return c.entries
	}
	return part
}

// hasSameOrder reports whether the resolver orders a part of the chain as in the whole channel: the first entry is
// its only head, and every skipped entry is skipped by an entry of the part.
func (c chain) hasSameOrder(part []cache.Entry) bool {
	names := make(map[string]bool, len(part))
	for i := range part {
		names[part[i].Name] = true
	}
	for i := range part {
		skippers := c.skippedBy[part[i].Name]
		isSkipped := slices.ContainsFunc(skippers, func(name string) bool { return names[name] })
		losesSkip := len(skippers) > 0 && !isSkipped
		isSkippedHead := i == 0 && isSkipped
		if losesSkip || isSkippedHead {
			return false
		}
	}
	return !slices.ContainsFunc(part, func(e cache.Entry) bool { return e.Replaces == part[0].Name })
}
