// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/blang/semver/v4"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/bundles"
)

// today is the day on which all tests run.
var today = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)

const baseCSV = "manifests/echo-operator.clusterserviceversion.yaml"

// baseFiles returns the files of the faultless bundle that examples are based on.
func baseFiles(t testing.TB) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	base := os.DirFS("testdata/base")
	err := fs.WalkDir(base, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(base, name)
		out[name] = &fstest.MapFile{Data: text}
		return err
	})
	if err != nil {
		t.Fatalf("read the base bundle: %v", err)
	}
	return out
}

// examplePlay returns the input and options of an example. See examples/README.md for the format.
func examplePlay(t testing.TB, text string) (Input, Options) {
	t.Helper()
	in, o := Input{}, Options{Now: today, FailOn: Info}
	current, versions := baseFiles(t), map[string]fstest.MapFS{}
	for _, f := range txtar.Parse([]byte(text)).Files {
		switch name, old := strings.CutPrefix(f.Name, "history/"); {
		case old:
			version, rest, _ := strings.Cut(name, "/")
			if versions[version] == nil {
				versions[version] = baseVersion(t, version)
			}
			overlay(t, versions[version], txtar.File{Name: rest, Data: f.Data})
		case f.Name == "images":
			in.Images = parseImages(t, f.Data)
		case f.Name == "filler":
			fill(t, current, f.Data)
		case f.Name == WaiverFile:
			waivers, err := ParseWaivers(f.Data)
			if err != nil {
				t.Fatalf("parse waivers: %v", err)
			}
			o.Waivers = waivers
		default:
			overlay(t, current, f)
		}
	}
	in.Bundle, in.Files = readBundle(t, current), current
	for _, version := range sortedVersions(t, versions) {
		published, err := bundles.Read(versions[version])
		if err != nil {
			in.Unreadable = append(in.Unreadable, Unreadable{Name: version, Err: err})
			continue
		}
		in.History = append(in.History, published)
	}
	in.Predecessor = FindPredecessor(in.Bundle, in.History)
	return in, o
}

// baseVersion is the base bundle under another version.
func baseVersion(t testing.TB, version string) fstest.MapFS {
	t.Helper()
	files := baseFiles(t)
	overlay(t, files, txtar.File{Name: baseCSV + ".patch",
		Data: fmt.Appendf(nil, "metadata: {name: echo-operator.v%s}\nspec: {version: %s}\n", version, version)})
	return files
}

func sortedVersions(t testing.TB, versions map[string]fstest.MapFS) []string {
	t.Helper()
	return slices.SortedFunc(maps.Keys(versions), func(a, b string) int {
		x, err := semver.Parse(a)
		y, err2 := semver.Parse(b)
		if err := errors.Join(err, err2); err != nil {
			t.Fatalf("history: %v", err)
		}
		return x.Compare(y)
	})
}

func readBundle(t testing.TB, files fs.FS) *bundles.Bundle {
	t.Helper()
	b, err := bundles.Read(files)
	if err != nil {
		t.Fatalf("read bundle: %v", err)
	}
	return b
}

// overlay puts a file over those of a bundle, or merges a patch into one.
func overlay(t testing.TB, files fstest.MapFS, f txtar.File) {
	t.Helper()
	name, patch := strings.CutSuffix(f.Name, ".patch")
	if !patch {
		files[name] = &fstest.MapFile{Data: f.Data}
		return
	}
	old, ok := files[name]
	if !ok {
		t.Fatalf("%s: there is no %s to patch; there are %v", f.Name, name, slices.Sorted(maps.Keys(files)))
	}
	var into, from any
	if err := errors.Join(yaml.Unmarshal(old.Data, &into), yaml.Unmarshal(f.Data, &from)); err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
	text, err := yaml.Marshal(merge(into, from))
	if err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
	files[name] = &fstest.MapFile{Data: text}
}

// fill adds ConfigMaps of so many KiB that hardly compress.
func fill(t testing.TB, files fstest.MapFS, text []byte) {
	t.Helper()
	for line := range strings.Lines(string(text)) {
		var name string
		var kib int
		if _, err := fmt.Sscan(line, &name, &kib); err != nil {
			t.Fatalf("filler: %q is not FILE KIB", line)
		}
		data, sum := []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: filler\ndata:\n  filler: "),
			sha256.Sum256(nil)
		for len(data) < kib<<10 {
			sum = sha256.Sum256(sum[:])
			data = append(data, base64.RawURLEncoding.EncodeToString(sum[:])...)
		}
		files[name] = &fstest.MapFile{Data: data}
	}
}

// merge merges a patch: objects field by field, where null removes; lists of
// named things thing by thing; all else is replaced.
func merge(into, from any) any {
	switch from := from.(type) {
	case map[string]any:
		out, ok := into.(map[string]any)
		if !ok {
			out = map[string]any{}
		}
		for name, value := range from {
			if value == nil {
				delete(out, name)
				continue
			}
			out[name] = merge(out[name], value)
		}
		return out
	case []any:
		old, ok := into.([]any)
		if key := listKey(from); ok && key != "" && key == listKey(old) {
			return mergeList(old, from, key)
		}
	}
	return from
}

func mergeList(into, from []any, key string) []any {
	for _, element := range from {
		name := element.(map[string]any)[key]
		i := slices.IndexFunc(into, func(e any) bool { return e.(map[string]any)[key] == name })
		if i < 0 {
			into = append(into, element)
			continue
		}
		into[i] = merge(into[i], element)
	}
	return into
}

