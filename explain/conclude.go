// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/phrase"
)

// conclude makes the explanation from what was checked: the state is that of
// the link that is to be told first (precedence), the first one if there are several. healthy is the summary for
// a subject that is healthy.
func conclude(subject Subject, chain []Link, names remedy.Names, healthy string) Explanation {
	e := Explanation{APIVersion: APIVersion, Kind: Kind, Subject: subject, Chain: chain, State: Unknown,
		Summary: healthy}
	deciding := worst(chain)
	if deciding == nil { // nothing was checked
		e.Reason, e.Summary = remedy.NotReported, "Nothing is known about it."
		deciding = &Link{Reason: e.Reason, Text: e.Summary}
	} else {
		e.State = deciding.State
	}
	e.Stale = staleParts(chain)
	walk(chain, func(l Link) {
		if l.State == Healthy && l.Check != "" {
			e.Checked = append(e.Checked, l.Check)
		}
	})
	if e.State == Healthy {
		return e
	}
	root := deepest(*deciding)
	e.Reason, e.Since, e.Summary = cmp.Or(deciding.Reason, remedy.UnknownReason), deciding.Since, deciding.Text
	if e.State == Waiting {
		e.Summary += symptoms(chain)
	}
	e.Cause = &Cause{Reason: cmp.Or(root.Reason, e.Reason), Text: root.Text, Evidence: root.Evidence}
	e.advise(*deciding, root, names)
	return e
}

// advise collects remedies and what happens next: of the cause first, then of
// the link that decided.
func (e *Explanation) advise(deciding, root Link, names remedy.Names) {
	e.add(root.remedies, root.next)
	e.add(deciding.remedies, deciding.next)
	e.adviseFor(e.Cause.Reason, root.by, names)
	e.adviseFor(e.Reason, deciding.by, names)
	e.Means = remedyFor(e.Reason).Means
	walk(e.Chain, func(l Link) { e.add(nil, timed(l.next)) })
}

// adviseFor adds what the table of remedies says about a reason that this observer
// found.
func (e *Explanation) adviseFor(reason string, by remedy.Observer, names remedy.Names) {
	r := remedyFor(reason)
	e.add(r.For(by, names), nil)
	if next := r.NextFor(names); next != "" {
		e.addNext(Next{Text: next})
	}
}

// timed returns what happens at a time that is known, such as a deadline.
func timed(next []Next) []Next {
	return slices.DeleteFunc(slices.Clone(next), func(n Next) bool { return n.At == nil })
}

func remedyFor(reason string) remedy.Remedy {
	r, known := remedy.For(reason)
	if !known {
		r, _ = remedy.For(remedy.UnknownReason)
	}
	return r
}

func (e *Explanation) add(remedies []remedy.Action, next []Next) {
	for _, a := range remedies {
		e.addRemedy(a)
	}
	for _, n := range next {
		e.addNext(n)
	}
}

func (e *Explanation) addRemedy(a remedy.Action) {
	if !slices.ContainsFunc(e.Remedies, func(b remedy.Action) bool {
		return a.Text == b.Text || a.Command != "" && a.Command == b.Command
	}) {
		e.Remedies = append(e.Remedies, a)
	}
}

func (e *Explanation) addNext(n Next) {
	if !slices.ContainsFunc(e.Next, func(b Next) bool { return n.Text == b.Text }) {
		e.Next = append(e.Next, n)
	}
}

// walk calls f for every link, those above before those below.
func walk(links []Link, f func(Link)) {
	for _, l := range links {
		f(l)
		walk(l.Links, f)
	}
}

// symptoms are what is to be told too where only something that waits is told first.
func symptoms(chain []Link) string {
	var text string
	walk(chain, func(l Link) {
		if l.about == aboutSymptom {
			text += "; " + l.Text
		}
	})
	return text
}

// worst is the first of the links that are to be told first; nil if no link has a state.
func worst(links []Link) *Link {
	var found *Link
	walk(links, func(l Link) {
		if severity[l.State] > 0 && (found == nil || rank(l) < rank(*found)) {
			found = &l
		}
	})
	return found
}

// deepest is the link furthest below this one, itself included, that is at
// least as bad; the first one if there are several.
func deepest(l Link) Link {
	found, depth := l, 0
	var look func(links []Link, at int)
	look = func(links []Link, at int) {
		for _, below := range links {
			if severity[below.State] >= severity[l.State] && at > depth {
				found, depth = below, at
			}
			look(below.Links, at+1)
		}
	}
	look(l.Links, 1)
	return found
}

func staleParts(links []Link) []Stale {
	var out []Stale
	walk(links, func(l Link) { out = append(out, l.stale...) })
	return out
}

// withoutStop is a message without its full stop, to be continued.
func withoutStop(text string) string { return strings.TrimSuffix(phrase.OneLine(text), ".") }

// sentence ends a text with a full stop.
func sentence(text string) string {
	if text = phrase.OneLine(text); text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}
