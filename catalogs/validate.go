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

// The parts of a package are bounded because the computation of upgrade paths compares its entries with each other.
// The largest packages in public catalogs have some hundred bundles.
const (
	maxBundles = 10_000 // also the limit for blocks
	maxEntries = 50_000 // of all channels together
)

// Validate reports all violations of the rules of file-based catalogs: the default channel must exist, a channel must
// have one head and an acyclic chain of replacements that reaches all bundles, versions must be unique, and entries
// must refer to existing bundles. The error wraps ErrInvalidPackage.
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

// maxProblems bounds the problems that are reported for one package or channel.
const maxProblems = 100

var errMoreProblems = errors.New("and there is more")

// problems are the reasons why a package is invalid, up to maxProblems.
type problems []error

// add adds a problem. It returns false if maxProblems were already added.
func (p *problems) add(err error) bool {
	if len(*p) == maxProblems {
		err = errMoreProblems
	}
	if len(*p) <= maxProblems {
		*p = append(*p, err)
	}
	return len(*p) <= maxProblems
}

// checkSize returns an error if the package has too many bundles, blocks or entries.
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

// validateBundles returns the problems of the bundles: equal versions, and bundles in no channel.
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

// Offered returns the names of the bundles that are in a channel.
func (p *Package) Offered() map[string]bool {
	names := map[string]bool{}
	for _, c := range p.Channels {
		for _, e := range c.Entries {
			names[e.Name] = true
		}
	}
	return names
}

// validateChannel returns the problems of a channel: of its entries (duplicate names, missing bundles, invalid skips
// and ranges) and of its chain of replacements.
func (p *Package) validateChannel(c *Channel) []error {
	if len(c.Entries) == 0 {
		return []error{errors.New("it has no entry")}
	}
	var found problems
	isPresent := map[string]bool{}
	for _, e := range c.Entries {
		if isPresent[e.Name] {
			found.add(fmt.Errorf("entry %q is there twice", e.Name))
		}
		isPresent[e.Name] = true
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

// validateChain walks from the head along replaces. As in operator-registry, the walk ends at a skipped bundle, the
// last entry can replace a bundle that does not exist, and every entry that the walk does not reach must be skipped.
func (c *Channel) validateChain() error {
	// A cycle can also leave no head; the cycle is the better message.
	if cycle := c.findCycle(); cycle != nil {
		return fmt.Errorf("replaces runs in a circle: %s", strings.Join(cycle, " -> "))
	}
	head, err := c.Head()
	if err != nil {
		return err
	}
	unreachable := c.listUnreachable(head)
	if len(unreachable) > 0 {
		slices.Sort(unreachable)
		return fmt.Errorf("the chain of replacements from its head %q never meets %s", head,
			strings.Join(unreachable, ", "))
	}
	return nil
}

// listUnreachable returns the entries that are not skipped and that the walk from the head does not reach.
func (c *Channel) listUnreachable(head string) []string {
	skipped := c.listSkipped()
	entries := make(map[string]Entry, len(c.Entries))
	for _, e := range slices.Backward(c.Entries) { // the first entry with a name counts
		entries[e.Name] = e
	}
	reached := map[string]bool{}
	for entry, ok := entries[head]; ok && !reached[entry.Name]; entry, ok = entries[entry.Replaces] {
		reached[entry.Name] = true
		if skipped[entry.Replaces] {
			break
		}
	}
	var unreachable []string
	for _, e := range c.Entries {
		if !reached[e.Name] && !skipped[e.Name] {
			unreachable = append(unreachable, e.Name)
		}
	}
	return unreachable
}

// findCycle returns the first cycle of replaces, with its first name repeated at the end; nil if there is none.
func (c *Channel) findCycle() []string {
	replaces := make(map[string]string, len(c.Entries))
	for _, e := range c.Entries {
		replaces[e.Name] = e.Replaces
	}
	acyclic := map[string]bool{} // the names from which a walk ends
	for _, e := range c.Entries {
		position := map[string]int{}
		var walk []string
		for current := e.Name; current != "" && !acyclic[current]; current = replaces[current] {
			if start, ok := position[current]; ok {
				return append(walk[start:], current)
			}
			position[current] = len(walk)
			walk = append(walk, current)
		}
		for _, name := range walk {
			acyclic[name] = true
		}
	}
	return nil
}