// listKey is the field by which the things in a list are told apart; empty if
// they are not.
func listKey(list []any) string {
	for _, key := range []string{"name", "type", "generateName", "serviceAccountName"} {
		if len(list) > 0 && !slices.ContainsFunc(list, func(e any) bool {
			m, ok := e.(map[string]any)
			return !ok || m[key] == nil
		}) {
			return key
		}
	}
	return ""
}

// knownImages says what registries know, by image.
type knownImages map[string][]string

func (k knownImages) Platforms(image string) ([]string, error) {
	platforms, ok := k[image]
	if !ok {
		return nil, fmt.Errorf("image %s: %w", image, fs.ErrNotExist)
	}
	return platforms, nil
}

func parseImages(t testing.TB, text []byte) knownImages {
	t.Helper()
	out := knownImages{}
	for line := range strings.Lines(string(text)) {
		image, platforms, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			t.Fatalf("images: %q is not IMAGE PLATFORM,PLATFORM", line)
		}
		out[image] = strings.Split(platforms, ",")
	}
	return out
}

func of(findings []Finding, rule string) []Finding {
	var out []Finding
	for _, f := range findings {
		if f.Rule == rule {
			out = append(out, f)
		}
	}
	return out
}

// Each rule reports its bad example and not its good example. If the rule is disabled, no other rule reports under its
// name, so each of these tests fails if its rule does nothing.
func TestRules(t *testing.T) {
	for _, rule := range Rules() {
		t.Run(rule.ID, func(t *testing.T) {
			if rule.Bad == "" || rule.Good == "" {
				t.Fatalf("examples/%[1]s.bad.txtar and examples/%[1]s.good.txtar must exist", rule.ID)
			}
			in, o := examplePlay(t, rule.Bad)
			report := Run(in, o)
			found := of(report.Findings, rule.ID)
			if len(found) == 0 {
				t.Fatalf("the bad example is not reported; reported were: %+v", report.Findings)
			}
			for _, f := range found {
				checkFinding(t, rule, f)
			}
			o.Skip = []string{rule.ID}
			if left := of(Run(in, o).Findings, rule.ID); len(left) > 0 {
				t.Errorf("reported although the rule is off: %+v", left)
			}
			in, o = examplePlay(t, rule.Good)
			if found := of(Run(in, o).Findings, rule.ID); len(found) > 0 {
				t.Errorf("the good example is reported: %+v", found)
			}
		})
	}
}

func checkFinding(t *testing.T, rule Rule, f Finding) {
	t.Helper()
	if f.Message == "" || strings.HasSuffix(f.Message, ".") || strings.Contains(f.Message, "\n") {
		t.Errorf("a message is one sentence without a full stop, not %q", f.Message)
	}
	if !slices.Contains(severities, f.Severity) || !rule.Severity.AtLeast(f.Severity) {
		t.Errorf("severity %q of a finding is worse than %q of its rule", f.Severity, rule.Severity)
	}
	if f.File != "" && f.Line == 0 {
		t.Errorf("a finding in a file has a line: %+v", f)
	}
}

// The documentation is generated from the texts of the rules.
func TestRulesAreDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, rule := range Rules() {
		if seen[rule.ID] {
			t.Errorf("two rules are called %s", rule.ID)
		}
		seen[rule.ID] = true
		if !slices.Contains(severities, rule.Severity) {
			t.Errorf("%s: severity %q", rule.ID, rule.Severity)
		}
		if rule.Title == "" || strings.HasSuffix(rule.Title, ".") {
			t.Errorf("%s: title %q is no heading", rule.ID, rule.Title)
		}
		for what, text := range map[string]string{"why": rule.Why, "fix": rule.Fix} {
			if !strings.HasSuffix(strings.TrimSpace(text), ".") {
				t.Errorf("%s: %s is not sentences: %q", rule.ID, what, text)
			}
		}
	}
	files, err := fs.Glob(examples, "examples/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		id, _, _ := strings.Cut(path.Base(file), ".")
		if !seen[id] {
			t.Errorf("%s belongs to no rule", file)
		}
	}
}

// The base bundle of examples has no faults, so that an example shows only its own fault.
func TestBaseIsClean(t *testing.T) {
	in, o := examplePlay(t, "")
	for _, f := range Run(in, o).Findings {
		t.Errorf("%+v", f)
	}
	in, o = examplePlay(t, "-- history/1.0.0/metadata/annotations.yaml.patch --\nannotations: {}\n-- images --\n"+
		"registry.example.com/echo/operator@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 "+
		"linux/amd64,linux/arm64\n")
	for _, f := range Run(in, o).Findings {
		t.Errorf("with history and images: %+v", f)
	}
}

// Rules must not change bundles, because bundles are shared. Some of the validators that they call change their input.
func TestRulesChangeNothing(t *testing.T) {
	state := func(b *bundles.Bundle) string {
		manifests, err := b.Manifests()
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal([]any{manifests, b.CSV, b.CRDs, b.Annotations, b.Channels, b.Dependencies,
			b.Properties})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, rule := range Rules() {
		in, o := examplePlay(t, rule.Bad)
		all := append([]*bundles.Bundle{in.Bundle}, in.History...)
		var before []string
		for _, b := range all {
			before = append(before, state(b))
		}
		Run(in, o)
		for i, b := range all {
			if after := state(b); after != before[i] {
				t.Errorf("%s: %s was changed:\n%s\n%s", rule.ID, b.Name, before[i], after)
			}
		}
	}
}
