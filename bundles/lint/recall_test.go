// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/bellwether-dev/bellwether/bundles"
)

// injector plants one fault that a rule promises to report.
type injector struct {
	rule string
	// fault says what the planted bundle has.
	fault string
	// spots are the places of a draft at which the fault can be planted. Places that have the fault already are not
	// among them.
	spots func(d *draft) []spot
	// plant changes the draft, and returns where the rule has to report it. A finding below that place counts too.
	plant func(d *draft, s spot) spot
}

func (i injector) name() string { return i.rule + ": " + i.fault }

// injectors are all faults that are planted.
func injectors() []injector {
	return slices.Concat(csvFaults(), formatFaults(), upgradeFaults(), crdFaults(), schemaFaults(), rbacFaults(),
		runtimeFaults(), webhookFaults(), imageFaults())
}

// knownMisses are planted faults that the rule does not report, with the reason why that is accepted. The key is the
// name of the injector, and of the bundle.
var knownMisses = map[[2]string]string{
	{"crd-new-default: a text has a default", "grafana-operator/5.9.2"}: "one finding is made of all new " +
		"defaults of an API version, at the first of them; earlier versions have others, which come before it",
}

// planting is the result of one planted fault.
type planting struct {
	injector, bundle, place string
	found                   bool
	// reported are the new findings of the rule, for the message of a test.
	reported []Finding
}

// recall counts planted faults.
type recall struct{ planted, found int }

func (r recall) String() string {
	if r.planted == 0 {
		return "not measured"
	}
	return fmt.Sprintf("%d %%", 100*r.found/r.planted)
}

// middle returns the middle one of the places. Of the fields of a schema it is neither at the root nor the deepest.
func middle(spots []spot) []spot {
	if len(spots) == 0 {
		return nil
	}
	return spots[len(spots)/2:][:1]
}

// plantAll plants every fault into a bundle.
func plantAll(t testing.TB, c corpusBundle, lower []*bundles.Bundle) []planting {
	t.Helper()
	base := newDraft(t, c, lower)
	before := map[string][]Finding{}
	var out []planting
	for _, i := range injectors() {
		if _, ok := before[i.rule]; !ok {
			before[i.rule] = base.clone().lint(t, i.rule)
		}
		for _, s := range middle(i.spots(base)) {
			d := base.clone()
			want := i.plant(d, s)
			added := slices.DeleteFunc(d.lint(t, i.rule),
				func(f Finding) bool { return slices.ContainsFunc(before[i.rule], f.isSameAs) })
			out = append(out, planting{i.name(), c.name(), want.file + " " + bundles.FieldPath(want.path...),
				slices.ContainsFunc(added, want.contains), added})
		}
	}
	return out
}

// lint returns what one rule finds in a draft. What is no bundle any more fails the test: no rule can look at it.
func (d *draft) lint(t testing.TB, rule string) []Finding {
	t.Helper()
	in, err := d.input()
	if err != nil {
		t.Errorf("a fault for rule %s makes the next version of %s unreadable: %v", rule, d.predecessor.Name, err)
		return nil
	}
	return Run(in, Options{Now: today, Only: []string{rule}}).Findings
}

// contains says whether a finding is about a place or something below it.
func (s spot) contains(f Finding) bool {
	rest, ok := strings.CutPrefix(f.Path, bundles.FieldPath(s.path...))
	return ok && f.File == s.file && (rest == "" || len(s.path) == 0 || strings.HasPrefix(rest, ".") ||
		strings.HasPrefix(rest, "["))
}

var measured = struct {
	sync.Once
	plantings []planting
}{}

// plantings are the results of all planted faults in the newest bundle of each package. They are measured once.
func plantings(t testing.TB) []planting {
	t.Helper()
	measured.Do(func() {
		all := readCorpus(t)
		read := map[string]*bundles.Bundle{}
		for _, c := range all {
			read[c.name()] = readBundle(t, c.files(t))
		}
		for _, c := range all {
			var lower []*bundles.Bundle
			for _, other := range all {
				if other.Package == c.Package && read[other.name()].Version.LT(read[c.name()].Version) {
					lower = append(lower, read[other.name()])
				}
			}
			if slices.ContainsFunc(all, func(o corpusBundle) bool {
				return o.Package == c.Package && read[o.name()].Version.GT(read[c.name()].Version)
			}) {
				continue // a later version is much the same bundle
			}
			measured.plantings = append(measured.plantings,
				plantAll(t, c, SortHistory(read[c.name()], lower))...)
		}
	})
	if len(measured.plantings) == 0 {
		t.Fatal("no fault was planted")
	}
	return measured.plantings
}

