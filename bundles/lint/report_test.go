// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/bellwether-dev/bellwether/bundles"
)

//go:generate go test -count=1 -run TestPrecisionPage . -update

var update = flag.Bool("update", false, "write golden files and docs/reference/rules-precision.md")

// golden compares a text with a file, or writes it.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), -update writes it:\n%s", file, diff)
	}
}

// faulty returns a bundle with many kinds of faults.
const faulty = `
-- manifests/echo-operator.clusterserviceversion.yaml.patch --
metadata:
  annotations:
    capabilities: Expert
    containerImage: registry.example.com/echo/operator:v1.1.0
spec:
  minKubeVersion: latest
  relatedImages:
  - {name: a, image: "registry.example.com/a:v1"}
  - {name: b, image: "registry.example.com/b:v1"}
  - {name: c, image: "registry.example.com/c:v1"}
  - {name: d, image: "registry.example.com/d:v1"}
  - {name: e, image: "registry.example.com/e:v1"}
  - {name: f, image: "registry.example.com/f:v1"}
-- manifests/echo.podmonitor.yaml --
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata:
  name: echo
-- metadata/annotations.yaml.patch --
annotations:
  operators.operatorframework.io.bundle.channel.default.v1: alpha
-- history/1.0.0/metadata/annotations.yaml.patch --
annotations: {}
-- .bellwether-lint.yaml --
waivers:
- rule: olmv0-kind
  file: manifests/*.podmonitor.yaml
  reason: Only clusters with OLM v1 get it.
  expires: 2027-01-31
- rule: image-unlisted
  reason: Long fixed.
  expires: 2027-01-31
- rule: of-category
  reason: We are experts.
  expires: 2026-11-20
`

func faultyReport(t *testing.T) Report {
	t.Helper()
	in, o := examplePlay(t, faulty)
	o.FailOn, o.Directory = Error, "bundle"
	for _, rule := range Rules() { // those of other files come and go
		if strings.HasPrefix(rule.ID, "of-") || strings.HasPrefix(rule.ID, "image-") ||
			strings.HasPrefix(rule.ID, "waiver-") ||
			strings.HasPrefix(rule.ID, "olmv") || rule.ID == "bundle-annotations" {
			o.Only = append(o.Only, rule.ID)
		}
	}
	return Run(in, o)
}

func TestText(t *testing.T) {
	report := faultyReport(t)
	golden(t, "testdata/report.txt", report.Text(TextStyle{}))
	golden(t, "testdata/report-all-coloured.txt",
		report.Text(TextStyle{Colour: true, All: true, Program: "kubectl bellwether"}))
	in, o := examplePlay(t, "")
	clean := Run(in, o)
	golden(t, "testdata/report-clean.txt", clean.Text(TextStyle{}))
}

func TestJSON(t *testing.T) {
	report := faultyReport(t)
	text, err := report.JSON()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/report.json", string(text))
}

