// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// conclude returns the explanation for the links in chain. The state, the reason and the summary are from the link that
// comes first in the precedence, and the cause is the deepest link below this link. If no link has a state, the state
// is Unknown. healthy is the summary of a healthy subject.
func conclude(subject Subject, chain []Link, names remedy.Names, healthy string) Explanation {
	e := Explanation{APIVersion: APIVersion, Kind: Kind, Subject: subject, Chain: chain, State: Unknown,
		Summary: healthy}
	deciding := findDeciding(chain)
	if deciding == nil { // no link has a state
		e.Reason, e.Summary = remedy.NotReported, "Nothing is known about it."
		deciding = &Link{Reason: e.Reason, Text: e.Summary}
	} else {
		e.State = deciding.State
	}
	e.Stale = listStale(chain)
	walk(chain, func(l Link) {
		if l.State == Healthy && l.Check != "" {
			e.Checked = append(e.Checked, l.Check)
		}
	})
	if e.State == Healthy {
		return e
	}
	root := findDeepest(*deciding)
	e.Reason, e.Since, e.Summary = cmp.Or(deciding.Reason, remedy.UnknownReason), deciding.Since, deciding.Text
	if e.State == Waiting {
		e.Summary += describeSymptoms(chain)
	}
	e.Cause = &Cause{Reason: cmp.Or(root.Reason, e.Reason), Text: root.Text, Evidence: root.Evidence}
	e.advise(*deciding, root, names)
	return e
}

// advise adds remedies and what happens next: first for the cause (root), then for the link that decided, then the
// timed events of all links. It also sets Means.
func (e *Explanation) advise(deciding, root Link, names remedy.Names) {
	e.addAll(root.remedies, root.next)
	e.addAll(deciding.remedies, deciding.next)
	e.addAdvice(e.Cause.Reason, root.by, names)
	e.addAdvice(e.Reason, deciding.by, names)
	e.Means = findRemedy(e.Reason).Means
	walk(e.Chain, func(l Link) { e.addAll(nil, filterTimed(l.next)) })
}

// addAdvice adds the entries in the table of remedies for a reason that this observer found.
func (e *Explanation) addAdvice(reason string, by remedy.Observer, names remedy.Names) {
	r := findRemedy(reason)
	e.addAll(r.For(by, names), nil)
	if next := r.NextFor(names); next != "" {
		e.addNext(Next{Text: next})
	}
}

// filterTimed returns the events whose time is known, such as a deadline.
func filterTimed(next []Next) []Next {
	return slices.DeleteFunc(slices.Clone(next), func(n Next) bool { return n.At == nil })
}

// findRemedy returns the remedy for a reason, or the remedy for an unknown reason.
func findRemedy(reason string) remedy.Remedy {
	r, known := remedy.For(reason)
	if !known {
		r, _ = remedy.For(remedy.UnknownReason)
	}
	return r
}

// addAll adds remedies and events that are not in the explanation yet.
func (e *Explanation) addAll(remedies []remedy.Action, next []Next) {
	for _, a := range remedies {
		e.addRemedy(a)
	}
	for _, n := range next {
		e.addNext(n)
	}
}

// addRemedy adds a remedy if it is not in the explanation yet.
func (e *Explanation) addRemedy(a remedy.Action) {
	if !slices.ContainsFunc(e.Remedies, func(b remedy.Action) bool {
		return a.Text == b.Text || a.Command != "" && a.Command == b.Command
	}) {
		e.Remedies = append(e.Remedies, a)
	}
}

// addNext adds an event if it is not in the explanation yet.
func (e *Explanation) addNext(n Next) {
	if !slices.ContainsFunc(e.Next, func(b Next) bool { return n.Text == b.Text }) {
		e.Next = append(e.Next, n)
	}
}

// walk calls f for every link, parents before children.
func walk(links []Link, f func(Link)) {
	for _, l := range links {
		f(l)
		walk(l.Links, f)
	}
}

// describeSymptoms lists the symptoms, which a Waiting state would hide.
func describeSymptoms(chain []Link) string {
	var text string
	walk(chain, func(l Link) {
		if l.about == aboutSymptom {
			text += "; " + l.Text
		}
	})
	return text
}

// findDeciding returns the first link in the precedence. It returns nil if no link has a state.
func findDeciding(links []Link) *Link {
	var found *Link
	walk(links, func(l Link) {
		if severity[l.State] > 0 && (found == nil || computeRank(l) < computeRank(*found)) {
			found = &l
		}
	})
	return found
}

// findDeepest returns the deepest link below this link, including this link, whose state is at least as bad. If there
// are several, it returns the first.
func findDeepest(l Link) Link {
	found, depth := l, 0
	var visit func(links []Link, level int)
	visit = func(links []Link, at int) {
		for _, child := range links {
			if severity[child.State] >= severity[l.State] && at > depth {
				found, depth = child, at
			}
			visit(child.Links, at+1)
		}
	}
	visit(l.Links, 1)
	return found
}

// listStale returns the stale parts of all links.
func listStale(links []Link) []Stale {
	var out []Stale
	walk(links, func(l Link) { out = append(out, l.stale...) })
	return out
}

// trimPeriod returns a message without its period, so that the sentence can be continued.
func trimPeriod(text string) string { return strings.TrimSuffix(phrase.OneLine(text), ".") }

// endSentence adds a period to a text that has none.
func endSentence(text string) string {
	if text = phrase.OneLine(text); text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}
