// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/bundletest"
)

// realHistory reads a real operator: its newest version, and those before it.
func realHistory(t testing.TB, operator string, versions ...string) Input {
	t.Helper()
	all := bundletest.ReadAll(t, operator, versions...)
	last := len(all) - 1
	return Input{Bundle: all[last], History: all[:last], Predecessor: FindPredecessor(all[last], all[:last])}
}

// Rules that use the whole history, with the largest real operator.
func BenchmarkCRDHistory(b *testing.B) {
	in := realHistory(b, "grafana-operator", "5.6.3", "5.9.2")
	for b.Loop() {
		for _, rule := range listCRDHistoryRules() {
			rule.Check(&in)
		}
	}
}

// The changes of a real operator between two fix releases.
func TestRealHistory(t *testing.T) {
	in := realHistory(t, "grafana-operator", "5.6.3", "5.9.2")
	findings := Run(in, Options{Now: today}).Findings
	for _, want := range []string{
		"field .spec.deployment.spec.template.spec.hostAliases[*].ip of v1beta1 is required now and has no default " +
			"(published in 5.6.3)",
		"field .spec.resyncPeriod of v1beta1 allows less",
	} {
		found := 0
		for _, f := range findings {
			if strings.HasPrefix(f.Message, want) {
				found++
				if f.Line < 2 || f.File == "" {
					t.Errorf("without a place: %+v", f)
				}
			}
		}
		if found == 0 {
			t.Errorf("not found: %s", want)
		}
	}
	seen := map[string]bool{}
	for _, f := range findings {
		key := fmt.Sprint(f.Rule, f.File, f.Path, f.Message)
		if seen[key] {
			t.Errorf("said twice: %+v", f)
		}
		seen[key] = true
	}
}

// No rule reports new optional fields.
func TestAddedFieldsAreNotReported(t *testing.T) {
	text := ""
	for i, field := range []string{
		"{type: string}", "{type: object, required: [a], properties: {a: {type: string}}}",
		"{type: array, maxItems: 3, items: {type: integer}}",
		"{type: object, additionalProperties: {type: string}}", "{x-kubernetes-int-or-string: true}",
	} {
		text += fmt.Sprintf("              added%d: %s\n", i, field)
		in, o := examplePlay(t,
			"-- history/1.0.0/metadata/annotations.yaml.patch --\nannotations: {}\n-- "+
				"manifests/echoes.example.com.yaml.patch --\n"+
				"spec:\n  versions:\n  - name: v1\n    schema:\n      openAPIV3Schema:\n        properties:\n"+
				"          "+
				"spec:\n            properties:\n"+text)
		for _, f := range Run(in, o).Findings {
			t.Errorf("with %s: %+v", field, f)
		}
	}
}

// Several rules share a result, and must not use the result of another bundle.
func TestRemember(t *testing.T) {
	calls := 0
	count := cacheResult(func(*Input) int { calls++; return calls })
	a, b := &bundles.Bundle{}, &bundles.Bundle{}
	for i, step := range []struct {
		in   Input
		want int
	}{
		{Input{Bundle: a}, 1}, {Input{Bundle: a}, 1}, {Input{Bundle: b}, 2},
		{Input{Bundle: b, History: []*bundles.Bundle{a}}, 3},
		{Input{Bundle: b, History: []*bundles.Bundle{a}}, 3}, {Input{Bundle: a}, 4},
	} {
		if got := count(&step.in); got != step.want {
			t.Errorf("step %d: found was that of call %d, want %d", i, got, step.want)
		}
	}
}

// A cluster cannot upgrade from a version that is newer than the bundle.
func TestFixOfAnOldVersion(t *testing.T) {
	in, o := examplePlay(t,
		"-- history/2.0.0/manifests/echoes.example.com.yaml.patch --\nspec:\n  versions:\n  - name: v1\n    schema:\n"+
			"      openAPIV3Schema:\n        properties:\n          spec:\n            properties:\n              "+
			"volume: {type: integer}\n")
	for _, f := range Run(in, o).Findings {
		if strings.HasPrefix(f.Rule, "crd-") {
			t.Errorf("%+v", f)
		}
	}
}

