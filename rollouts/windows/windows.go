// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package windows says whether ChangeWindows let a cluster be admitted, and when
// that changes. It is pure: the time comes in as an argument. Names of time zones
// are looked up in the time zone database of the machine or of the binary.
package windows

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// Set is a list of ChangeWindows, read once for one point in time. It is not safe
// for concurrent use.
type Set struct {
	now     time.Time
	windows []window
	zones   map[string]*time.Location
	// states of the combinations of windows and time zones that were asked for.
	states map[string]State
}

// Target is one operator on one cluster.
type Target struct {
	// Namespace and OperatorLabels are those of the ManagedOperator.
	Namespace      string
	OperatorLabels map[string]string
	ClusterLabels  map[string]string
	// TimeZone is that of the cluster; empty means UTC.
	TimeZone string
	// Required are names of windows that count whatever they select, each with the
	// RolloutPolicy that asks for it. One that is not there closes the target.
	Required map[string]string
}

// State is whether a target may be admitted.
type State struct {
	Open bool
	// Message says what keeps the target closed.
	Message string
	// Until is when the target is open again or, where it is open, when a window
	// may close it. It is zero where that is not known, or never.
	Until time.Time
}

// window is a ChangeWindow, read.
type window struct {
	name                string
	spec                v1alpha1.ChangeWindowSpec
	operators, clusters labels.Selector
	// starts are times by the wall clock, and more says that others follow.
	starts []time.Time
	more   bool
	// failure is why the window cannot be evaluated.
	failure error
}

// Read reads ChangeWindows. A window that cannot be read closes what it selects.
func Read(list []v1alpha1.ChangeWindow, now time.Time) *Set {
	s := &Set{now: now, zones: map[string]*time.Location{}, states: map[string]State{}}
	for i := range list {
		if list[i].DeletionTimestamp == nil {
			s.windows = append(s.windows, read(&list[i], now))
		}
	}
	slices.SortFunc(s.windows, func(a, b window) int {
		if a.spec.Type != b.spec.Type { // what denies is named first
			if a.spec.Type == v1alpha1.WindowDeny {
				return -1
			}
			return 1
		}
		if a.name < b.name {
			return -1
		}
		return 1
	})
	return s
}

func read(o *v1alpha1.ChangeWindow, now time.Time) window {
	w := window{name: o.Name, spec: o.Spec}
	w.operators, w.failure = selector(o.Spec.OperatorSelector)
	clusters, err := selector(o.Spec.ClusterSelector)
	if w.clusters = clusters; w.failure == nil {
		w.failure = err
	}
	start, err := time.Parse(localTime, o.Spec.Start)
	if err != nil {
		w.failure = fmt.Errorf("start: %w", err)
		return w
	}
	w.starts, w.more, err = occurrences(start, o.Spec.Recurrence, o.Spec.Duration.Duration, now)
	if err != nil && w.failure == nil {
		w.failure = fmt.Errorf("recurrence: %w", err)
	}
	return w
}

// selector selects everything where it is nil or cannot be read.
func selector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Everything(), fmt.Errorf("selector: %w", err)
	}
	return parsed, nil
}

func (w *window) selects(t Target) bool {
	if t.Required[w.name] != "" {
		return true
	}
	return (len(w.spec.Namespaces) == 0 || slices.Contains(w.spec.Namespaces, t.Namespace)) &&
		w.operators.Matches(labels.Set(t.OperatorLabels)) && w.clusters.Matches(labels.Set(t.ClusterLabels))
}

// maxSteps bounds the search for the time at which a closed target opens.
const maxSteps = 32

// State returns whether the target may be admitted now.
func (s *Set) State(t Target) State {
	chosen, failed := s.choose(t)
	if failed != nil {
		return *failed
	}
	key := ""
	for _, c := range chosen {
		key += c.window.name + " " + c.zone.String() + " "
	}
	state, known := s.states[key]
	if !known {
		state = stateOf(chosen, s.now)
		s.states[key] = state
	}
	return state
}

func stateOf(chosen []timed, now time.Time) State {
	state, change := judge(chosen, now)
	if state.Open {
		state.Until = change
		return state
	}
	at := change
	for range maxSteps {
		if at.IsZero() {
			break
		}
		later, next := judge(chosen, at)
		if later.Open {
			state.Until = at
			state.Message += "; open from " + phrase.Time(at)
			break
		}
		at = next
	}
	return state
}

