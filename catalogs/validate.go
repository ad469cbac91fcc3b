// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

// The parts of a package are bounded because upgrade paths compare its entries with each other. The largest packages in
// public catalogs have some hundred bundles.
const (
	maxBundles = 10_000 // and as many blocks
	maxEntries = 50_000 // of all channels together
)

// Validate reports everything in which the package breaks the rules of file-based catalogs: a default channel that
// exists, one head per channel, an acyclic chain of replacements that misses no bundle, no version twice, and no
// reference to a bundle that is not there. The error wraps ErrInvalidPackage.
func (p *Package) Validate() error {
	if err := p.checkSize(); err != nil {
		return fmt.Errorf("%w %q: %w", ErrInvalidPackage, p.Name, err)
	}
	var found problems
	report := func(format string, args ...any) { found.add(fmt.Errorf(format, args...)) }
	if p.Name == "" {
		report("it has no name")
	}
	if len(p.Channels) == 0 {
		report("it has no channel")
	} else if p.Channels[p.DefaultChannel] == nil {
		report("its default channel %q does not exist; it has %s", p.DefaultChannel,
			strings.Join(slices.Sorted(maps.Keys(p.Channels)), ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Channels)) {
		for _, problem := range p.validateChannel(p.Channels[name]) {
			report("channel %q: %w", name, problem)
		}
	}
	for _, problem := range p.validateBundles() {
		report("%w", problem)
	}
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("%w %q: %w", ErrInvalidPackage, p.Name, errors.Join(found...))
}

// maxProblems bounds those that are named of one package or channel.
const maxProblems = 100

var errMore = errors.New("and there is more")

// problems are why a package is invalid, up to maxProblems.
type problems []error

// add reports whether there was room.
func (p *problems) add(err error) bool {
	if len(*p) == maxProblems {
		err = errMore
	}
	if len(*p) <= maxProblems {
		*p = append(*p, err)
	}
	return len(*p) <= maxProblems
}

func (p *Package) checkSize() error {
	entries := 0
	for _, c := range p.Channels {
		entries += len(c.Entries)
	}
	switch {
	case len(p.Bundles) > maxBundles:
		return fmt.Errorf("it has %d bundles, and at most %d are permitted", len(p.Bundles), maxBundles)
	case len(p.Blocks) > maxBundles:
		return fmt.Errorf("it has %d blocks, and at most %d are permitted", len(p.Blocks), maxBundles)
	case entries > maxEntries:
		return fmt.Errorf("its channels have %d entries together, and at most %d are permitted", entries, maxEntries)
	}
	return nil
}

func (p *Package) validateBundles() []error {
	offered := p.Offered()
	var found problems
	byVersion := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(p.Bundles)) {
		b := p.Bundles[name]
		if other, ok := byVersion[b.VersionString()]; ok {
			found.add(fmt.Errorf("bundles %q and %q have the same version %s", other, name,
				b.VersionString()))
		}
		byVersion[b.VersionString()] = name
		if !offered[name] {
			found.add(fmt.Errorf("bundle %q is in no channel", name))
		}
	}
	return found
}

// Offered returns the names of the bundles that are in some channel.
func (p *Package) Offered() map[string]bool {
	names := map[string]bool{}
	for _, c := range p.Channels {
		for _, e := range c.Entries {
			names[e.Name] = true
		}
	}
	return names
}

func (p *Package) validateChannel(c *Channel) []error {
	if len(c.Entries) == 0 {
		return []error{errors.New("it has no entry")}
	}
	var found problems
	seen := map[string]bool{}
	for _, e := range c.Entries {
		if seen[e.Name] {
			found.add(fmt.Errorf("entry %q is there twice", e.Name))
		}
		seen[e.Name] = true
		if p.Bundles[e.Name] == nil {
			found.add(fmt.Errorf("entry %q has no bundle", e.Name))
		}
		if slices.Contains(e.Skips, "") {
			found.add(fmt.Errorf("entry %q skips a bundle without a name", e.Name))
		}
		if e.SkipRange == "" {
			continue
		}
		if _, err := semver.ParseRange(e.SkipRange); err != nil {
			found.add(fmt.Errorf("entry %q has a skipRange %q that is no version range: %w", e.Name,
				e.SkipRange, err))
		}
	}
	if err := c.validateChain(); err != nil {
		found.add(err)
	}
	return found
}

// validateChain walks from the head along replaces. As in operator-registry, the walk ends where it meets a skipped
// bundle, its tail may replace a bundle that does not exist, and whatever it does not meet must be skipped.
func (c *Channel) validateChain() error {
	// A cycle that leaves no head is reported as the cycle it is.
	if cycle := c.cycle(); cycle != nil {
		return fmt.Errorf("replaces runs in a circle: %s", strings.Join(cycle, " -> "))
	}
	head, err := c.Head()
	if err != nil {
		return err
	}
	stranded := c.stranded(head)
	if len(stranded) > 0 {
		slices.Sort(stranded)
		return fmt.Errorf("the chain of replacements from its head %q never meets %s", head,
			strings.Join(stranded, ", "))
	}
	return nil
}

// stranded returns what is neither skipped nor met on the walk from the head.
func (c *Channel) stranded(head string) []string {
	skipped := c.skipped()
	entries := make(map[string]Entry, len(c.Entries))
	for _, e := range slices.Backward(c.Entries) { // the first one of a name counts
		entries[e.Name] = e
	}
	met := map[string]bool{}
	for at, ok := entries[head]; ok && !met[at.Name]; at, ok = entries[at.Replaces] {
		met[at.Name] = true
		if skipped[at.Replaces] {
			break
		}
	}
	var stranded []string
	for _, e := range c.Entries {
		if !met[e.Name] && !skipped[e.Name] {
			stranded = append(stranded, e.Name)
		}
	}
	return stranded
}

// cycle returns the first circle of replaces, with its first name repeated at the end; nil if there is none.
func (c *Channel) cycle() []string {
	replaces := make(map[string]string, len(c.Entries))
	for _, e := range c.Entries {
		replaces[e.Name] = e.Replaces
	}
	harmless := map[string]bool{}
	for _, e := range c.Entries {
		position := map[string]int{}
		var walk []string
		for at := e.Name; at != "" && !harmless[at]; at = replaces[at] {
			if start, ok := position[at]; ok {
				return append(walk[start:], at)
			}
			position[at] = len(walk)
			walk = append(walk, at)
		}
		for _, name := range walk {
			harmless[name] = true
		}
	}
	return nil
}
