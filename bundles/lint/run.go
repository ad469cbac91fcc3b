// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Options say what to look for, and what of it counts.
type Options struct {
	// Only are the ids of the rules to run; empty means all.
	Only []string
	// Skip are the ids of rules not to run.
	Skip    []string
	Waivers []Waiver
	// Baseline are findings that are known, and do not count.
	Baseline []Finding
	// AllHistory makes changes since every published version count, and not only those since the versions that upgrade
	// to the bundle directly.
	AllHistory bool
	// Directory is where the bundle is, as the user named it; files are shown below it. Empty shows them as they are.
	Directory string
	// WaiverFile is the name under which findings about waivers are reported; empty means WaiverFile.
	WaiverFile string
	// Now decides which waivers have expired.
	Now time.Time
	// FailOn is the mildest severity that makes a report a failure; empty means Error.
	FailOn Severity
}

// Report is what is wrong with a bundle.
type Report struct {
	// Bundle is the name of the bundle's CSV; Package and Version are what it is a version of.
	Bundle  string
	Package string
	Version string
	// Directory is that of the options.
	Directory string
	// History are the versions that it was compared with, the oldest first.
	History []string
	// Findings are those that no waiver covers: the worst first, then in the order of files and lines.
	Findings []Finding
	// Waived are those that one does.
	Waived []Waived
	// Known are those that the baseline has.
	Known []Finding
	// Earlier are those about published versions that do not upgrade to the bundle directly: what they report was
	// taken away by a version in between.
	Earlier []Finding
	// Rules are all that ran, in their usual order.
	Rules  []Rule
	FailOn Severity
}

// Waived is a finding that was accepted by a waiver.
type Waived struct {
	Finding
	Waiver Waiver `json:"waiver"`
}

// Run applies the rules to a bundle. It changes nothing in the input.
func Run(in Input, o Options) Report {
	r := Report{
		Bundle: in.Bundle.Name, Package: in.Bundle.Package, Version: in.Bundle.Version.String(),
		Directory: o.Directory, Rules: Select(o.Only, o.Skip), FailOn: cmp.Or(o.FailOn, Error),
	}
	for _, b := range in.History {
		r.History = append(r.History, b.Version.String())
	}
	w := waiving{waivers: o.Waivers, used: make([]bool, len(o.Waivers)), now: o.Now}
	for _, rule := range r.Rules {
		if rule.Check == nil { // it is about waivers, and comes last
			continue
		}
		for _, f := range rule.Check(&in) {
			f.Rule, f.Severity = rule.ID, cmp.Or(f.Severity, rule.Severity)
			if i := w.find(f); i >= 0 {
				r.Waived = append(r.Waived, Waived{Finding: f, Waiver: o.Waivers[i]})
				continue
			}
			switch {
			case slices.ContainsFunc(o.Baseline, f.isAs):
				r.Known = append(r.Known, f)
			case f.earlier && !o.AllHistory:
				r.Earlier = append(r.Earlier, f)
			default:
				r.Findings = append(r.Findings, f)
			}
		}
	}
	r.Findings = append(r.Findings, w.findings(r.Rules, cmp.Or(o.WaiverFile, WaiverFile))...)
	slices.SortStableFunc(r.Findings, compare)
	r.Findings = slices.Compact(r.Findings)
	for _, list := range []*[]Finding{&r.Known, &r.Earlier} {
		slices.SortStableFunc(*list, compare)
		*list = slices.Compact(*list)
	}
	slices.SortStableFunc(r.Waived, func(a, b Waived) int { return compare(a.Finding, b.Finding) })
	return r
}

// isAs reports whether two findings are about the same thing. Lines change with every edit, and the list of versions
// with every release.
func (f Finding) isAs(g Finding) bool {
	return f.Rule == g.Rule && f.File == g.File && f.Path == g.Path && withoutVersions(f.Message) ==
		withoutVersions(g.Message)
}

func withoutVersions(message string) string {
	text, _, _ := strings.Cut(message, publishedIn)
	return text
}

// Select returns the rules to run: those named by only, or all, less those
// named by skip.
func Select(only, skip []string) []Rule {
	return slices.DeleteFunc(Rules(), func(r Rule) bool {
		return slices.Contains(skip, r.ID) || len(only) > 0 && !slices.Contains(only, r.ID)
	})
}

// Find returns the rule of that id.
func Find(id string) (Rule, bool) {
	rules := Rules()
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == id })
	if i < 0 {
		return Rule{}, false
	}
	return rules[i], true
}

func compare(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity)),
		cmp.Compare(a.Rule, b.Rule),
		cmp.Compare(a.File, b.File),
		cmp.Compare(a.Line, b.Line),
		cmp.Compare(a.Path, b.Path),
		cmp.Compare(a.Message, b.Message),
	)
}

// Failed says whether some finding is at least as bad as FailOn.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity.AtLeast(r.FailOn) })
}

// Count returns how many findings have a severity.
func (r *Report) Count(s Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}
