// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Options select the rules, and the findings that count.
type Options struct {
	// Only are the ids of the rules to run; empty means all rules.
	Only []string
	// Skip are the ids of rules that do not run.
	Skip    []string
	Waivers []Waiver
	// Baseline are known findings, which do not count.
	Baseline []Finding
	// AllHistory makes changes since every published version count. By default, only changes since the versions that
	// upgrade to the bundle directly count.
	AllHistory bool
	// Directory is the folder of the bundle as the user named it. It is the prefix of the files in the output; it can
	// be empty.
	Directory string
	// WaiverFile is the file name in findings about waivers; empty means the constant WaiverFile.
	WaiverFile string
	// Now is the current time; it determines which waivers have expired.
	Now time.Time
	// FailOn is the least severity that makes a report a failure; empty means Error.
	FailOn Severity
}

// Report is the result of Run for a bundle.
type Report struct {
	// Bundle is the name of the bundle's CSV; Package and Version are its package and its version.
	Bundle  string
	Package string
	Version string
	// Directory is copied from the options.
	Directory string
	// History are the versions that the bundle was compared with, the oldest first.
	History []string
	// Findings are the findings that count: the most severe first, then ordered by rule, file and line.
	Findings []Finding
	// Waived are the findings that a waiver covers.
	Waived []Waived
	// Known are the findings that are in the baseline.
	Known []Finding
	// Earlier are findings about published versions that do not upgrade to the bundle directly. A version in between
	// made the change.
	Earlier []Finding
	// Rules are all rules that ran, in the order of Rules.
	Rules  []Rule
	FailOn Severity
}

// Waived is a finding that a waiver covers.
type Waived struct {
	Finding
	Waiver Waiver `json:"waiver"`
}

// Run applies the rules to a bundle. A finding that a waiver covers does not count, then a finding in the baseline,
// then a finding about earlier versions. Run does not change the input.
func Run(in Input, o Options) Report {
	r := Report{
		Bundle: in.Bundle.Name, Package: in.Bundle.Package, Version: in.Bundle.Version.String(),
		Directory: o.Directory, Rules: SelectRules(o.Only, o.Skip), FailOn: cmp.Or(o.FailOn, Error),
	}
	for _, b := range in.History {
		r.History = append(r.History, b.Version.String())
	}
	w := waiverMatcher{waivers: o.Waivers, used: make([]bool, len(o.Waivers)), now: o.Now}
	for _, rule := range r.Rules {
		if rule.Check == nil { // the rules about waivers run last
			continue
		}
		for _, f := range rule.Check(&in) {
			f.Rule, f.Severity = rule.ID, cmp.Or(f.Severity, rule.Severity)
			if i := w.findWaiver(f); i >= 0 {
				r.Waived = append(r.Waived, Waived{Finding: f, Waiver: o.Waivers[i]})
				continue
			}
			switch {
			case slices.ContainsFunc(o.Baseline, f.isSameAs):
				r.Known = append(r.Known, f)
			case f.earlier && !o.AllHistory:
				r.Earlier = append(r.Earlier, f)
			default:
				r.Findings = append(r.Findings, f)
			}
		}
	}
	r.Findings = append(r.Findings, w.reportWaivers(r.Rules, cmp.Or(o.WaiverFile, WaiverFile))...)
	slices.SortStableFunc(r.Findings, compareFindings)
	r.Findings = slices.Compact(r.Findings)
	for _, findings := range []*[]Finding{&r.Known, &r.Earlier} {
		slices.SortStableFunc(*findings, compareFindings)
		*findings = slices.Compact(*findings)
	}
	slices.SortStableFunc(r.Waived, func(a, b Waived) int { return compareFindings(a.Finding, b.Finding) })
	return r
}

// isSameAs reports whether two findings are about the same fault. It ignores lines, which change with every edit, and
// the list of versions in the message, which changes with every release.
func (f Finding) isSameAs(g Finding) bool {
	return f.Rule == g.Rule && f.File == g.File && f.Path == g.Path &&
		trimVersions(f.Message) == trimVersions(g.Message)
}

// trimVersions removes the list of published versions from a message.
func trimVersions(message string) string {
	text, _, _ := strings.Cut(message, publishedPrefix)
	return text
}

// SelectRules returns the rules to run: the rules in only, or all rules if only is empty, without the rules in skip.
func SelectRules(only, skip []string) []Rule {
	return slices.DeleteFunc(Rules(), func(r Rule) bool {
		return slices.Contains(skip, r.ID) || len(only) > 0 && !slices.Contains(only, r.ID)
	})
}

// FindRule returns the rule with the given id, and whether it exists.
func FindRule(id string) (Rule, bool) {
	rules := Rules()
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == id })
	if i < 0 {
		return Rule{}, false
	}
	return rules[i], true
}

// compareFindings orders findings by severity, rule, file, line, path and message.
func compareFindings(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity)),
		cmp.Compare(a.Rule, b.Rule),
		cmp.Compare(a.File, b.File),
		cmp.Compare(a.Line, b.Line),
		cmp.Compare(a.Path, b.Path),
		cmp.Compare(a.Message, b.Message),
	)
}

// Failed reports whether a finding is at least as severe as FailOn.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity.AtLeast(r.FailOn) })
}

// Count returns the number of findings with a severity.
func (r *Report) Count(s Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}
