// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
)

// FuzzLint lints any bundle that can be read: two manifests with random content, after a correct version. No input must
// make a rule panic, or give a text that a reporter cannot print.
func FuzzLint(f *testing.F) {
	base := baseFiles(f)
	const crd = "manifests/echoes.example.com.yaml"
	f.Add(base[baseCSV].Data, base[crd].Data)
	for _, rule := range Rules() {
		in, _ := examplePlay(f, rule.Bad)
		for _, o := range in.Bundle.Objects {
			text, err := o.MarshalJSON()
			switch {
			case err != nil || len(text) > 64<<10:
			case o == in.Bundle.CSVObject():
				f.Add(text, base[crd].Data)
			default:
				f.Add(base[baseCSV].Data, text)
			}
		}
	}
	published := readBundle(f, base)
	f.Fuzz(func(t *testing.T, csv, other []byte) {
		untrustedtest.Bound(t, len(csv)+len(other), 64<<20, 16<<10, func() {
			b, err := bundles.FromManifests([][]byte{csv, other}, published.Annotations)
			if err != nil {
				if !errors.Is(err, bundles.ErrNotBundle) && !errors.Is(err, bundles.ErrTooLarge) {
					t.Fatalf("an error of no kind: %v", err)
				}
				return
			}
			in := Input{Bundle: b, History: []*bundles.Bundle{published}, Images: knownImages{}}
			in.Predecessor = FindPredecessor(b, in.History)
			report := Run(in, Options{Now: today})
			for _, found := range report.Findings {
				if found.Message == "" || strings.Contains(found.Message, "\n") {
					t.Errorf("a message is one line: %+v", found)
				}
			}
			if _, err := report.JSON(); err != nil {
				t.Error(err)
			}
			if _, err := report.SARIF("test"); err != nil {
				t.Error(err)
			}
			report.Text(TextStyle{})
			again := Run(in, Options{Now: today})
			if report.Text(TextStyle{All: true}) != again.Text(TextStyle{All: true}) {
				t.Error("two runs said different things")
			}
		})
	})
}

// FuzzParseWaivers parses any text as waivers. The result is a list of waivers or an error.
func FuzzParseWaivers(f *testing.F) {
	f.Add([]byte("waivers:\n- {rule: of-hub, file: 'manifests/*', path: 'spec.[0', reason: ours, expires: 2027-01-01}"))
	f.Add([]byte("waivers: [[]]"))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, text []byte) {
		untrustedtest.Bound(t, len(text), 8<<20, 8<<10, func() {
			waivers, err := ParseWaivers(text)
			if err != nil && !errors.Is(err, ErrBadWaivers) {
				t.Fatalf("an error of no kind: %v", err)
			}
			for _, w := range waivers {
				w.covers(Finding{Rule: w.Rule, File: path.Join("manifests", w.File), Path: w.Path})
			}
		})
	})
}
