// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/crd"
)

// define makes a definition with one version v1, of which the YAML is the schema of .spec.
func define(t testing.TB, spec string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var schema apiextensionsv1.JSONSchemaProps
	if err := yaml.UnmarshalStrict([]byte(spec), &schema); err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
	return withSpec(schema)
}

func withSpec(schema apiextensionsv1.JSONSchemaProps) *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{}
	d.Name = "echoes.example.com"
	d.Spec.Scope = apiextensionsv1.NamespaceScoped
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: "v1", Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": schema},
		}},
	}}
	return d
}

func texts(changes []crd.Change) []string {
	var out []string
	for _, c := range changes {
		doubt := ""
		if c.Doubtful {
			doubt = "?"
		}
		out = append(out, fmt.Sprintf("%s%s %s %s", c.Kind, doubt, c.Field, c.Detail))
	}
	return out
}

// quantity is what controller-gen writes for a resource.Quantity.
const quantity = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|` +
	`([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`

// there are the changes of an upgrade, back are those of a rollback.
func TestCompareSchemas(t *testing.T) {
	for name, tc := range map[string]struct {
		older, newer string
		there, back  []string
	}{
		"nothing": {older: `{type: string}`, newer: `{type: string, description: Other words.}`},
		"field": {
			older: `{type: object, properties: {a: {type: string}}}`,
			newer: `{type: object, properties: {a: {type: string}, b: {type: object, properties: {c: {type: ` +
				`string}}}}}`,
			back: []string{"RemovedField .spec.b "},
		},
		"field of a list of a map": {
			older: `{type: array, items: {type: object, additionalProperties: {type: object, properties: {a: ` +
				`{type: string}}}}}`,
			newer: `{type: array, items: {type: object, additionalProperties: {type: object, properties: {b: ` +
				`{type: string}}}}}`,
			there: []string{"RemovedField .spec[*][*].a "}, back: []string{"RemovedField .spec[*][*].b "},
		},
		"field of an object that keeps everything": {
			older: `{type: object, properties: {a: {type: string}}}`,
			newer: `{type: object, x-kubernetes-preserve-unknown-fields: true}`,
			back:  []string{"RemovedField .spec.* "},
		},
		"map instead of fields": {
			older: `{type: object, properties: {a: {type: string}}}`,
			newer: `{type: object, additionalProperties: {type: string}}`,
			back:  []string{"RemovedField .spec[*] "},
		},
		"map of anything": {
			older: `{type: object, additionalProperties: true}`,
			newer: `{type: object, additionalProperties: {type: string}}`,
			there: []string{"RemovedField .spec.* "},
		},
		"closed object": {older: `{type: object, additionalProperties: false}`, newer: `{type: object}`},
		"type": {
			older: `{type: object, properties: {a: {type: integer, maximum: 2}}}`,
			newer: `{type: object, properties: {a: {type: string, maxLength: 2}}}`,
			there: []string{"ChangedType .spec.a integer becomes string"},
			back:  []string{"ChangedType .spec.a string becomes integer"},
		},
		"integer or string": {
			older: `{type: integer}`,
			newer: `{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}`,
			back:  []string{"ChangedType .spec integer or string becomes integer"},
		},
		"number": {older: `{type: integer}`, newer: `{type: number}`,
			back: []string{"ChangedType .spec number becomes integer"}},
		"any type": {
			older: `{type: object, properties: {a: {type: string}}}`,
			newer: `{x-kubernetes-preserve-unknown-fields: true}`,
			back:  []string{"ChangedType .spec any becomes object"},
		},
		"enum": {
			older: `{type: string, enum: [a, b, c]}`, newer: `{type: string, enum: [c, d]}`,
			there: []string{`NarrowedEnum .spec no longer "a", "b"`},
			back:  []string{`NarrowedEnum .spec no longer "d"`},
		},
		"enum where there was none": {
			older: `{type: string}`, newer: `{type: string, enum: [b, a]}`,
			there: []string{`NarrowedEnum .spec only "a", "b"`},
		},
		"range": {
			older: `{type: integer, minimum: 1, maximum: 10}`, newer: `{type: integer, minimum: 2, maximum: 20}`,
			there: []string{"NarrowedRange .spec minimum was 1 and is 2"},
			back:  []string{"NarrowedRange .spec maximum was 20 and is 10"},
		},
		"two bounds": {
			older: `{type: integer}`, newer: `{type: integer, minimum: 1, maximum: 2, multipleOf: 2}`,
			there: []string{
				"NarrowedRange .spec minimum was none and is 1", "NarrowedRange .spec maximum was none and is 2",
				"NarrowedRange .spec multipleOf was none and is 2",
			},
		},
		"open range": {
			older: `{type: integer, minimum: 1, maximum: 5}`,
			newer: `{type: integer, minimum: 1, exclusiveMinimum: true, maximum: 6, exclusiveMaximum: true}`,
			there: []string{"NarrowedRange .spec the minimum 1 is exclusive"},
			back:  []string{"NarrowedRange .spec maximum was 6 and is 5"},
		},
		"lengths": {
			older: `{type: object, properties: {a: {type: string, maxLength: 5}, b: {type: array, items: {type: ` +
				`string}, minItems: 1}}}`,
			newer: `{type: object, properties: {a: {type: string, maxLength: 4}, b: {type: array, items: {type: ` +
				`string, minLength: 1}, minItems: 2}}}`,
			there: []string{
				"NarrowedRange .spec.a maxLength was 5 and is 4", "NarrowedRange .spec.b minItems was 1 and is 2",
				"NarrowedRange .spec.b[*] minLength was none and is 1",
			},
		},
		"pattern": {
			older: `{type: string, pattern: a}`, newer: `{type: string, pattern: b}`,
			there: []string{`NarrowedFormat? .spec pattern was "a" and is "b"`},
			back:  []string{`NarrowedFormat? .spec pattern was "b" and is "a"`},
		},
		// Newer generators write it for the same Go type.
		"pattern of a quantity where there was none": {
			older: `{anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true}`,
			newer: `{anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true, pattern: '` +
				quantity + `'}`,
			there: []string{"NarrowedFormat? .spec it must be a quantity, such as 500m or 1Gi"},
		},
		"string that becomes a quantity": {
			older: `{type: string}`,
			newer: `{anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true, pattern: '` +
				quantity + `'}`,
			there: []string{"NarrowedFormat? .spec it must be a quantity, such as 500m or 1Gi"},
			back:  []string{"ChangedType .spec integer or string becomes string"},
		},
		"pattern where there was none": {
			older: `{type: string}`, newer: `{type: string, pattern: a}`,
			there: []string{`NarrowedFormat .spec pattern was none and is "a"`},
		},
		"formats": {
			older: `{type: object, properties: {a: {type: integer, format: int32}, b: {type: string}, c: {type: ` +
				`string, nullable: true}}}`,
			newer: `{type: object, properties: {a: {type: integer, format: int64}, b: {type: string, format: ` +
				`date-time}, c: {type: string}}}`,
			there: []string{`NarrowedFormat? .spec.b format was none and is "date-time"`,
				"NarrowedFormat? .spec.c it was nullable"},
			back: []string{`NarrowedFormat? .spec.a format was "int64" and is "int32"`},
		},
		"list type": {
			older: `{type: array, items: {type: string}}`,
			newer: `{type: array, x-kubernetes-list-type: set, items: {type: string}}`,
			there: []string{"NarrowedFormat? .spec the list becomes a set, which refuses duplicates"},
		},
		"required": {
			older: `{type: object, properties: {a: {type: string}, b: {type: string}}}`,
			newer: `{type: object, required: [a, b], properties: {a: {type: string}, b: {type: string, default: x}}}`,
			there: []string{"NewRequired .spec.a ", `AddedDefault .spec.b "x"`},
			back:  []string{`ChangedDefault .spec.b it was "x" and was removed`},
		},
		"a new required field in a new object": {
			older: `{type: object, properties: {}}`,
			newer: `{type: object, properties: {a: {type: object, required: [b], properties: {b: {type: string}}}}}`,
			back:  []string{"RemovedField .spec.a "},
		},
		"default": {
			older: `{type: integer, default: 1}`, newer: `{type: integer, default: 2}`,
			there: []string{"ChangedDefault .spec it was 1 and is 2"},
			back:  []string{"ChangedDefault .spec it was 2 and is 1"},
		},
		"rule": {
			older: `{type: integer, x-kubernetes-validations: [{rule: self > 1}]}`,
			newer: `{type: integer, x-kubernetes-validations: [{rule: self > 1, message: more}, {rule: self > 2},` +
				` {rule: self >= oldSelf}]}`,
			there: []string{"NewRule .spec self > 2", "NewRule? .spec self >= oldSelf"},
		},
		"one of": {
			older: `{type: object, properties: {a: {type: string}}}`,
			newer: `{type: object, properties: {a: {type: string}}, oneOf: [{required: [a]}], not: {required: [b]}}`,
			there: []string{"Other .spec oneOf changed", "Other .spec not changed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			older, newer := define(t, tc.older), define(t, tc.newer)
			if diff := cmp.Diff(tc.there, texts(crd.Compare(older, newer))); diff != "" {
				t.Errorf("there (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.back, texts(crd.Compare(newer, older))); diff != "" {
				t.Errorf("back (-want +got):\n%s", diff)
			}
		})
	}
}

// versions makes a definition of versions without schemas, such as "v1 stored", "v2 unserved" and "v3 deprecated".
func versions(flags ...string) *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{}
	d.Name = "echoes.example.com"
	d.Spec.Scope = apiextensionsv1.NamespaceScoped
	for _, f := range flags {
		name, _, _ := strings.Cut(f, " ")
		d.Spec.Versions = append(d.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Storage: strings.Contains(f, "stored"), Served: !strings.Contains(f, "unserved"),
			Deprecated: strings.Contains(f, "deprecated"),
		})
	}
	return d
}

