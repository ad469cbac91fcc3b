// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/ossf/osv-schema/bindings/go/osvschema"
)

// verdict is the result of a record for a version.
type verdict struct {
	affected bool
	// fixed is the lowest version above the target's version that fixes the vulnerability; empty if none is known.
	fixed string
}

var errOnlyCommits = errors.New("a record lists commits only")

// evaluate decides whether a version is affected, by the algorithm of https://ossf.github.io/osv-schema/#evaluation. It
// returns an error if nothing shows that the version is affected and a range cannot be evaluated, or if the record
// lists commits only.
func evaluate(a *osvschema.Affected, t Target) (verdict, error) {
	out := verdict{affected: slices.Contains(a.GetVersions(), t.Version)}
	compare, isOrdered := comparators[trimRelease(t.Ecosystem)]
	ranges, problem := 0, error(nil)
	for _, r := range a.GetRanges() {
		if r.GetType() == osvschema.Range_GIT {
			continue // commits cannot be compared with a version
		}
		ranges++
		if !isOrdered {
			problem = fmt.Errorf("versions of ecosystem %s cannot be ordered", trimRelease(t.Ecosystem))
			continue
		}
		result, err := evaluateRange(r.GetEvents(), t.Version, compare)
		if err != nil {
			problem = err
			continue
		}
		if result.affected {
			out.affected = true
		}
		if out.fixed == "" && result.fixed != "" {
			out.fixed = result.fixed
		}
	}
	switch {
	case out.affected:
		return out, nil
	case problem != nil:
		return verdict{}, problem
	case ranges == 0 && len(a.GetVersions()) == 0:
		return verdict{}, errOnlyCommits
	}
	return verdict{}, nil
}

// event is a limit of a range.
type event struct {
	version string
	// kind orders events of the same version: a fix ends a range before the version begins another range, and the last
	// affected version ends a range after the version began it.
	kind eventKind
}

type eventKind int

const (
	eventFixed eventKind = iota
	eventIntroduced
	eventLastAffected
)

// firstVersion is lower than all other versions.
const firstVersion = "0"

// evaluateRange decides whether a version is in a range, and finds the lowest higher version with a fix.
func evaluateRange(list []*osvschema.Event, version string, compare comparator) (verdict, error) {
	events, limits := splitEvents(list)
	var compareErr error
	compareVersions := func(a, b string) int {
		switch {
		case a == b:
			return 0
		case a == firstVersion:
			return -1
		case b == firstVersion:
			return 1
		}
		n, err := compare(a, b)
		compareErr = cmp.Or(compareErr, err)
		return n
	}
	slices.SortStableFunc(events, func(a, b event) int {
		if n := compareVersions(a.version, b.version); n != 0 {
			return n
		}
		return int(a.kind) - int(b.kind)
	})
	out := verdict{}
	// The events are sorted, so the last event at or below the version decides whether it is affected.
	for _, e := range events {
		n := compareVersions(version, e.version)
		switch {
		case e.kind == eventIntroduced && n >= 0:
			out.affected = true
		case e.kind == eventFixed && n >= 0, e.kind == eventLastAffected && n > 0:
			out.affected = false
		case e.kind == eventFixed && out.fixed == "": // the first fix above the version
			out.fixed = e.version
		}
	}
	// If there are limits, the version must be below one of them.
	isBelow := func(limit string) bool { return limit == "*" || compareVersions(version, limit) < 0 }
	if len(limits) > 0 && !slices.ContainsFunc(limits, isBelow) {
		out.affected = false
	}
	if compareErr != nil {
		return verdict{}, compareErr
	}
	return out, nil
}

// splitEvents separates limits from the other events.
func splitEvents(list []*osvschema.Event) (events []event, limits []string) {
	for _, e := range list {
		switch {
		case e.GetIntroduced() != "":
			events = append(events, event{e.GetIntroduced(), eventIntroduced})
		case e.GetFixed() != "":
			events = append(events, event{e.GetFixed(), eventFixed})
		case e.GetLastAffected() != "":
			events = append(events, event{e.GetLastAffected(), eventLastAffected})
		case e.GetLimit() != "":
			limits = append(limits, e.GetLimit())
		}
	}
	return events, limits
}