// choose returns the windows that select the target, with their times in the time
// zone that counts; or the state of a target with a window that cannot be
// evaluated.
func (s *Set) choose(t Target) ([]timed, *State) {
	if missing := s.missing(t); missing != nil {
		return nil, missing
	}
	var chosen []timed
	for i := range s.windows {
		w := &s.windows[i]
		if !w.selects(t) {
			continue
		}
		zone, err := s.zone(w.spec.TimeZone, t)
		if err == nil {
			err = w.failure
		}
		if err != nil {
			return nil, &State{Message: fmt.Sprintf("ChangeWindow %s cannot be evaluated: %v; correct or delete it",
				w.name, err)}
		}
		chosen = append(chosen, timed{window: w, zone: zone})
	}
	return chosen, nil
}

// missing is the state of a target of which a required window is not there.
func (s *Set) missing(t Target) *State {
	for _, name := range slices.Sorted(maps.Keys(t.Required)) {
		if !slices.ContainsFunc(s.windows, func(w window) bool { return w.name == name }) {
			return &State{Message: fmt.Sprintf("RolloutPolicy %s asks for ChangeWindow %s, which does not exist: "+
				"create it, or change the policy", t.Required[name], name)}
		}
	}
	return nil
}

// zone is the time zone in which a window is evaluated for a target.
func (s *Set) zone(name string, t Target) (*time.Location, error) {
	what := "timeZone"
	if name == v1alpha1.TimeZoneOfCluster {
		name, what = t.TimeZone, "annotation "+v1alpha1.AnnotationTimeZone+" of the FleetCluster"
	}
	if name == "" {
		return time.UTC, nil
	}
	if zone := s.zones[name]; zone != nil {
		return zone, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || zone == time.Local {
		return nil, fmt.Errorf("%s: no time zone %q in the IANA time zone database", what, name)
	}
	s.zones[name] = zone
	return zone, nil
}

// judge returns the state at a time, and when it may be another one: zero if never.
func judge(chosen []timed, at time.Time) (State, time.Time) {
	var nextDeny, allowEnd, nextAllow time.Time
	var closed *window // the first window of type Allow
	allowed := false
	for _, c := range chosen {
		end, next, endless := c.around(at)
		switch {
		case c.window.spec.Type == v1alpha1.WindowDeny && endless:
			return State{Message: fmt.Sprintf("ChangeWindow %s denies changes%s", c.window.name,
				because(c.window))}, time.Time{}
		case c.window.spec.Type == v1alpha1.WindowDeny && !end.IsZero():
			return State{Message: fmt.Sprintf("ChangeWindow %s denies changes until %s%s", c.window.name,
				phrase.Time(end), because(c.window))}, end
		case c.window.spec.Type == v1alpha1.WindowDeny:
			nextDeny = earliest(nextDeny, next)
		case !end.IsZero():
			allowed = true
			if end.After(allowEnd) {
				allowEnd = end
			}
		default:
			if closed == nil {
				closed = c.window
			}
			nextAllow = earliest(nextAllow, next)
		}
	}
	if closed != nil && !allowed {
		return State{Message: fmt.Sprintf("outside of ChangeWindow %s%s", closed.name, because(closed))}, nextAllow
	}
	return State{Open: true}, earliest(nextDeny, allowEnd)
}

func because(w *window) string {
	if w.spec.Reason == "" {
		return ""
	}
	return " (" + w.spec.Reason + ")"
}

// earliest returns the earlier of two times, of which zero is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// timed is a window in a time zone.
type timed struct {
	window *window
	zone   *time.Location
}

// around returns when the window that is in force at a time ends, zero if it is
// not in force; and when it is in force next, zero if that is not known. A window
// that is endless is in force beyond the times that are known.
func (t timed) around(at time.Time) (end, next time.Time, endless bool) {
	duration := t.window.spec.Duration.Duration
	for _, wall := range t.window.starts {
		start := instant(wall, t.zone)
		stop := start.Add(duration)
		switch {
		case !stop.After(at):
		case !start.After(at), !end.IsZero() && !start.After(end):
			if stop.After(end) {
				end = stop
			}
		default:
			return end, start, false
		}
	}
	return end, time.Time{}, t.window.more && !end.IsZero()
}
