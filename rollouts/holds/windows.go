// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// WindowSet has ChangeWindows that were parsed for one point in time. It decides whether they let a cluster be
// admitted, and when that changes. Time zones are read from the time zone database of the machine or of the binary. A
// WindowSet is not safe for concurrent use.
type WindowSet struct {
	now     time.Time
	windows []window
	zones   map[string]*time.Location
	// states caches the results by combination of windows and time zones.
	states map[string]WindowState
}

// WindowTarget is one operator on one cluster.
type WindowTarget struct {
	// Namespace and OperatorLabels belong to the ManagedOperator.
	Namespace      string
	OperatorLabels map[string]string
	ClusterLabels  map[string]string
	// TimeZone is the cluster's time zone; empty means UTC.
	TimeZone string
	// Required are names of windows that apply even if they do not select the target, each with the RolloutPolicy that
	// requires the window. A required window that does not exist closes the target.
	Required map[string]string
}

// WindowState is whether a target may be admitted.
type WindowState struct {
	Open bool
	// Message says why the target is closed.
	Message string
	// Until is when a closed target opens, or when a window might close an open target. It is zero if that is not
	// known or never happens.
	Until time.Time
}

// window is a parsed ChangeWindow.
type window struct {
	name                string
	spec                v1alpha1.ChangeWindowSpec
	operators, clusters labels.Selector
	// starts are the wall-clock times at which the window begins. hasMore is true if more times follow.
	starts  []time.Time
	hasMore bool
	// failure is why the window cannot be evaluated.
	failure error
}

