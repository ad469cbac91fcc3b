// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Tier is a set of tests that run together.
type Tier string

// The tiers, from what runs most often to what runs least.
const (
	Test    Tier = "test"    // make test
	Cluster Tier = "cluster" // make test-cluster
	Long    Tier = "long"    // make test-long; these tests are in files with the build tag of the same name
	Lint    Tier = "lint"    // make check; likewise
)

//go:embed tests.txt
var table string

// baseline is the SHA-256 of the names of the first tests of the table, one a line. It never changes: the names stay
// in the table when their tests are renamed, merged or removed.
const baseline = "3cce53d563a857f0ca513d4349784be2e26a0af43d8579e6db5df829b28371fb"

// since begins the second part of the table.
const since = "# Tests since then"

// Entry is a line of the table: a test, or what became of one.
type Entry struct {
	// Folder is the folder of the test's package, from the root of the tree. Empty if the test is no longer there.
	Folder string
	Name   string
	Tier   Tier
	// Was is the name that the test had at first, if it was renamed.
	Was string
	// Fate says what became of a test that is no longer there: "merged into X" or "removed: reason".
	Fate string
}

// original is the name that the test had at first.
func (e Entry) original() string {
	if e.Was != "" {
		return e.Was
	}
	return e.Name
}

func (e Entry) String() string { return e.Folder + " " + e.Name }

var (
	lineOfTest = regexp.MustCompile(`^(\S+) ((?:Test|Fuzz|Example)\w*) (test|cluster|long|lint)(?: was (\w+))?$`)
	lineOfFate = regexp.MustCompile(`^- ((?:Test|Fuzz|Example)\w*) (merged into \S+|removed: .+)$`)
)

// Table returns the entries of tests.txt.
func Table() ([]Entry, error) {
	entries, _, err := parseTable(table)
	return entries, err
}

// parseTable returns all entries of a table, and how many of them are in its first part.
func parseTable(text string) (entries []Entry, first int, err error) {
	first = -1
	lines := bufio.NewScanner(strings.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		line := lines.Text()
		switch test, fate := lineOfTest.FindStringSubmatch(line), lineOfFate.FindStringSubmatch(line); {
		case line == since:
			first = len(entries)
		case line == "", strings.HasPrefix(line, "#"):
		case test != nil:
			entries = append(entries, Entry{Folder: test[1], Name: test[2], Tier: Tier(test[3]), Was: test[4]})
		case fate != nil:
			entries = append(entries, Entry{Name: fate[1], Fate: fate[2]})
		default:
			return nil, 0, fmt.Errorf("read line %d of tests.txt: %q is neither \"folder Test tier\", with tier test, "+
				"cluster, long or lint, nor \"- Test merged into folder.Test\" nor \"- Test removed: reason\"",
				number, line)
		}
	}
	if first < 0 {
		return nil, 0, fmt.Errorf("read tests.txt: the line %q is missing", since)
	}
	return entries, first, lines.Err()
}

// Verify compares the table with the tests of the tree at root, and returns what is wrong, a sentence each.
func Verify(root string) ([]string, error) {
	found, err := findTests(root)
	if err != nil {
		return nil, err
	}
	return compare(table, baseline, found)
}

func compare(table, baseline string, found []Entry) ([]string, error) {
	entries, first, err := parseTable(table)
	if err != nil {
		return nil, err
	}
	var wrong []string
	if sum := sumOfNames(entries[:first]); sum != baseline {
		wrong = append(wrong, "the first part of tests.txt has lost or gained a test: a line there may change its "+
			"folder or tier, become \"folder NewName tier was OldName\", or \"- Test merged into folder.Test\" or "+
			"\"- Test removed: reason\"; a new test goes below \""+since+"\"")
	}
	listed, there := byTest(entries), byTest(found)
	for _, e := range found {
		switch line, ok := listed[e.String()]; {
		case !ok:
			wrong = append(wrong, fmt.Sprintf("%s is not in tests.txt: add it with its tier", e))
		case e.Tier != "" && line.Tier != e.Tier, e.Tier == "" && (line.Tier == Long || line.Tier == Lint):
			wrong = append(wrong, fmt.Sprintf("%s has the tier %s in tests.txt, which its file's build tags contradict",
				e, line.Tier))
		}
	}
	for _, e := range entries {
		if _, ok := there[e.String()]; !ok && e.Fate == "" {
			wrong = append(wrong, fmt.Sprintf("%s is in tests.txt and not in the tree: say \"- %s merged into "+
				"folder.Test\" or \"- %s removed: reason\"", e, e.original(), e.original()))
		}
	}
	return append(wrong, compareFates(entries)...), nil
}

// compareFates returns what is wrong with lines about tests that are no longer there, or are there twice.
func compareFates(entries []Entry) []string {
	var wrong []string
	seen, targets := map[string]bool{}, map[string]bool{}
	for _, e := range entries {
		if e.Fate != "" {
			continue
		}
		if seen[e.String()] {
			wrong = append(wrong, fmt.Sprintf("%s is in tests.txt twice", e))
		}
		seen[e.String()], targets[e.Folder+"."+e.Name] = true, true
	}
	for _, e := range entries {
		if target, ok := strings.CutPrefix(e.Fate, "merged into "); ok && !targets[target] {
			wrong = append(wrong, fmt.Sprintf("%s is said to be merged into %s, which is not in tests.txt: name it as "+
				"folder.Test", e.Name, target))
		}
	}
	return wrong
}

func byTest(entries []Entry) map[string]Entry {
	tests := make(map[string]Entry, len(entries))
	for _, e := range entries {
		if e.Fate == "" {
			tests[e.String()] = e
		}
	}
	return tests
}

// sumOfNames identifies a set of tests by the names that they had at first.
func sumOfNames(entries []Entry) string {
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.original())
	}
	slices.Sort(names)
	sum := sha256.Sum256([]byte(strings.Join(names, "\n")))
	return hex.EncodeToString(sum[:])
}
