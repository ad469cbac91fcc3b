// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/bundles/bundletest"
	"github.com/bellwether-dev/bellwether/bundles/crd"
)

func publishedInput(t testing.TB, operator, version string, earlier ...string) Input {
	t.Helper()
	name := operator + "/" + version
	in := Input{Bundle: bundletest.Read(t, name), Files: bundletest.Files(t, name)}
	in.History = SortHistory(in.Bundle, bundletest.ReadAll(t, operator, earlier...))
	in.Predecessor = FindPredecessor(in.Bundle, in.History)
	return in
}

// reducedInput has the history as the command keeps it.
func reducedInput(in Input) Input {
	in.Archive = crd.NewArchive()
	history := in.History
	in.History = nil
	for _, old := range history {
		in.History = append(in.History, Reduce(in.Archive, in.Bundle, old))
	}
	in.Predecessor = FindPredecessor(in.Bundle, in.History)
	return in
}

// Known correct and wrong findings about published bundles.
func TestPublishedBundles(t *testing.T) {
	for name, test := range map[string]struct {
		in         func(t testing.TB) Input
		want, miss []string
	}{
		"etcd": {
			in:   func(t testing.TB) Input { return publishedInput(t, "etcd", "0.9.2", "0.9.0") },
			want: []string{"of-removed-api", "of-csv", "bundle-annotations", "olmv1-dependency"},
			miss: []string{"dependency-invalid", "of-crd", "image-digest"},
		},
		"addon-operator": {
			in:   func(t testing.TB) Input { return publishedInput(t, "addon-operator", "1.0.0") },
			want: []string{"image-digest", "image-unlisted", "of-good-practice"},
			miss: []string{"crd-schema-invalid", "bundle-annotations", "olmv0-kind", "of-removed-api"},
		},
		"grafana-operator": {
			in: func(t testing.TB) Input {
				return publishedInput(t, "grafana-operator", "5.9.2", "5.6.3")
			},
			want: []string{"container-image", "replaces-invalid"},
			miss: []string{"image-digest", "image-unlisted", "crd-schema-invalid", "of-crd", "version-taken",
				"olmv0-bundle-size"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := test.in(t)
			report := Run(in, Options{Now: today})
			if diff := cmp.Diff(report.Findings, Run(reducedInput(in), Options{Now: today}).Findings,
				cmp.AllowUnexported(Finding{})); diff != "" {
				t.Errorf("with a reduced history: %s", diff)
			}
			has := func(rule string) bool {
				return slices.ContainsFunc(report.Findings, func(f Finding) bool { return f.Rule == rule })
			}
			for _, rule := range test.want {
				if !has(rule) {
					t.Errorf("%s reports nothing", rule)
				}
			}
			for _, rule := range test.miss {
				if has(rule) {
					t.Errorf("%s reports %+v", rule, of(report.Findings, rule))
				}
			}
			for _, f := range report.Findings {
				if f.File == "" {
					continue
				}
				if f.Line < 1 {
					t.Errorf("no line: %+v", f)
				}
			}
		})
	}
}

// BenchmarkLintGrafana lints the largest published bundle against all earlier versions, without reading the files.
func BenchmarkLintGrafana(b *testing.B) {
	in := publishedInput(b, "grafana-operator", "5.9.2", "5.6.3")
	for b.Loop() {
		Run(in, Options{Now: today})
	}
}

// BenchmarkReadAndLintGrafana does the same, including reading the files.
func BenchmarkReadAndLintGrafana(b *testing.B) {
	for b.Loop() {
		Run(publishedInput(b, "grafana-operator", "5.9.2", "5.6.3"), Options{Now: today})
	}
}
