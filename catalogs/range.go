// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/bundles"
)

// ErrNotRange means that a text is not a range of versions. Errors that wrap it say how to write a range.
var ErrNotRange = errors.New("not a range of versions")

// IsExact reports whether a text is one version and not a range of versions.
func IsExact(text string) bool {
	_, err := semver.ParseTolerant(text)
	return err == nil
}

// Range is a set of versions. The zero value is empty.
type Range struct {
	alternatives []alternative
}

// alternative is a part of a range; "||" separates alternatives.
type alternative struct {
	contains semver.Range
	// bounds are the versions that the alternative names.
	bounds []semver.Version
}

// ParseRange reads a range in the notation of blang/semver, which OLM uses for skipRange and for dependencies:
// comparisons with whole versions (>=1.2.0 <2.0.0) that must all be true, and alternatives, separated by "||". 1.2.x
// and 1.x mean all versions with that prefix.
//
// It does not use blang/semver's ParseRange, which ignores parts of one character, such as the hyphen in 1.0.0 -
// 2.0.0, and treats the x of a pre-release as a wildcard. It refuses texts that blang/semver would misread: a
// wildcard with an operator, or in two places. The error wraps ErrNotRange.
func ParseRange(text string) (Range, error) {
	var r Range
	for part := range strings.SplitSeq(text, "||") {
		a, err := parseAlternative(part)
		if err != nil {
			return Range{}, fmt.Errorf("%w: %q: %w: write it as >=1.2.0 <2.0.0, as 1.2.x, or as "+
				">=1.2.0 <1.4.0 || >=1.5.1 <2.0.0", ErrNotRange, text, err)
		}
		r.alternatives = append(r.alternatives, a)
	}
	return r, nil
}

// parseAlternative parses comparisons that must all be true.
func parseAlternative(text string) (alternative, error) {
	comparisons := splitComparisons(text)
	if len(comparisons) == 0 {
		return alternative{}, errors.New("a comparison is missing")
	}
	a := alternative{contains: func(semver.Version) bool { return true }}
	for _, c := range comparisons {
		contains, bounds, err := parseComparison(c)
		if err != nil {
			return alternative{}, err
		}
		a.contains, a.bounds = a.contains.AND(contains), append(a.bounds, bounds...)
	}
	return a, nil
}

// splitComparisons splits a text at white space and joins each operator to the version that follows it.
func splitComparisons(text string) []string {
	var out []string
	operator := ""
	for _, field := range strings.Fields(text) {
		if operator += field; strings.Trim(field, "<>=!") != "" {
			out, operator = append(out, operator), ""
		}
	}
	if operator != "" {
		out = append(out, operator)
	}
	return out
}

// operators are the comparisons with a version by their notation. An empty operator means "=".
var operators = map[string]func(v, with semver.Version) bool{
	"": semver.Version.EQ, "=": semver.Version.EQ, "==": semver.Version.EQ,
	"!": semver.Version.NE, "!=": semver.Version.NE,
	"<": semver.Version.LT, "<=": semver.Version.LE, ">": semver.Version.GT, ">=": semver.Version.GE,
}

// parseComparison returns the versions that a comparison matches, and the versions that it names. A wildcard names
// its bounds.
func parseComparison(text string) (semver.Range, []semver.Version, error) {
	number := strings.TrimLeft(text, "<>=!")
	operator := strings.TrimSuffix(text, number)
	compare, isOperator := operators[operator]
	v, err := semver.Parse(number)
	switch {
	case number == "":
		return nil, nil, fmt.Errorf("no version after %q", operator)
	case !isOperator:
		return nil, nil, fmt.Errorf("%q is no comparison", operator)
	case err == nil:
		return func(other semver.Version) bool { return compare(other, v) }, []semver.Version{v}, nil
	case !strings.HasSuffix(number, ".x"):
		return nil, nil, fmt.Errorf("%q is neither a whole version such as 1.2.0 nor a wildcard such as 1.2.x", number)
	case operator != "":
		return nil, nil, fmt.Errorf("a wildcard stands without an operator, and %q has %q", text, operator)
	}
	return parseWildcard(number)
}

