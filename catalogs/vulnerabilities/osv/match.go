// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package osv

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/ossf/osv-schema/bindings/go/osvschema"
)

// verdict is what a record says of a version.
type verdict struct {
	affected bool
	// fixed is the lowest version above the target's in which it is corrected; empty where none is known.
	fixed string
}

var errOnlyCommits = errors.New("a record lists commits only")

// evaluate decides whether a version is affected, by the algorithm of
// https://ossf.github.io/osv-schema/#evaluation. An error says that it cannot be decided.
func evaluate(a *osvschema.Affected, t Target) (verdict, error) {
	out := verdict{affected: slices.Contains(a.GetVersions(), t.Version)}
	compare, known := comparators[base(t.Ecosystem)]
	ranges, problem := 0, error(nil)
	for _, r := range a.GetRanges() {
		if r.GetType() == osvschema.Range_GIT {
			continue
		}
		ranges++
		if !known {
			problem = fmt.Errorf("versions of ecosystem %s cannot be ordered", base(t.Ecosystem))
			continue
		}
		found, err := within(r.GetEvents(), t.Version, compare)
		if err != nil {
			problem = err
			continue
		}
		if found.affected {
			out.affected = true
		}
		if out.fixed == "" && found.fixed != "" {
			out.fixed = found.fixed
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

// event is one limit of a range.
type event struct {
	version string
	// kind orders events of one version: what ends comes before what begins.
	kind eventKind
}

type eventKind int

const (
	fixed eventKind = iota
	introduced
	lastAffected
)

// fromTheStart is the version before all others.
const fromTheStart = "0"

func within(list []*osvschema.Event, version string, compare comparator) (verdict, error) {
	events, limits := split(list)
	var failed error
	order := func(a, b string) int {
		switch {
		case a == b:
			return 0
		case a == fromTheStart:
			return -1
		case b == fromTheStart:
			return 1
		}
		n, err := compare(a, b)
		failed = cmp.Or(failed, err)
		return n
	}
	slices.SortStableFunc(events, func(a, b event) int {
		if n := order(a.version, b.version); n != 0 {
			return n
		}
		return int(a.kind) - int(b.kind)
	})
	out := verdict{}
	for _, e := range events {
		n := order(version, e.version)
		switch {
		case e.kind == introduced && n >= 0:
			out.affected = true
		case e.kind == fixed && n >= 0, e.kind == lastAffected && n > 0:
			out.affected = false
		case e.kind == fixed && out.fixed == "":
			out.fixed = e.version
		}
	}
	below := func(limit string) bool { return limit == "*" || order(version, limit) < 0 }
	if len(limits) > 0 && !slices.ContainsFunc(limits, below) {
		out.affected = false
	}
	if failed != nil {
		return verdict{}, failed
	}
	return out, nil
}

func split(list []*osvschema.Event) (events []event, limits []string) {
	for _, e := range list {
		switch {
		case e.GetIntroduced() != "":
			events = append(events, event{e.GetIntroduced(), introduced})
		case e.GetFixed() != "":
			events = append(events, event{e.GetFixed(), fixed})
		case e.GetLastAffected() != "":
			events = append(events, event{e.GetLastAffected(), lastAffected})
		case e.GetLimit() != "":
			limits = append(limits, e.GetLimit())
		}
	}
	return events, limits
}