// The pattern of quantities in many fields is one finding, and not an error, because no other value could be decoded.
func TestQuantities(t *testing.T) {
	const crd = "manifests/echoes.example.com.yaml.patch --\nspec:\n  versions:\n  - name: v1\n    schema:\n      " +
		"openAPIV3Schema:\n        properties:\n          spec:\n            properties:\n"
	field := func(name, pattern string) string {
		return "              " + name + ": {anyOf: [{type: integer}, {type: string}], " +
			"x-kubernetes-int-or-string: true" + pattern + "}\n"
	}
	const pattern = `, pattern: '^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|` +
		`([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$'`
	text := "-- history/1.0.0/" + crd + field("cpu", "") + field("memory", "") +
		"-- " + crd + field("cpu", pattern) + field("memory", pattern)
	want := []string{"warning: field .spec.cpu of v1 allows less: it must be a quantity, such as 500m or 1Gi, and so " +
		"must 1 other (published in 1.0.0)"}
	if diff := cmp.Diff(want, messages(t, "crd-narrowed-format", text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The API server does not have one schema for all versions: without a webhook, an object of one version must be valid
// in all other versions.
func TestVersionsThatValidateDifferently(t *testing.T) {
	const field = "              level: {type: string"
	// versions are two of one kind, of which the second one is stored.
	versions := func(in string, first, second string) string {
		one := func(name, storage, schema string) string {
			return "  - name: " + name + "\n    served: true\n    storage: " + storage +
				"\n    subresources: {status: {}}\n    schema:\n      openAPIV3Schema:\n        type: object\n" +
				"        properties:\n" + schema
		}
		return "-- " + in + "manifests/kites.yaml --\napiVersion: apiextensions.k8s.io/v1\n" +
			"kind: CustomResourceDefinition\nmetadata: {name: kites.example.com}\nspec:\n  group: example.com\n" +
			"  scope: Namespaced\n  names: {kind: Kite, plural: kites}\n  versions:\n" +
			one("v1", "false", first) + one("v2", "true", second)
	}
	spec := func(required, rest string) string {
		return "          spec:\n            type: object\n" + required +
			"            properties:\n" + field + rest + "}\n"
	}
	status := func(rest string) string {
		return "          status:\n            type: object\n            properties:\n" + field + rest + "}\n"
	}
	const required = "            required: [level]\n"
	const requiredInV2 = "error: v2 refuses what v1 allows: .spec.level is required"
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"alike":    {versions("", spec(required, ""), spec(required, "")), nil},
		"required": {versions("", spec("", ""), spec(required, "")), []string{requiredInV2}},
		"the other way": {versions("", spec(required, ""), spec("", "")), []string{"error: v1 refuses what v2 allows: " +
			".spec.level is required"}},
		"one upgrade later": {versions("history/1.0.0/", spec("", ""), spec(required, "")) +
			versions("", spec("", ""), spec(required, "")), []string{requiredInV2}},
		"values and lengths": {versions("", spec("", ", enum: [a, b]"), spec("", ", maxLength: 3")), []string{
			"error: v1 refuses what v2 allows: .spec.level allows fewer values",
			"error: v2 refuses what v1 allows: .spec.level allows a smaller range"}},
		"the status": {versions("", status(""), status(", enum: [a]")),
			[]string{"warning: v2 refuses what v1 allows: .status.level allows fewer values"}},
		"a format": {versions("", spec("", ""), spec("", ", format: email")),
			[]string{"warning: v2 refuses what v1 allows: .spec.level has another pattern or format"}},
		"converted": {strings.Replace(versions("", spec("", ""), spec(required, "")), "  scope:",
			"  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1]}}\n  scope:", 1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, messages(t, "crd-no-conversion", tc.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The operator can write the status again, so changes of the status are warnings.
func TestChangesOfTheStatus(t *testing.T) {
	const definition = "manifests/echoes.example.com.yaml.patch --\nspec:\n  versions:\n  - name: v1\n    schema:\n" +
		"      openAPIV3Schema:\n        properties:\n"
	change := func(field, before, after string) string {
		in := func(schema string) string {
			if schema == "" {
				return "          " + field + ": {properties: {other: {type: string}}}\n"
			}
			return "          " + field + ": {properties: {phase: " + schema + "}}\n"
		}
		return "-- history/1.0.0/" + definition + in(before) + "-- " + definition + in(after)
	}
	for rule, schemas := range map[string][2]string{
		"crd-removed-field":   {"{type: string}", ""},
		"crd-narrowed-enum":   {"{type: string}", "{type: string, enum: [Ready]}"},
		"crd-narrowed-range":  {"{type: string}", "{type: string, maxLength: 5}"},
		"crd-narrowed-format": {"{type: string}", "{type: string, pattern: a}"},
		"crd-new-required-field": {"{type: object, properties: {a: {type: string}}}",
			"{type: object, properties: {a: {type: string}}, required: [a]}"},
	} {
		for field, severity := range map[string]Severity{"status": Warning, "spec": Error, "statusCheck": Error} {
			found := messages(t, rule, change(field, schemas[0], schemas[1]))
			if len(found) != 1 || !strings.HasPrefix(found[0], string(severity)+": ") {
				t.Errorf("%s of .%s: got %q, want one finding of severity %s", rule, field, found, severity)
			}
		}
	}
}