// recalls counts by rule.
func recalls(t testing.TB) map[string]recall {
	t.Helper()
	out := map[string]recall{}
	for _, p := range plantings(t) {
		rule, _, _ := strings.Cut(p.injector, ":")
		r := out[rule]
		r.planted++
		if p.found {
			r.found++
		}
		out[rule] = r
	}
	return out
}

// TestRecall plants known faults into the bundles of the corpus. A fault that its rule does not report at the place
// where it was planted fails the test, unless it is one of the known misses. So does a known miss that is found.
func TestRecall(t *testing.T) {
	missed, planted := map[[2]string]bool{}, map[string]bool{}
	for _, p := range plantings(t) {
		planted[p.injector] = true
		key := [2]string{p.injector, p.bundle}
		if p.found {
			continue
		}
		missed[key] = true
		if knownMisses[key] == "" {
			t.Errorf("%s: not found in %s at %s; the rule reports %+v", p.injector, p.bundle, p.place, p.reported)
		}
	}
	for key := range knownMisses {
		if !missed[key] && *corpusDir == "testdata/corpus" {
			t.Errorf("%s: it is found in %s, and is listed as a known miss", key[0], key[1])
		}
	}
	for _, i := range injectors() {
		if _, ok := FindRule(i.rule); !ok {
			t.Errorf("%s: there is no such rule", i.name())
		}
		if !planted[i.name()] && *corpusDir == "testdata/corpus" {
			t.Errorf("%s: it could be planted in no bundle, so it measures nothing", i.name())
		}
	}
}

// The recall of a rule without findings is zero: older findings, and findings at other places, must not count as the
// planted fault.
func TestRecallNeedsFindingAtPlace(t *testing.T) {
	place := spot{file: "manifests/csv.yaml", path: []any{"spec", "versions", 1}}
	for path, want := range map[string]bool{
		"spec.versions[1]": true, "spec.versions[1].served": true, "spec.versions[10]": false, "spec": false,
	} {
		if got := place.contains(Finding{File: "manifests/csv.yaml", Path: path}); got != want {
			t.Errorf("a finding at %s is at the place: %t, want %t", path, got, want)
		}
		if place.contains(Finding{File: "manifests/other.yaml", Path: path}) {
			t.Errorf("a finding in another file is at the place")
		}
	}
}

// recallTable lists all rules that have a planted fault, and names the others.
func recallTable(t testing.TB) string {
	t.Helper()
	of := recalls(t)
	var out strings.Builder
	out.WriteString("| rule | severity | planted | found | recall |\n|---|---|---|---|---|\n")
	var total recall
	for _, r := range Rules() {
		n := of[r.ID]
		if n.planted == 0 {
			fmt.Fprintf(&out, "| [%s](rules.md#%s) | %s | – | – | %s |\n", r.ID, r.ID, r.Severity, n)
			continue
		}
		total.planted, total.found = total.planted+n.planted, total.found+n.found
		fmt.Fprintf(&out, "| [%s](rules.md#%s) | %s | %d | %d | %s |\n", r.ID, r.ID, r.Severity, n.planted, n.found, n)
	}
	fmt.Fprintf(&out, "| all | | %d | %d | %s |\n", total.planted, total.found, total)
	return out.String()
}

// recallSection is the part of docs/reference/rules-precision.md about recall.
func recallSection(t testing.TB) string {
	t.Helper()
	var out strings.Builder
	fmt.Fprintf(&out, "\n## Recall\n\nHow many known faults are reported, by rule. A test plants a fault in the next "+
		"version of the newest bundle of each package: a copy with a higher version, which replaces the published one "+
		"and differs from it in nothing but the fault. Each fault is planted alone, at one place of each bundle "+
		"where it applies. It counts as found if the rule reports something that it does not report without the "+
		"fault, at the place where the fault was planted. A fault that is not found fails the test, unless it is "+
		"listed there with a reason.\n\nThese are faults that we thought of, %d kinds of them, and they are planted "+
		"by a program: a recall of 100 %% means that the rule finds these in real bundles, not that it finds every "+
		"fault that people make.\n\n", len(injectors()))
	out.WriteString(recallTable(t))
	out.WriteString("\n### What is planted\n\n| rule | fault |\n|---|---|\n")
	for _, i := range injectors() {
		fmt.Fprintf(&out, "| [%s](rules.md#%s) | %s |\n", i.rule, i.rule, i.fault)
	}
	return out.String()
}