func TestCompareVersions(t *testing.T) {
	for name, tc := range map[string]struct {
		older, newer *apiextensionsv1.CustomResourceDefinition
		want         []string
	}{
		"the same": {older: versions("v1 stored"), newer: versions("v1 stored")},
		"one more": {older: versions("v1 stored"), newer: versions("v1 stored", "v2")},
		"gone, stored": {older: versions("v1 stored", "v2"), newer: versions("v2 stored"),
			want: []string{"version v1, which objects may be stored as, was removed",
				"objects are stored as v2 now: it was v1"}},
		"gone, served": {older: versions("v1", "v2 stored"), newer: versions("v2 stored"),
			want: []string{"version v1 was removed"}},
		"gone, of use to nobody": {older: versions("v1 unserved", "v2 stored"), newer: versions("v2 stored")},
		"not served": {older: versions("v1", "v2 stored"), newer: versions("v1 unserved", "v2 stored"),
			want: []string{"version v1 is no longer served"}},
		"stored as another": {older: versions("v1 stored", "v2"), newer: versions("v1", "v2 stored"),
			want: []string{"objects are stored as v2 now: it was v1"}},
		"nothing in it": {older: versions(), newer: versions()},
		"everything gone from it": {older: versions("v1 stored"), newer: versions(),
			want: []string{"version v1, which objects may be stored as, was removed"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range crd.Compare(tc.older, tc.newer) {
				got = append(got, c.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	warned := crd.Compare(versions("v1 deprecated", "v2 stored"), versions("v1 unserved", "v2 stored"))
	if len(warned) != 1 || !warned[0].Doubtful {
		t.Errorf("clients that were warned: %+v", warned)
	}
}

// A comparison of the last two versions does not show that the first version stored v1alpha1, nor that it had a field.
func TestBreaksOfTheWholeHistory(t *testing.T) {
	first, second, third := versions("v1alpha1 stored", "v1"), versions("v1alpha1", "v1 stored"), versions("v1 stored")
	var got []string
	for _, b := range crd.ListBreaks([]crd.Published{{OperatorVersion: "1.0.0", Definition: first},
		{OperatorVersion: "1.1.0", Definition: second}},
		third) {
		got = append(got, fmt.Sprintf("%s %v", b, b.Versions))
	}
	want := []string{"version v1alpha1, which objects may be stored as, was removed [1.0.0]",
		"objects are stored as v1 now: it was v1alpha1 [1.0.0]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The same change in several versions is one Break, with all affected versions and the newest detail.
func TestBreaksAreMerged(t *testing.T) {
	history := []crd.Published{
		{OperatorVersion: "1.0.0", Definition: define(t,
			`{type: object, properties: {a: {type: integer, maximum: 30, minimum: 1}, b: {type: string}}}`)},
		{OperatorVersion: "1.1.0", Definition: define(t,
			`{type: object, properties: {a: {type: integer, maximum: 20}, b: {type: string}}}`)},
		{OperatorVersion: "1.2.0",
			Definition: define(t, `{type: object, properties: {a: {type: integer, maximum: 10}}}`)},
	}
	var got []string
	for _, b := range crd.ListBreaks(history, define(t,
		`{type: object, properties: {a: {type: integer, maximum: 10, minimum: 2}}}`)) {
		got = append(got, fmt.Sprintf("%s %s %s %v", b.Kind, b.Field, b.Detail, b.Versions))
	}
	want := []string{
		"NarrowedRange .spec.a minimum was none and is 2 [1.0.0 1.1.0 1.2.0]",
		"NarrowedRange .spec.a maximum was 20 and is 10 [1.0.0 1.1.0]",
		"RemovedField .spec.b  [1.0.0 1.1.0]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

const removedAPI = `
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: echoes.example.com}
spec:
  group: example.com
  names: {kind: Echo, plural: echoes}
  version: v1
  %s
`

// An operator that moved its definitions to v1 may have users of older versions.
func TestFindInTheRemovedAPI(t *testing.T) {
	newer := define(t, `{type: object, properties: {a: {type: string}}}`)
	newer.Spec.Names.Kind = "Echo"
	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"no schema": {"", []string{"RemovedField .* "}},
		"a schema, and unknown fields are kept": {
			"validation: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {b: {type: " +
				"string}}}}}}",
			[]string{"RemovedField .* ", "RemovedField .spec.b "},
		},
		"a schema": {
			"preserveUnknownFields: false\n  validation: {openAPIV3Schema: {type: object, properties: {spec: {type: " +
				"object, properties: {b: {type: string}}}}}}",
			[]string{"RemovedField .spec.b "},
		},
		"several versions": {
			"preserveUnknownFields: false\n  versions: [{name: v1, served: true, storage: false}, {name: v0, served: " +
				"true, storage: true}]",
			[]string{"RemovedStored  ", "StorageMoved  it was v0"},
		},
		"another scope": {"scope: Cluster\n  preserveUnknownFields: false",
			[]string{"ChangedIdentity  the scope changes from Cluster to Namespaced"}},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := bundles.FromManifests([][]byte{
				fmt.Appendf(nil, removedAPI, tc.spec),
				[]byte("{apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion, metadata: {name: " +
					"echo.v1.0.0}, spec: {version: 1.0.0}}"),
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range crd.ListBreaks(crd.FindPublished([]*bundles.Bundle{b}, newer.Name), newer) {
				got = append(got, texts([]crd.Change{c.Change})...)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDivergences(t *testing.T) {
	d := define(t, `{type: object, properties: {a: {type: string}, b: {type: string}}}`)
	d.Spec.Versions = append(d.Spec.Versions,
		*define(t, `{type: object, properties: {a: {type: string, maxLength: 3}, b: {type: `+
			`string}}}`).Spec.Versions[0].DeepCopy(),
		*define(t, `{type: object, properties: {a: {type: integer}, c: {type: string}}}`).Spec.Versions[0].DeepCopy(),
		*define(t, `{type: object}`).Spec.Versions[0].DeepCopy(),
	)
	for i, name := range []string{"v1", "same", "other", "hidden"} {
		d.Spec.Versions[i].Name, d.Spec.Versions[i].Storage, d.Spec.Versions[i].Served = name, i == 0, name != "hidden"
	}
	want := []crd.Divergence{{Version: "other", Storage: "v1", Index: 2,
		Fields: []string{".spec.a", ".spec.b", ".spec.c"}}}
	if diff := cmp.Diff(want, crd.ListDivergences(d)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRefusals(t *testing.T) {
	type pair struct {
		version, of, fields string
		doubtful            bool
	}
	const plain = `{type: object, properties: {a: {type: string}, size: {type: integer}}}`
	for name, tc := range map[string]struct {
		storage, other string
		unserved       bool
		stored         []string
		want           []pair
	}{
		"the same": {storage: plain, other: plain},
		"required": {storage: `{type: object, required: [a], properties: {a: {type: string}, size: {type: integer}}}`,
			other: plain, want: []pair{{"v1", "v2", "NewRequired .spec.a", false}}},
		"required in the other": {storage: plain,
			other: `{type: object, required: [a], properties: {a: {type: string}, size: {type: integer}}}`,
			want:  []pair{{"v2", "v1", "NewRequired .spec.a", false}}},
		"required, with a default": {storage: plain,
			other: `{type: object, required: [a], properties: {a: {type: string, default: x}, size: {type: integer}}}`},
		"required, and not in the other": {storage: plain, other: `{type: object, properties: {a: {type: string}}}`},
		"an enumeration and a range": {
			storage: `{type: object, properties: {a: {type: string, enum: [x]}, size: {type: integer}}}`,
			other:   `{type: object, properties: {a: {type: string}, size: {type: integer, maximum: 3}}}`,
			want: []pair{{"v1", "v2", "NarrowedEnum .spec.a", false},
				{"v2", "v1", "NarrowedRange .spec.size", false}}},
		"patterns": {storage: `{type: object, properties: {a: {type: string, pattern: a}}}`,
			other: `{type: object, properties: {a: {type: string, pattern: b}}}`,
			want: []pair{{"v1", "v2", "NarrowedFormat .spec.a", false},
				{"v2", "v1", "NarrowedFormat .spec.a", false}}},
		"formats": {storage: plain, other: `{type: object, properties: {a: {type: string, format: email}, size: {type: ` +
			`integer}}}`, want: []pair{{"v2", "v1", "NarrowedFormat .spec.a", true}}},
		"not served": {storage: `{type: object, required: [a], properties: {a: {type: string}}}`,
			other: plain, unserved: true},
		"not served any more": {storage: `{type: object, required: [a], properties: {a: {type: string}}}`,
			other: `{type: object, properties: {a: {type: string, maxLength: 1}}}`, unserved: true,
			stored: []string{"v2"}, want: []pair{{"v1", "v2", "NewRequired .spec.a", false}}},
	} {
		t.Run(name, func(t *testing.T) {
			d := define(t, tc.storage)
			d.Spec.Versions = append(d.Spec.Versions, *define(t, tc.other).Spec.Versions[0].DeepCopy())
			for i, name := range []string{"v1", "v2"} {
				d.Spec.Versions[i].Name, d.Spec.Versions[i].Storage = name, i == 0
				d.Spec.Versions[i].Served = i == 0 || !tc.unserved
			}
			var got []pair
			for _, r := range crd.ListRefusals(d, tc.stored...) {
				for _, c := range r.Changes {
					got = append(got, pair{r.Version, r.ValidVersion, string(c.Kind) + " " + c.Field, c.Doubtful})
				}
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(pair{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
