// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollback_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/bundletest"
	"github.com/bellwether-dev/bellwether/bundles/crd"
	"github.com/bellwether-dev/bellwether/bundles/rollback"
	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
)

// bundle makes a bundle of a version with definitions; an empty definition is none.
func bundle(t testing.TB, version, webhooks string, definitions ...string) *bundles.Bundle {
	t.Helper()
	manifests := [][]byte{fmt.Appendf(nil, `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: echo.v%s}
spec:
  version: %s
  webhookdefinitions: %s
`, version, version, webhooks)}
	for _, several := range definitions {
		for d := range strings.SplitSeq(several, "\n---") {
			manifests = append(manifests, []byte(d))
		}
	}
	b, err := bundles.FromManifests(manifests, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// definition makes one of echoes.example.com.
func definition(versions ...string) string {
	return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: echoes.example.com}
spec:
  group: example.com
  names: {kind: Echo, plural: echoes}
  scope: Namespaced
  versions:` + strings.Join(versions, "")
}

const conversion = `[{type: ConversionWebhook, generateName: c.example.com, conversionCRDs: [echoes.example.com]}]`

// version makes an API version; fields are those of spec, as flow-style YAML. Flags are stored, unserved.
func version(name, flags, fields string) string {
	return fmt.Sprintf(`
  - name: %s
    served: %t
    storage: %t
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            %s
`, name, !strings.Contains(flags, "unserved"), strings.Contains(flags, "stored"), fields)
}

const (
	plain = `properties: {level: {type: string, enum: [low, high]}, size: {type: integer, maximum: 10}}`
	added = `properties: {level: {type: string, enum: [low, high]}, size: {type: integer, maximum: 10}, ` +
		`colour: {type: string}}`
	removed  = `properties: {level: {type: string, enum: [low, high]}}`
	widened  = `properties: {level: {type: string, enum: [low, high, loud]}, size: {type: integer, maximum: 10}}`
	narrowed = `properties: {level: {type: string, enum: [low, high]}, size: {type: integer, maximum: 5}}`
	both     = `properties: {level: {type: string, enum: [low, high]}, size: {type: integer, maximum: 5}, ` +
		`colour: {type: string}}`
	text  = `properties: {level: {type: string, enum: [low, high]}, size: {type: string}}`
	union = `properties: {level: {type: string, enum: [low, high]}, size: {x-kubernetes-int-or-string: true}}`
)

const (
	staysStored = "echoes.example.com stays as in echo.v1.1.0: echo.v1.1.0 stores echoes.example.com as v2, and its " +
		"versions have the same fields, so that the older operator can use those that it knows"
	storedAsUnknown = "echo.v1.1.0 stores echoes.example.com as v2, which echo.v1.0.0 does not know"
)

func TestClassify(t *testing.T) {
	type release struct{ webhooks, definition string }
	one := func(fields string) release { return release{definition: definition(version("v1", "stored", fields))} }
	for name, tc := range map[string]struct {
		from, to release
		between  string
		class    bundles.RollbackClass
		reason   string
	}{
		"the same": {
			from: one(plain), to: one(plain), class: bundles.RollbackInPlace,
			reason: "both versions define the same custom resources",
		},
		"a new field is left alone": {
			from: one(plain), to: one(added), class: bundles.RollbackInPlace,
			reason: "echoes.example.com stays as in echo.v1.1.0: field .spec.colour of v1 is new, and the older " +
				"operator leaves it alone",
		},
		"a field is gone": {
			from: one(plain), to: one(removed), class: bundles.RollbackNeedsBackup,
			reason: "in echoes.example.com, field .spec.size of v1 was removed: stored values are dropped",
		},
		"a value that the older one does not know": {
			from: one(plain), to: one(widened), class: bundles.RollbackNeedsBackup,
			reason: `in echoes.example.com, echo.v1.1.0 accepts what echo.v1.0.0 does not: going back, field ` +
				`.spec.level of v1 allows fewer values: no longer "loud"`,
		},
		"narrower is put back": {
			from: one(plain), to: one(narrowed), class: bundles.RollbackInPlace,
			reason: "echoes.example.com is put back as in echo.v1.0.0, which accepts all that may be stored: field " +
				".spec.size of v1 allows a smaller range: maximum was 10 and is 5",
		},
		"neither put back nor kept": {
			from: one(plain), to: one(both), class: bundles.RollbackNeedsBackup,
			reason: "echoes.example.com can neither be put back, since .spec.colour of v1 would be dropped, nor " +
				"kept: field .spec.size of v1 allows a smaller range: maximum was 10 and is 5",
		},
		"another type": {
			from: one(plain), to: one(text), class: bundles.RollbackOneWay,
			reason: "in echoes.example.com, field .spec.size of v1 changes its type: integer becomes string, so that " +
				"neither version's objects suit the other",
		},
		"a wider type": {
			from: one(plain), to: one(union), class: bundles.RollbackNeedsBackup,
			reason: "in echoes.example.com, echo.v1.1.0 accepts what echo.v1.0.0 does not: going back, field " +
				".spec.size of v1 changes its type: integer or string becomes integer",
		},
		"stored as a version that the older one lacks": {
			from:   one(plain),
			to:     release{definition: definition(version("v1", "", plain), version("v2", "stored", plain))},
			class:  bundles.RollbackInPlace,
			reason: staysStored,
		},
		"stored as a version that the older one lacks, with a new field in both": {
			from:   one(plain),
			to:     release{definition: definition(version("v1", "", added), version("v2", "stored", added))},
			class:  bundles.RollbackInPlace,
			reason: staysStored,
		},
		"stored as a version that the older one lacks, with other fields": {
			from:  one(plain),
			to:    release{definition: definition(version("v1", "", plain), version("v2", "stored", removed))},
			class: bundles.RollbackOneWay, reason: storedAsUnknown,
		},
		"stored as a version that the older one lacks, by a webhook": {
			from: one(plain),
			to: release{conversion, definition(version("v1", "", plain), version("v2", "stored",
				plain))},
			class: bundles.RollbackOneWay, reason: storedAsUnknown,
		},
		"stored as a version that the older one lacks, and its own is not served": {
			from:  one(plain),
			to:    release{definition: definition(version("v1", "unserved", plain), version("v2", "stored", plain))},
			class: bundles.RollbackOneWay, reason: storedAsUnknown,
		},
		"stored as a version that the older one lacks, which accepts more": {
			from:  one(plain),
			to:    release{definition: definition(version("v1", "", widened), version("v2", "stored", widened))},
			class: bundles.RollbackOneWay, reason: storedAsUnknown,
		},
		"stored as a version that lacks a field": {
			from:  release{definition: definition(version("v1", "stored", plain), version("v2", "", removed))},
			to:    release{definition: definition(version("v1", "", plain), version("v2", "stored", removed))},
			class: bundles.RollbackNeedsBackup,
			reason: "echo.v1.1.0 stores echoes.example.com as v2, which does not have field .spec.size of v1: its " +
				"content is dropped when an object is written",
		},
		"stored as a version that has one field more": {
			from:  release{definition: definition(version("v1", "stored", plain), version("v2", "", added))},
			to:    release{definition: definition(version("v1", "", plain), version("v2", "stored", added))},
			class: bundles.RollbackNeedsBackup,
			reason: "echo.v1.0.0 stores echoes.example.com as v1, which does not have field .spec.colour of v2: its " +
				"content is dropped when an object is written",
		},
		"stored by a version between as one that lacks a field": {
			from:    release{definition: definition(version("v1", "stored", plain), version("v2", "", removed))},
			to:      release{definition: definition(version("v1", "stored", plain), version("v2", "", removed))},
			between: definition(version("v1", "", plain), version("v2", "stored", removed)),
			class:   bundles.RollbackNeedsBackup,
			reason: "echo.v1.0.5 stores echoes.example.com as v2, which does not have field .spec.size of v1: its " +
				"content is dropped when an object is written",
		},
		"another storage version, with a webhook that both have": {
			from: release{conversion, definition(version("v1", "stored", plain), version("v2", "",
				removed))},
			to: release{conversion, definition(version("v1", "", plain), version("v2", "stored",
				removed))},
			class: bundles.RollbackInPlace, reason: "both versions define the same custom resources",
		},
		"a new version that nothing is stored as": {
			from:  one(plain),
			to:    release{definition: definition(version("v1", "stored", plain), version("v2", "", plain))},
			class: bundles.RollbackInPlace,
			reason: "echoes.example.com is put back as in echo.v1.0.0, which does not have version v2: no object is " +
				"stored as it",
		},
		"stored as a version that the older one has": {
			from:  release{definition: definition(version("v1", "stored", plain), version("v2", "", plain))},
			to:    release{definition: definition(version("v1", "", plain), version("v2", "stored", plain))},
			class: bundles.RollbackInPlace, reason: "both versions define the same custom resources",
		},
		"stored by a version between, as what neither has": {
			from: one(plain), to: one(plain),
			between: definition(version("v1", "", plain), version("v2", "stored", plain)),
			class:   bundles.RollbackInPlace, reason: "both versions define the same custom resources",
		},
		"a stored version is gone": {
			from:   release{definition: definition(version("v1", "stored", plain), version("v2", "", plain))},
			to:     release{definition: definition(version("v2", "stored", plain))},
			class:  bundles.RollbackOneWay,
			reason: "in echoes.example.com, version v1, which objects may be stored as, was removed",
		},
		"a version that nothing is stored as is gone": {
			from:  release{definition: definition(version("v1", "stored", plain), version("v2", "", plain))},
			to:    one(plain),
			class: bundles.RollbackInPlace,
			reason: "echoes.example.com is put back as in echo.v1.0.0, which accepts all that may be stored: " +
				"version v2 was removed",
		},
		"the older operator's version is not served, and there is a new field": {
			from: release{definition: definition(version("v1", "stored", plain), version("v2", "", plain))},
			to: release{definition: definition(version("v1", "stored unserved", added),
				version("v2", "", plain))},
			class: bundles.RollbackNeedsBackup,
			reason: "echoes.example.com can neither be put back, since .spec.colour of v1 would be dropped, nor " +
				"kept: version v1 is no longer served",
		},
		"a new conversion webhook": {
			from:  release{definition: definition(version("v1", "stored", plain), version("v2", "", plain))},
			to:    release{conversion, definition(version("v1", "stored", plain), version("v2", "", plain))},
			class: bundles.RollbackInPlace,
			reason: "echoes.example.com is put back as in echo.v1.0.0, without the conversion webhook: all objects " +
				"are stored as v1",
		},
		"a new version with a conversion webhook": {
			from:  one(plain),
			to:    release{conversion, definition(version("v1", "stored", plain), version("v2", "", removed))},
			class: bundles.RollbackInPlace,
			reason: "echoes.example.com is put back as in echo.v1.0.0, without the conversion webhook: all objects " +
				"are stored as v1",
		},
		"a new conversion webhook and another storage version": {
			from:   release{definition: definition(version("v1", "stored", plain), version("v2", "", plain))},
			to:     release{conversion, definition(version("v1", "", plain), version("v2", "stored", plain))},
			class:  bundles.RollbackOneWay,
			reason: "echo.v1.1.0 converts echoes.example.com by a webhook that echo.v1.0.0 does not have",
		},
		"a new conversion webhook and a new field": {
			from:  release{definition: definition(version("v1", "stored", plain), version("v2", "", plain))},
			to:    release{conversion, definition(version("v1", "stored", added), version("v2", "", added))},
			class: bundles.RollbackNeedsBackup,
			reason: "echoes.example.com can neither be put back, since .spec.colour of v1 would be dropped, nor " +
				"kept: echo.v1.0.0 does not have its conversion webhook",
		},
		"a conversion webhook is gone": {
			from:  release{conversion, definition(version("v1", "stored", plain), version("v2", "", plain))},
			to:    release{definition: definition(version("v1", "stored", plain), version("v2", "", plain))},
			class: bundles.RollbackNeedsBackup,
			reason: "echo.v1.0.0 converts echoes.example.com by a webhook, and what echo.v1.1.0 wrote never went " +
				"through it",
		},
		"a new field that the older conversion webhook drops": {
			from:  release{conversion, definition(version("v1", "stored", plain), version("v2", "", plain))},
			to:    release{conversion, definition(version("v1", "stored", added), version("v2", "", added))},
			class: bundles.RollbackNeedsBackup,
			reason: "in echoes.example.com, the conversion webhook of echo.v1.0.0 does not know field " +
				".spec.colour of v1",
		},
		"another scope": {
			from: one(plain), to: release{definition: strings.Replace(definition(version("v1", "stored", plain)),
				"Namespaced", "Cluster", 1)},
			class: bundles.RollbackOneWay,
			reason: "in echoes.example.com, the scope changes from Namespaced to Cluster, and the API server " +
				"refuses to change that back",
		},
		"the definition is gone": {
			from: one(plain),
			to: release{definition: strings.ReplaceAll(definition(version("v1", "stored", plain)), "echoes",
				"bells")},
			class: bundles.RollbackNeedsBackup,
			reason: "echoes.example.com is not in echo.v1.1.0, and what becomes of its objects meanwhile is not " +
				"certain",
		},
		"a new definition": {
			from: release{definition: strings.ReplaceAll(definition(version("v1", "stored", plain)), "echoes",
				"bells")},
			to: release{definition: strings.ReplaceAll(definition(version("v1", "stored", plain)), "echoes",
				"bells") + "\n---" + definition(version("v1", "stored", plain))},
			class: bundles.RollbackInPlace,
			reason: "echoes.example.com is new in echo.v1.1.0; its objects stay, and the older operator does not " +
				"look after them",
		},
	} {
		t.Run(name, func(t *testing.T) {
			from := bundle(t, "1.0.0", tc.from.webhooks+" ", tc.from.definition)
			to := bundle(t, "1.1.0", tc.to.webhooks+" ", tc.to.definition)
			history := []*bundles.Bundle{from, to, bundle(t, "1.2.0", "", definition(version("v9", "stored", text)))}
			if tc.between != "" {
				history = append(history, bundle(t, "1.0.5", "", tc.between))
			}
			want := bundles.Rollback{From: "echo.v1.0.0", Class: tc.class, Reason: tc.reason}
			if diff := cmp.Diff(want, rollback.Classify(from, to, history, nil)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			same := rollback.Classify(to, to, history, nil)
			if same.Class != bundles.RollbackInPlace {
				t.Errorf("a version cannot be taken back to itself: %+v", same)
			}
		})
	}
}

// The versions that a cluster reports override the versions that bundles may have stored.
func TestClassifyByWhatIsStored(t *testing.T) {
	only := definition(version("v1", "stored", plain))
	before := definition(version("v1", "stored", plain), version("v2", "", plain))
	after := definition(version("v1", "", plain), version("v2", "stored", plain))
	for name, tc := range map[string]struct {
		from, to string
		webhooks string
		stored   []string
		class    bundles.RollbackClass
		contains string
	}{
		"a newer version stored objects as v2 before": {from: only, to: before, stored: []string{"v1", "v2"},
			class: bundles.RollbackInPlace, contains: "stays"},
		"and a webhook converts it": {from: only, to: before, webhooks: conversion, stored: []string{"v1", "v2"},
			class:    bundles.RollbackOneWay,
			contains: "objects of echoes.example.com may be stored as v2, which echo.v1.0.0 does not know"},
		"nothing is stored as v2": {from: only, to: before, webhooks: conversion, stored: []string{"v1"},
			class: bundles.RollbackInPlace, contains: "put back"},
		"stored as v2 before and after": {from: only, to: after, stored: []string{"v1", "v2"},
			class: bundles.RollbackInPlace, contains: "stays"},
		"migrated": {from: only, to: after, stored: []string{"v2"},
			class: bundles.RollbackInPlace, contains: "stays"},
		"migrated to a version that the older one has": {from: before, to: after, stored: []string{"v2"},
			class: bundles.RollbackInPlace, contains: "the same"},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := bundle(t, "1.0.0", "", tc.from), bundle(t, "1.1.0", tc.webhooks, tc.to)
			got := rollback.Classify(from, to, nil, rollback.Stored{"echoes.example.com": tc.stored})
			if got.Class != tc.class || !strings.Contains(got.Reason, tc.contains) {
				t.Errorf("got %+v, want class %s and a reason with %q", got, tc.class, tc.contains)
			}
		})
	}
}

// Definitions that must stay are kept, also if another definition is put back.
func TestKept(t *testing.T) {
	bells := func(fields string) string {
		return strings.ReplaceAll(definition(version("v1", "stored", fields)), "echoes", "bells")
	}
	from := bundle(t, "1.0.0", "", definition(version("v1", "stored", plain)), bells(plain))
	for name, tc := range map[string]struct {
		echoes, bells string
		want          []string
	}{
		"nothing changes":         {plain, plain, nil},
		"one more field":          {added, plain, []string{"echoes.example.com"}},
		"one more, one put back":  {narrowed, added, []string{"bells.example.com"}},
		"neither is good for any": {both, widened, nil},
	} {
		t.Run(name, func(t *testing.T) {
			to := bundle(t, "1.1.0", "", definition(version("v1", "stored", tc.echoes)), bells(tc.bells))
			if diff := cmp.Diff(tc.want, rollback.ListKeptDefinitions(from, to, nil, nil)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Definitions of the removed API are compared after the same conversion as in the API server.
func TestClassifyRemovedAPI(t *testing.T) {
	old := strings.Replace(definition(version("v1", "stored", plain)), "apiextensions.k8s.io/v1",
		"apiextensions.k8s.io/v1beta1", 1)
	from := bundle(t, "1.0.0", "", old)
	for name, tc := range map[string]struct {
		definition string
		class      bundles.RollbackClass
		contains   string
	}{
		"the same":     {old, bundles.RollbackInPlace, "the same"},
		"fewer values": {strings.Replace(old, "[low, high]", "[low]", 1), bundles.RollbackInPlace, "put back"},
		"unknown fields go": {definition(version("v1", "stored", plain)), bundles.RollbackNeedsBackup,
			"fields of v1 at .* that are not in the schema were kept and are dropped now"},
		"unreadable": {strings.Replace(old, "versions:", "validation: 1\n  versions:", 1),
			bundles.RollbackNeedsBackup, "is not in"},
	} {
		t.Run(name, func(t *testing.T) {
			got := rollback.Classify(from, bundle(t, "1.1.0", "", tc.definition), nil, nil)
			if got.Class != tc.class || !strings.Contains(got.Reason, tc.contains) {
				t.Errorf("got %+v, want %+v", got, tc)
			}
		})
	}
	unreadable := strings.Replace(old, "versions:", "validation: 1\n  versions:", 1)
	from = bundle(t, "1.0.0", "", unreadable)
	if got := rollback.Classify(from, bundle(t, "1.1.0", "", unreadable),
		nil, nil); got.Class != bundles.RollbackInPlace {
		t.Errorf("the same, unreadable: %+v", got)
	}
	got := rollback.Classify(from, bundle(t, "1.1.0", "", old), nil, nil)
	if got.Class != bundles.RollbackNeedsBackup ||
		!strings.Contains(got.Reason, "cannot be read") {
		t.Errorf("unreadable: %+v", got)
	}
}

// Rollbacks of real operators.
func TestClassifyReal(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to string
		class    bundles.RollbackClass
		contains string
	}{
		"a new kind, narrower patterns and a new value": {"grafana-operator/5.6.3", "grafana-operator/5.9.2",
			bundles.RollbackNeedsBackup, "KeepLast"},
		"the same in the removed API": {"etcd/0.9.0", "etcd/0.9.2", bundles.RollbackInPlace, "the same"},
		"a version with itself": {"addon-operator/1.0.0", "addon-operator/1.0.0", bundles.RollbackInPlace,
			"the same"},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := bundletest.Read(t, tc.from), bundletest.Read(t, tc.to)
			got := rollback.Classify(from, to, nil, nil)
			archive := crd.NewArchive()
			reduced := rollback.Classify(archive.Reduce(from), archive.Reduce(to), nil, nil)
			if diff := cmp.Diff(got, reduced); diff != "" {
				t.Errorf("of reduced bundles: %s", diff)
			}
			if got.Class != tc.class || !strings.Contains(got.Reason, tc.contains) {
				t.Errorf("got %+v, want class %s and a reason with %q", got, tc.class, tc.contains)
			}
		})
	}
}

// For any schemas, there is a class and a reason, a rollback to the same version is in place, and a new optional field
// does not prevent a rollback.
func FuzzClassify(f *testing.F) {
	schemas := []string{plain, added, removed, widened, narrowed, both, text, union, "", "nullable: true",
		"additionalProperties: true", "items: {}",
		"x-kubernetes-preserve-unknown-fields: true", "required: [a]", "not: {required: [a]}", "default: {a: 1}"}
	for _, a := range schemas {
		for _, b := range schemas {
			f.Add(a, b)
		}
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		untrustedtest.Bound(t, len(a)+len(b), 32<<20, 64<<10, func() {
			read := func(number, fields string) *bundles.Bundle {
				csv := fmt.Appendf(nil,
					"{apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion, metadata: {name: "+
						"echo.v%s}, spec: {version: %s}}", number, number)
				b, err := bundles.FromManifests([][]byte{csv, []byte(definition(version("v1", "stored", fields)))}, nil)
				if err != nil {
					t.Skip(err)
				}
				return b
			}
			older, newer := read("1.0.0", a), read("1.1.0", b)
			if got := rollback.Classify(older, newer, nil, nil); got.Class == "" || got.Reason == "" ||
				got.From != "echo.v1.0.0" {
				t.Errorf("no answer: %+v", got)
			}
			if got := rollback.Classify(older, read("1.1.0", a), nil, nil); got.Class != bundles.RollbackInPlace {
				t.Errorf("the same schema: %+v", got)
			}
			for _, d := range newer.CRDs {
				for _, v := range d.Spec.Versions {
					if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil ||
						v.Schema.OpenAPIV3Schema.Properties == nil {
						continue
					}
					v.Schema.OpenAPIV3Schema.Properties["added"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
				}
			}
			if got := rollback.Classify(read("1.0.0", b), newer, nil, nil); got.Class != bundles.RollbackInPlace {
				t.Errorf("an optional field: %+v", got)
			}
		})
	})
}
