// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lintrules

import (
	_ "embed"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

//go:embed pure.txt
var pureText string

// pure is a line of pure.txt.
type pure struct {
	folder string
	// below is true if the line also covers folders below it. clockOnly is true if only a clock is forbidden.
	below, clockOnly bool
}

func readPure(text string) []pure {
	var all []pure
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var p pure
		p.folder, p.clockOnly = strings.CutSuffix(line, " clock")
		p.folder, p.below = strings.CutSuffix(p.folder, "/...")
		all = append(all, p)
	}
	return all
}

// filesOf returns the file patterns for the linter depguard.
func filesOf(all []pure) []string {
	var included, excluded []string
	for _, p := range all {
		folder := "${config-path}/" + p.folder
		isBelow := slices.ContainsFunc(all, func(q pure) bool {
			return q.below && strings.HasPrefix(p.folder, q.folder+"/")
		})
		switch {
		case p.clockOnly && isBelow:
			excluded = append(excluded, "!"+folder+"/*.go")
		case p.clockOnly:
		case p.below:
			included = append(included, folder+"/**.go")
		default:
			included = append(included, folder+"/*.go")
		}
	}
	return append(append(included, "!${config-path}/**_test.go"), excluded...)
}

// expressionOf returns the regular expression for the files without a clock.
func expressionOf(all []pure) string {
	var one, below, anywhere []string
	for _, p := range all {
		switch name, is := strings.CutPrefix(p.folder, "**/"); {
		case is:
			anywhere = append(anywhere, `(^|/)`+name+`/[^/]+\.go$`)
		case p.below:
			below = append(below, p.folder)
		default:
			one = append(one, p.folder)
		}
	}
	return strings.Join(append(anywhere, `^(`+strings.Join(one, "|")+`)/[^/]+\.go$`,
		`^(`+strings.Join(below, "|")+`)/`), "|")
}

// TestPureIsOneList compares the rules of the linters with pure.txt: a package with one of the rules must have all
// of them.
func TestPureIsOneList(t *testing.T) {
	all := readPure(pureText)
	if !slices.IsSortedFunc(all, func(a, b pure) int { return strings.Compare(a.folder, b.folder) }) {
		t.Error("pure.txt is not sorted")
	}
	for _, p := range all {
		if _, err := os.Stat(filepath.Join(root(t), p.folder)); err != nil && !strings.HasPrefix(p.folder, "**/") {
			t.Errorf("pure.txt: there is no folder %s", p.folder)
		}
	}
	text, err := os.ReadFile(filepath.Join(root(t), ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]struct {
						Files []string `json:"files"`
					} `json:"rules"`
				} `json:"depguard"`
			} `json:"settings"`
			Exclusions struct {
				Rules []struct {
					PathExcept string   `json:"path-except"`
					Linters    []string `json:"linters"`
				} `json:"rules"`
			} `json:"exclusions"`
		} `json:"linters"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(filesOf(all), config.Linters.Settings.Depguard.Rules["pure"].Files); diff != "" {
		t.Errorf("files of depguard's rule pure in .golangci.yml (-pure.txt +.golangci.yml):\n%s", diff)
	}
	clock := ""
	for _, r := range config.Linters.Exclusions.Rules {
		if r.PathExcept != "" && slices.Equal(r.Linters, []string{"forbidigo"}) {
			clock = r.PathExcept
		}
	}
	if want := expressionOf(all); clock != want {
		t.Errorf("path-except of forbidigo in .golangci.yml is\n%s\nand not, as pure.txt says,\n%s", clock, want)
	}
}
