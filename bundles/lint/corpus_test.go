// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/build"
	"github.com/bellwether-dev/bellwether/bundles/bundletest"
)

// corpusDir is the folder of another corpus with the same files; see testdata/corpus/README.md.
var corpusDir = flag.String("corpus", "testdata/corpus", "the folder of the corpus")

// corpusBundle is a line of corpus.yaml: a published bundle, and where it is.
type corpusBundle struct {
	Package string `json:"package"`
	Version string `json:"version"`
	// Published is a name of package bundletest.
	Published string `json:"published,omitempty"`
	// Module is a Go module that go.mod requires; Path is a folder in it, or without a module in the corpus: a bundle,
	// or a package in the package manifest format.
	Module string `json:"module,omitempty"`
	Path   string `json:"path,omitempty"`
	// Folder selects the version of a package by the name of its folder, where the version is not enough.
	Folder string `json:"folder,omitempty"`
	// Channels are given where the package manifest names none of it.
	Channels []string `json:"channels,omitempty"`
	// Source is the project that wrote it, Licence the licence under which we have it.
	Source  string `json:"source"`
	Licence string `json:"licence"`
}

// judged is an expected finding, and the verdict of a reviewer.
type judged struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	File     string   `json:"file,omitempty"`
	Path     string   `json:"path,omitempty"`
	Message  string   `json:"message"`
	// Verdict is correct or wrong. A finding is correct if the bundle has what the rule says that it reports.
	Verdict string `json:"verdict"`
	// Reason says why a finding is wrong.
	Reason string `json:"reason,omitempty"`
}

const (
	correct = "correct"
	wrong   = "wrong"
)

func (j judged) key() string {
	return strings.Join([]string{string(j.Severity), j.Rule, j.File, j.Path, j.Message}, " | ")
}

func readCorpus(t testing.TB) []corpusBundle {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(*corpusDir, "corpus.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var in struct {
		Bundles []corpusBundle `json:"bundles"`
	}
	if err := yaml.UnmarshalStrict(text, &in); err != nil {
		t.Fatal(err)
	}
	return in.Bundles
}

func (c corpusBundle) name() string { return c.Package + "/" + c.Version }

// files are those of the bundle. A version of a package manifest gets the annotations that it converts to.
func (c corpusBundle) files(t testing.TB) fs.FS {
	t.Helper()
	if c.Published != "" {
		return bundletest.Files(t, c.Published)
	}
	root := *corpusDir
	if c.Module != "" {
		root = bundletest.Module(t, c.Module)
	}
	files := os.DirFS(filepath.Join(root, filepath.FromSlash(c.Path)))
	p, err := build.ReadPackageManifests(files)
	if errors.Is(err, build.ErrNotPackageManifests) {
		return files
	}
	if err != nil {
		t.Fatalf("%s: %v", c.name(), err)
	}
	converted, err := p.Convert(build.Options{Version: cmp.Or(c.Folder, c.Version), Channels: c.Channels})
	out := fstest.MapFS{}
	if converted == nil { // what the validators have to say are findings
		t.Fatalf("%s: %v", c.name(), err)
		return out
	}
	for name, text := range converted.Files {
		out[name] = &fstest.MapFile{Data: text, Mode: 0o644}
	}
	return out
}

// lintCorpus lints a bundle against all lower versions of its package.
func lintCorpus(t testing.TB, all []corpusBundle, c corpusBundle) []judged {
	t.Helper()
	in := Input{Files: c.files(t)}
	var err error
	if in.Bundle, err = bundles.Read(in.Files); err != nil {
		t.Fatalf("%s: %v", c.name(), err)
	}
	if got := in.Bundle.Version.String(); got != c.Version {
		t.Errorf("%s has version %s", c.name(), got)
	}
	var history []*bundles.Bundle
	for _, other := range all {
		if other.Package != c.Package || other.Version == c.Version {
			continue
		}
		b, err := bundles.Read(other.files(t))
		if err != nil {
			t.Fatalf("%s: %v", other.name(), err)
		}
		if b.Version.LT(in.Bundle.Version) {
			history = append(history, b)
		}
	}
	in.History = SortHistory(in.Bundle, history)
	in.Predecessor = FindPredecessor(in.Bundle, in.History)
	var out []judged
	for _, f := range Run(in, Options{Now: today}).Findings {
		out = append(out, judged{Rule: f.Rule, Severity: f.Severity, File: f.File, Path: f.Path, Message: f.Message})
	}
	slices.SortStableFunc(out, func(a, b judged) int { return cmp.Compare(a.key(), b.key()) })
	return out
}