func TestSARIF(t *testing.T) {
	report := faultyReport(t)
	text, err := report.SARIF("v0.0.0-test")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := sarif.FromString(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := parsed.Validate(); err != nil {
		t.Errorf("not what the schema of SARIF 2.1.0 says: %v", err)
	}
	run := parsed.Runs[0]
	if got, want := len(run.Results), len(report.Findings)+len(report.Waived); got != want {
		t.Errorf("%d results, want %d", got, want)
	}
	suppressed := 0
	for _, result := range run.Results {
		if i := result.RuleIndex; *result.RuleID != *run.Tool.Driver.Rules[i].ID {
			t.Errorf("result of %s points at rule %s", *result.RuleID, *run.Tool.Driver.Rules[i].ID)
		}
		if len(result.Locations) != 1 || *result.Locations[0].PhysicalLocation.ArtifactLocation.URI == "" {
			t.Errorf("result of %s has no place", *result.RuleID)
		}
		suppressed += len(result.Suppressions)
	}
	if suppressed != len(report.Waived) {
		t.Errorf("%d results are suppressed, want %d", suppressed, len(report.Waived))
	}
	for _, rule := range run.Tool.Driver.Rules {
		if rule.Help == nil || rule.HelpURI == nil || !strings.HasSuffix(*rule.HelpURI, "/rules.md#"+*rule.ID) {
			t.Errorf("rule %s has no help", *rule.ID)
		}
	}
}

// TestPrecisionPage also writes the page: its figures come from the corpus, which only tests read.
func TestPrecisionPage(t *testing.T) {
	golden(t, "../../docs/reference/rules-precision.md", precisionPage(t))
}

// TestRulesAreExplained requires of each rule that its page and the index say why it hurts, and how to fix it.
func TestRulesAreExplained(t *testing.T) {
	index := Index("rules")
	for _, rule := range Rules() {
		if rule.Why == "" || rule.Fix == "" || !strings.Contains(rule.Markdown(), "\n### Not reported\n") {
			t.Errorf("the page of %s does not say why it hurts, how to fix it, and what is right", rule.ID)
		}
		for _, part := range []string{"\n## " + rule.ID + "\n", rule.Why, rule.Fix, "(rules/" + rule.ID + ".md)"} {
			if !strings.Contains(index, part) {
				t.Errorf("the index says nothing like %q about %s", part, rule.ID)
			}
		}
	}
}

func TestFailed(t *testing.T) {
	for name, test := range map[string]struct {
		have, failOn Severity
		want         bool
	}{
		"nothing":                     {"", Info, false},
		"a warning, of errors":        {Warning, Error, false},
		"a warning, of warnings":      {Warning, Warning, true},
		"an error, of warnings":       {Error, Warning, true},
		"an info, of warnings":        {Info, Warning, false},
		"an unknown one, of infos":    {"odd", Info, false},
		"an info, of anything at all": {Info, Info, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := Report{FailOn: test.failOn}
			if test.have != "" {
				r.Findings = []Finding{{Severity: test.have}}
			}
			if got := r.Failed(); got != test.want {
				t.Errorf("Failed() = %t, want %t", got, test.want)
			}
		})
	}
}

func TestParseWaivers(t *testing.T) {
	for name, test := range map[string]struct{ text, problem string }{
		"empty": {"", ""},
		"whole": {"waivers:\n- {rule: of-hub, file: 'manifests/*', path: 'spec.*', reason: ours, expires: " +
			"2027-01-01}", ""},
		"no reason": {"waivers:\n- {rule: of-hub, reason: ' ', expires: 2027-01-01}",
			"line 2: a waiver needs a reason"},
		"no end":      {"waivers:\n- {rule: of-hub, reason: ours}", "needs a day"},
		"no such day": {"waivers:\n- {rule: of-hub, reason: ours, expires: 2027-02-30}", "needs a day"},
		"no such rule": {"waivers:\n\n- {rule: of-hubb, reason: ours, expires: 2027-01-01}",
			`line 3: there is no rule "of-hubb"`},
		"no such field": {"waivers:\n- {rule: of-hub, because: ours, expires: 2027-01-01}", `no field "because"`},
		"another list":  {"waiver:\n- {rule: of-hub}", "field waiver not found"},
		"no list":       {"waivers: all", "cannot unmarshal"},
		"no object":     {"waivers: [of-hub]", "text fields only"},
		"waives a waiver": {"waivers:\n- {rule: waiver-expired, reason: ours, expires: 2027-01-01}",
			"cannot be waived"},
		"no YAML": {"{", "bad waivers"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseWaivers([]byte(test.text))
			switch {
			case test.problem == "" && err != nil:
				t.Errorf("unexpected error: %v", err)
			case test.problem != "" && (!errors.Is(err, ErrBadWaivers) || !strings.Contains(err.Error(), test.problem)):
				t.Errorf("error %v, want ErrBadWaivers about %q", err, test.problem)
			}
		})
	}
}