// ReadWindows parses ChangeWindows. A window that cannot be parsed closes the targets that it selects.
func ReadWindows(list []v1alpha1.ChangeWindow, now time.Time) *WindowSet {
	s := &WindowSet{now: now, zones: map[string]*time.Location{}, states: map[string]WindowState{}}
	for i := range list {
		if list[i].DeletionTimestamp == nil {
			s.windows = append(s.windows, readWindow(&list[i], now))
		}
	}
	slices.SortFunc(s.windows, func(a, b window) int {
		if a.spec.Type != b.spec.Type { // windows that deny come first
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

// readWindow parses a ChangeWindow. An error is in the field failure of the result.
func readWindow(o *v1alpha1.ChangeWindow, now time.Time) window {
	w := window{name: o.Name, spec: o.Spec}
	w.operators, w.failure = parseSelector(o.Spec.OperatorSelector)
	clusters, err := parseSelector(o.Spec.ClusterSelector)
	if w.clusters = clusters; w.failure == nil {
		w.failure = err
	}
	start, err := time.Parse(localTime, o.Spec.Start)
	if err != nil {
		w.failure = fmt.Errorf("start: %w", err)
		return w
	}
	w.starts, w.hasMore, err = listOccurrences(start, o.Spec.Recurrence, o.Spec.Duration.Duration, now)
	if err != nil && w.failure == nil {
		w.failure = fmt.Errorf("recurrence: %w", err)
	}
	return w
}

// parseSelector parses a selector. If s is nil or cannot be parsed, the result selects everything.
func parseSelector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Everything(), fmt.Errorf("selector: %w", err)
	}
	return parsed, nil
}

// matches reports whether the window applies to the target.
func (w *window) matches(t WindowTarget) bool {
	if t.Required[w.name] != "" {
		return true
	}
	return (len(w.spec.Namespaces) == 0 || slices.Contains(w.spec.Namespaces, t.Namespace)) &&
		w.operators.Matches(labels.Set(t.OperatorLabels)) && w.clusters.Matches(labels.Set(t.ClusterLabels))
}

// maxWindowSteps limits the search for the time at which a closed target opens.
const maxWindowSteps = 32

// State returns whether the target may be admitted now. Targets with the same windows and time zones have the same
// state, which is computed once.
func (s *WindowSet) State(t WindowTarget) WindowState {
	chosen, closed := s.selectWindows(t)
	if closed != nil {
		return *closed
	}
	key := ""
	for _, c := range chosen {
		key += c.window.name + " " + c.zone.String() + " "
	}
	state, known := s.states[key]
	if !known {
		state = computeWindowState(chosen, s.now)
		s.states[key] = state
	}
	return state
}

// computeWindowState returns the state now. Until is when a window might close an open target, or when a closed
// target opens.
func computeWindowState(chosen []zonedWindow, now time.Time) WindowState {
	state, changesAt := judgeWindows(chosen, now)
	if state.Open {
		state.Until = changesAt
		return state
	}
	at := changesAt
	for range maxWindowSteps {
		if at.IsZero() {
			break
		}
		laterState, next := judgeWindows(chosen, at)
		if laterState.Open {
			state.Until = at
			state.Message += "; open from " + phrase.Time(at)
			break
		}
		at = next
	}
	return state
}

// selectWindows returns the windows that apply to the target, with their time zones. If one of them cannot be
// evaluated, it returns a closed state instead.
func (s *WindowSet) selectWindows(t WindowTarget) ([]zonedWindow, *WindowState) {
	if missing := s.findMissingWindow(t); missing != nil {
		return nil, missing
	}
	var chosen []zonedWindow
	for i := range s.windows {
		w := &s.windows[i]
		if !w.matches(t) {
			continue
		}
		zone, err := s.loadZone(w.spec.TimeZone, t)
		if err == nil {
			err = w.failure
		}
		if err != nil {
			return nil, &WindowState{Message: fmt.Sprintf("ChangeWindow %s cannot be evaluated: %v; "+
				"correct or delete it", w.name, err)}
		}
		chosen = append(chosen, zonedWindow{window: w, zone: zone})
	}
	return chosen, nil
}

// findMissingWindow returns a closed state if a required window does not exist. Otherwise it returns nil.
func (s *WindowSet) findMissingWindow(t WindowTarget) *WindowState {
	for _, name := range slices.Sorted(maps.Keys(t.Required)) {
		if !slices.ContainsFunc(s.windows, func(w window) bool { return w.name == name }) {
			return &WindowState{Message: fmt.Sprintf("RolloutPolicy %s asks for ChangeWindow %s, which does not "+
				"exist: create it, or change the policy", t.Required[name], name)}
		}
	}
	return nil
}

// loadZone returns the time zone in which a window with this time zone is evaluated for a target: UTC for an
// empty name.
func (s *WindowSet) loadZone(name string, t WindowTarget) (*time.Location, error) {
	source := "timeZone"
	if name == v1alpha1.TimeZoneOfCluster {
		name, source = t.TimeZone, "annotation "+v1alpha1.AnnotationTimeZone+" of the FleetCluster"
	}
	if name == "" {
		return time.UTC, nil
	}
	if zone := s.zones[name]; zone != nil {
		return zone, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || zone == time.Local {
		return nil, fmt.Errorf("%s: no time zone %q in the IANA time zone database", source, name)
	}
	s.zones[name] = zone
	return zone, nil
}

// judge returns the state at a time, and when the state might change; zero if that is not known or never happens. A
// window of type Deny that is in force closes the target. If there are windows of type Allow, one of them must be
// in force.
func judgeWindows(chosen []zonedWindow, at time.Time) (WindowState, time.Time) {
	var nextDeny, allowEnd, nextAllow time.Time
	var firstClosed *window // the first window of type Allow that is not in force
	isAllowed := false
	for _, c := range chosen {
		end, next, endless := c.findTimes(at)
		switch {
		case c.window.spec.Type == v1alpha1.WindowDeny && endless:
			return WindowState{Message: fmt.Sprintf("ChangeWindow %s denies changes%s", c.window.name,
				formatWindowReason(c.window))}, time.Time{}
		case c.window.spec.Type == v1alpha1.WindowDeny && !end.IsZero():
			return WindowState{Message: fmt.Sprintf("ChangeWindow %s denies changes until %s%s", c.window.name,
				phrase.Time(end), formatWindowReason(c.window))}, end
		case c.window.spec.Type == v1alpha1.WindowDeny:
			nextDeny = minTime(nextDeny, next)
		case !end.IsZero():
			isAllowed = true
			if end.After(allowEnd) {
				allowEnd = end
			}
		default:
			if firstClosed == nil {
				firstClosed = c.window
			}
			nextAllow = minTime(nextAllow, next)
		}
	}
	if firstClosed != nil && !isAllowed {
		return WindowState{Message: fmt.Sprintf("outside of ChangeWindow %s%s", firstClosed.name,
			formatWindowReason(firstClosed))}, nextAllow
	}
	return WindowState{Open: true}, minTime(nextDeny, allowEnd)
}

// formatWindowReason returns " (REASON)", or "" if the window has no reason.
func formatWindowReason(w *window) string {
	if w.spec.Reason == "" {
		return ""
	}
	return " (" + w.spec.Reason + ")"
}

// minTime returns the earlier of two times. A zero time is ignored.
func minTime(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// zonedWindow is a window in a time zone.
type zonedWindow struct {
	window *window
	zone   *time.Location
}

// findTimes returns when the window ends, zero if it is not in force at the given time; and when it begins next, zero
// if that is not known. endless is true if the window is in force until after the last known start.
func (t zonedWindow) findTimes(at time.Time) (end, next time.Time, endless bool) {
	duration := t.window.spec.Duration.Duration
	for _, wall := range t.window.starts {
		start := toInstant(wall, t.zone)
		occurrenceEnd := start.Add(duration)
		switch {
		case !occurrenceEnd.After(at): // this occurrence has ended
		case !start.After(at), !end.IsZero() && !start.After(end): // in force now, or begins before the end
			if occurrenceEnd.After(end) {
				end = occurrenceEnd
			}
		default:
			return end, start, false
		}
	}
	return end, time.Time{}, t.window.hasMore && !end.IsZero()
}