func verdictFile(c corpusBundle) string {
	return filepath.Join(*corpusDir, "findings", c.Package, c.Version+".yaml")
}

func readVerdicts(t testing.TB, c corpusBundle) []judged {
	t.Helper()
	text, err := os.ReadFile(verdictFile(c))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var in struct {
		Findings []judged `json:"findings"`
	}
	if err := yaml.UnmarshalStrict(text, &in); err != nil {
		t.Fatalf("%s: %v", verdictFile(c), err)
	}
	return in.Findings
}

// writeVerdicts writes the findings that there are, with the verdicts that there were. New ones have none.
func writeVerdicts(t testing.TB, c corpusBundle, found, before []judged) {
	t.Helper()
	for i := range found {
		if j := slices.IndexFunc(before, func(b judged) bool { return b.key() == found[i].key() }); j >= 0 {
			found[i].Verdict, found[i].Reason = before[j].Verdict, before[j].Reason
		}
	}
	text, err := yaml.Marshal(map[string]any{"findings": found})
	if err == nil {
		err = os.MkdirAll(filepath.Dir(verdictFile(c)), 0o755)
	}
	if err == nil {
		err = os.WriteFile(verdictFile(c), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestCorpus lints published bundles, each against its earlier versions. The test fails if a finding is new, is gone,
// or is not reviewed. -update writes the findings; the verdicts are written by hand.
func TestCorpus(t *testing.T) {
	all := readCorpus(t)
	for _, c := range all {
		t.Run(c.name(), func(t *testing.T) {
			found, before := lintCorpus(t, all, c), readVerdicts(t, c)
			if *update {
				writeVerdicts(t, c, found, before)
				before = readVerdicts(t, c)
			}
			if diff := gocmp.Diff(keys(before), keys(found)); diff != "" {
				t.Errorf("findings of %s (-reviewed +found), -update writes them:\n%s", c.name(), diff)
			}
			for _, j := range before {
				switch {
				case j.Verdict != correct && j.Verdict != wrong:
					t.Errorf("nobody has reviewed: %s", j.key())
				case j.Verdict == wrong && j.Reason == "":
					t.Errorf("it is wrong, but nothing says why: %s", j.key())
				case j.Verdict == wrong && j.Severity == Error:
					t.Errorf("a wrong error stops releases for nothing; correct the rule: %s", j.key())
				}
			}
		})
	}
	t.Logf("\n%s", precisionTable(t))
}

func keys(all []judged) []string {
	var out []string
	for _, j := range all {
		out = append(out, j.key())
	}
	return out
}

// TestTheCorpusIsKnown checks that published bundles have only objects with known effects, and that almost all rights
// come from RBAC.
func TestTheCorpusIsKnown(t *testing.T) {
	var got []string
	for _, c := range readCorpus(t) {
		b, err := bundles.Read(c.files(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range b.Rights() {
			if r.Source == bundles.FromObject {
				got = append(got, fmt.Sprintf("%s: %s%s", c.name(), r.FormatSource(), r.Unknown))
			}
		}
	}
	want := []string{"addon-operator/1.0.0: ServiceMonitor addon-operator-servicemonitor, whose bearerTokenFile has " +
		"Prometheus send its own token"}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("rights by objects (-want +got):\n%s", diff)
	}
}

// The corpus names the owner and licence of each bundle, and each verdict belongs to an existing bundle.
func TestCorpusIsComplete(t *testing.T) {
	want := map[string]bool{}
	for _, c := range readCorpus(t) {
		if c.Source == "" || c.Licence == "" || (c.Published == "") == (c.Path == "") || want[verdictFile(c)] {
			t.Errorf("incomplete, or there twice: %+v", c)
		}
		want[verdictFile(c)] = true
	}
	files, err := filepath.Glob(filepath.Join(*corpusDir, "findings", "*", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !want[file] {
			t.Errorf("%s is about no bundle of the corpus", file)
		}
	}
	for _, name := range bundletest.Names(t) {
		if !slices.ContainsFunc(readCorpus(t), func(c corpusBundle) bool { return c.Published == name }) &&
			*corpusDir == "testdata/corpus" {
			t.Errorf("the published bundle %s is not in the corpus", name)
		}
	}
}

// precision counts the findings of a rule in the corpus.
type precision struct{ bundles, findings, correct int }

func (p precision) String() string {
	if p.findings == 0 {
		return "–"
	}
	return fmt.Sprintf("%d %%", 100*p.correct/p.findings)
}

// precisions counts by rule, from the verdicts.
func precisions(t testing.TB) (of map[string]precision, reviewed int) {
	t.Helper()
	of = map[string]precision{}
	all := readCorpus(t)
	for _, c := range all {
		seen := map[string]bool{}
		for _, j := range readVerdicts(t, c) {
			p := of[j.Rule]
			p.findings++
			if j.Verdict == correct {
				p.correct++
			}
			if !seen[j.Rule] {
				seen[j.Rule] = true
				p.bundles++
			}
			of[j.Rule] = p
		}
	}
	return of, len(all)
}

// precisionTable lists the rules that report something in the corpus.
func precisionTable(t testing.TB) string {
	t.Helper()
	of, _ := precisions(t)
	var out strings.Builder
	out.WriteString("| rule | severity | bundles | findings | correct | precision |\n|---|---|---|---|---|---|\n")
	var total precision
	for _, r := range Rules() {
		p := of[r.ID]
		if p.findings == 0 {
			continue
		}
		total.findings, total.correct = total.findings+p.findings, total.correct+p.correct
		fmt.Fprintf(&out, "| [%s](rules.md#%s) | %s | %d | %d | %d | %s |\n", r.ID, r.ID, r.Severity, p.bundles,
			p.findings, p.correct, p)
	}
	fmt.Fprintf(&out, "| all | | | %d | %d | %s |\n", total.findings, total.correct, total)
	return out.String()
}

// precisionPage is docs/reference/rules-precision.md.
func precisionPage(t testing.TB) string {
	t.Helper()
	all := readCorpus(t)
	var out strings.Builder
	fmt.Fprintf(&out, "# Precision and recall of the rules\n\n"+
		"How many findings are correct, by rule, over the corpus: %d "+
		"published bundles of other projects. Each is compared with the lower versions of its package. Every finding "+
		"was reviewed, and is correct if the bundle has what the rule says that it reports. `make corpus` compares "+
		"the findings with the reviewed ones; a wrong finding of severity error fails it. This page is written by "+
		"`make generate`.\n\nRules that are not listed report nothing in the corpus, so their "+
		"precision is not known. The corpus is small, and "+
		"three quarters of its bundles are older than 2021: rules about current features of Kubernetes hardly "+
		"occur.\n\n", len(all))
	out.WriteString(precisionTable(t))
	out.WriteString(recallSection(t))
	out.WriteString("\n## The bundles\n\n| bundle | project | licence | read from |\n|---|---|---|---|\n")
	for _, c := range all {
		from := "bundles/bundletest"
		if c.Module != "" {
			from = fmt.Sprintf("Go module `%s`, `%s`", c.Module, path.Join(c.Path, c.Folder))
		}
		fmt.Fprintf(&out, "| %s %s | %s | %s | %s |\n", c.Package, c.Version, c.Source, c.Licence, from)
	}
	return out.String()
}
