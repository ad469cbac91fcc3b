// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"slices"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry/resolver/cache"
)

// chain is the order of a channel, as sortChannel of OLM's resolver finds it: from the head along replaces. The
// resolver sorts the whole channel for each Subscription, which for thousands of versions takes seconds and gigabytes,
// although only those count that can replace the installed version.
type chain struct {
	// entries are those on the chain, the head first. It is nil where the resolver would refuse the channel, or where
	// two entries have the same name: then it gets the whole channel.
	entries []cache.Entry
	// skippedBy are the names of the entries that skip an entry, by its name.
	skippedBy map[string][]string
}

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
	for at := head; at != nil; at = byName[at.Replaces] {
		if len(out.entries) == len(all) {
			return chain{} // a circle
		}
		out.entries = append(out.entries, *at)
	}
	return out
}

// deciding returns entries from which the resolver draws the same conclusion as from the whole channel: those that can
// replace the installed version, and what is between them on the chain. Without any it is the head, which the resolver
// then finds not to replace it. Where the order or what is skipped follows from other entries, it is the whole channel.
// TestShortcutsKeepAnswers compares the answers.
func (c *Channel) deciding(name string, version semver.Version) []cache.Entry {
	if len(c.chain.entries) == 0 {
		return c.entries
	}
	canReplace := cache.Or(cache.SkipRangeIncludesPredicate(version), cache.ReplacesPredicate(name))
	first, last := -1, 0
	for i := range c.chain.entries {
		if !canReplace.Test(&c.chain.entries[i]) {
			continue
		}
		if first < 0 {
			first = i
		}
		last = i
	}
	if first < 0 {
		return c.chain.entries[:1]
	}
	part := c.chain.entries[first : last+1]
	if !c.chain.isWhole(part) {
		return c.entries
	}
	return part
}

// isWhole reports whether the resolver orders a part of the chain as it does in the whole channel: the first entry is
// its only head, and what is skipped is skipped by an entry of the part.
func (c chain) isWhole(part []cache.Entry) bool {
	names := make(map[string]bool, len(part))
	for i := range part {
		names[part[i].Name] = true
	}
	for i := range part {
		by := c.skippedBy[part[i].Name]
		isSkipped := slices.ContainsFunc(by, func(name string) bool { return names[name] })
		if len(by) > 0 && !isSkipped || i == 0 && isSkipped {
			return false
		}
	}
	return !slices.ContainsFunc(part, func(e cache.Entry) bool { return e.Replaces == part[0].Name })
}