// A waiver is valid until the end of its last day, and only for the findings that it names.
func TestWaiverCovers(t *testing.T) {
	waivers, err := ParseWaivers([]byte("waivers:\n- {rule: of-hub, file: 'manifests/*.yaml', path: " +
		"'spec.versions[0].*', reason: ours, expires: 2026-11-21}"))
	if err != nil {
		t.Fatal(err)
	}
	found := Finding{Rule: "of-hub", File: "manifests/a.yaml", Path: "spec.versions[0].name"}
	for name, test := range map[string]struct {
		change func(*Finding)
		days   int
		want   int
	}{
		"covered":       {func(*Finding) {}, 0, 0},
		"expired":       {func(*Finding) {}, 1, -1},
		"another rule":  {func(f *Finding) { f.Rule = "of-csv" }, 0, -1},
		"another file":  {func(f *Finding) { f.File = "metadata/a.yaml" }, 0, -1},
		"another field": {func(f *Finding) { f.Path = "spec.versions[1].name" }, 0, -1},
	} {
		t.Run(name, func(t *testing.T) {
			f := found
			test.change(&f)
			w := waiverMatcher{waivers: waivers, used: make([]bool, 1), now: today.AddDate(0, 0, test.days)}
			if got := w.findWaiver(f); got != test.want {
				t.Errorf("waiver %d, want %d", got, test.want)
			}
		})
	}
}

func TestPaths(t *testing.T) {
	for _, text := range []string{"", "spec", "spec.versions[0].schema", "metadata.annotations[a.b/c]", "a[0][1].b",
		"spec.properties[x y].z"} {
		path := parsePath(text)
		got := bundles.FieldPath(path...)
		if strings.Contains(text, "x y") { // a key that needs no brackets
			text = "spec.properties.x y.z"
		}
		if got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

const (
	removedIn110 = "-- history/1.0.0/manifests/echoes.example.com.yaml.patch --\nspec:\n  versions:\n  - name: v1\n " +
		"   " +
		"schema: {openAPIV3Schema: {properties: {spec: {properties: {volume: {type: string}}}}}}\n" +
		"-- history/1.0.5/metadata/annotations.yaml.patch --\nannotations: {}\n"
	replaces105 = "-- manifests/echo-operator.clusterserviceversion.yaml.patch --\n" +
		"spec: {replaces: echo-operator.v1.0.5}\n"
)

// Changes that an intermediate version made are not reported by default, and findings in the baseline never.
func TestHistoryNoise(t *testing.T) {
	for name, tc := range map[string]struct {
		text                     string
		all, baseline            bool
		findings, known, earlier int
	}{
		"any may upgrade directly":  {text: removedIn110, findings: 1},
		"one upgrades directly":     {text: removedIn110 + replaces105, earlier: 1},
		"all of the history":        {text: removedIn110 + replaces105, all: true, findings: 1},
		"what is known":             {text: removedIn110, baseline: true, known: 1},
		"what is known, of history": {text: removedIn110 + replaces105, all: true, baseline: true, known: 1},
	} {
		t.Run(name, func(t *testing.T) {
			in, o := examplePlay(t, tc.text)
			o.Only, o.AllHistory = []string{"crd-removed-field"}, true
			first := Run(in, o)
			report, err := first.JSON()
			if err != nil {
				t.Fatal(err)
			}
			if tc.baseline {
				if o.Baseline, err = ParseBaseline(report); err != nil {
					t.Fatal(err)
				}
			}
			o.AllHistory = tc.all
			r := Run(in, o)
			if len(r.Findings) != tc.findings || len(r.Known) != tc.known || len(r.Earlier) != tc.earlier {
				t.Errorf("%d findings, %d known, %d earlier, want %d, %d, %d", len(r.Findings), len(r.Known),
					len(r.Earlier), tc.findings, tc.known, tc.earlier)
			}
			text := r.Text(TextStyle{})
			if strings.Contains(text, "1 about versions that do not upgrade") != (tc.earlier > 0) ||
				strings.Contains(text, "1 in the baseline") != (tc.known > 0) {
				t.Errorf("the last line does not say so:\n%s", text)
			}
		})
	}
}

// A waiver may cover a family of rules.
func TestWaiverOfManyRules(t *testing.T) {
	in, o := examplePlay(t, removedIn110+"-- "+WaiverFile+" --\nwaivers:\n- {rule: crd-*, reason: agreed, expires: "+
		"2027-01-01}\n")
	r := Run(in, o)
	if len(r.Waived) != 1 || len(of(r.Findings, "crd-removed-field"))+len(of(r.Findings, ruleWaiverUnused)) != 0 {
		t.Errorf("waived %+v, left %+v", r.Waived, r.Findings)
	}
	if _, err := ParseWaivers([]byte("waivers:\n- {rule: crx-*, reason: agreed, expires: 2027-01-01}\n")); err == nil {
		t.Error("a waiver of rules that do not exist is accepted")
	}
}