// parseWildcard parses a wildcard such as 1.2.x, and returns its versions and bounds.
func parseWildcard(text string) (semver.Range, []semver.Version, error) {
	prefix := strings.TrimSuffix(text, ".x")
	low, err := semver.ParseTolerant(prefix)
	dots := strings.Count(prefix, ".")
	if err != nil || dots > 1 || len(low.Pre)+len(low.Build) > 0 {
		return nil, nil, fmt.Errorf("%q is no wildcard such as 1.2.x or 1.x", text)
	}
	high := semver.Version{Major: low.Major + 1}
	if dots == 1 {
		high = semver.Version{Major: low.Major, Minor: low.Minor + 1}
	}
	return func(v semver.Version) bool { return v.GE(low) && v.LT(high) }, []semver.Version{low, high}, nil
}

// Contains reports whether a version is in the range. A pre-release is in the range only if an alternative that
// contains it names a pre-release with the same three numbers. This is also the rule of npm and Cargo: >=1.2.0 <2.0.0
// contains neither 1.3.0-rc.1 nor 2.0.0-alpha, and >=1.3.0-rc.1 <2.0.0 contains 1.3.0-rc.2 and no pre-release of
// other numbers. Build metadata does not matter.
func (r Range) Contains(v semver.Version) bool {
	return slices.ContainsFunc(r.alternatives, func(a alternative) bool {
		return a.contains(v) && a.admitsPrerelease(v)
	})
}

// ExcludesPrerelease reports whether a version is not in the range only because it is a pre-release.
func (r Range) ExcludesPrerelease(v semver.Version) bool {
	return !r.Contains(v) && slices.ContainsFunc(r.alternatives, func(a alternative) bool { return a.contains(v) })
}

// admitsPrerelease reports whether v is not a pre-release, or a pre-release of the same numbers as a bound.
func (a alternative) admitsPrerelease(v semver.Version) bool {
	return len(v.Pre) == 0 || slices.ContainsFunc(a.bounds, func(b semver.Version) bool {
		return len(b.Pre) > 0 && b.Major == v.Major && b.Minor == v.Minor && b.Patch == v.Patch
	})
}

// Nearest returns the versions that are nearest to the range's bounds: for each bound, the highest version below it
// and the lowest version that is not below it. They are sorted, the highest first.
func (r Range) Nearest(versions []semver.Version) []semver.Version {
	sorted := slices.SortedFunc(slices.Values(versions), func(a, b semver.Version) int {
		return bundles.CompareVersions(b, a)
	})
	sorted = slices.CompactFunc(sorted, semver.Version.EQ)
	isNear := map[int]bool{}
	for _, a := range r.alternatives {
		for _, bound := range a.bounds {
			below := slices.IndexFunc(sorted, bound.GT)
			if below < 0 {
				below = len(sorted)
			}
			// If no version is on one side of the bound, its index is outside the list and has no effect.
			isNear[below], isNear[below-1] = true, true
		}
	}
	var out []semver.Version
	for i, v := range sorted {
		if isNear[i] {
			out = append(out, v)
		}
	}
	return out
}

// OfferedBundles returns the bundles of a channel (empty: the default channel) that are not blocked, the highest
// version first. The error wraps ErrNoChannel.
func (p *Package) OfferedBundles(channel string) ([]*Bundle, error) {
	c, err := p.Channel(channel)
	if err != nil {
		return nil, err
	}
	var out []*Bundle
	for _, e := range c.Entries {
		if b, ok := p.Bundles[e.Name]; ok {
			if _, blocked := p.Blocks[e.Name]; !blocked {
				out = append(out, b)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b *Bundle) int { return p.compareBundles(b.Name, a.Name) })
	return out, nil
}
