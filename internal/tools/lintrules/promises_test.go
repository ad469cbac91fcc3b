// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lintrules

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// notPromised are the headings of docs/security.md for risks that are not limited. Their contents need no test.
var notPromised = []string{"What a FleetAccess does not bound", "What the policy does not bound",
	"What errors still tell"}

// TestSecurityPromisesAreTested checks that each promise in docs/security.md names the tests that try to break the
// promise, or says that there is none.
func TestSecurityPromisesAreTested(t *testing.T) {
	text := read(t, filepath.Join(root(t), "docs", "security.md"))
	table := read(t, filepath.Join(root(t), "testbed", "tiers", "tests.txt"))
	for _, wrong := range append(wrongNames(text, namedIn(table)), unnamed(text)...) {
		t.Errorf("docs/security.md: %s", wrong)
	}
	for _, heading := range notPromised {
		if !strings.Contains(text, "# "+heading+"\n") {
			t.Errorf("docs/security.md has no section %q", heading)
		}
	}
}

// TestFindUntestedPromises checks the check.
func TestFindUntestedPromises(t *testing.T) {
	const text = "# Promises\n\n- held (`TestA`)\n- held here (`b.TestTwice`)\n- by nobody, on\n  two lines\n" +
		"- said (not tested:\n  nobody can)\n  - a part of it\n\n| who | what |\n|---|---|\n" +
		"| x | y (`FuzzA`) |\n| x | z |\n\n" +
		"`TestMissing`, `TestGone`, `TestTwice`, `c.TestA`\n\n```yaml\n- no: promise\n```\n\n" +
		"## What the policy does not bound\n\n- this\n"
	entries := namedIn("# a comment\n\na TestA test\na FuzzA cluster was FuzzB\na TestTwice test\n" +
		"a/b TestTwice test\n- TestGone removed: x\n")
	want := []string{"TestMissing is no test of tests.txt", "TestGone is no test of tests.txt",
		"TestTwice is a test in a and a/b: write which, such as a.TestTwice", "c.TestA is no test of tests.txt"}
	if diff := cmp.Diff(want, wrongNames(text, entries)); diff != "" {
		t.Errorf("wrong names (-want +got):\n%s", diff)
	}
	want = []string{`"- by nobody, on two lines" names no test`, `"| x | z |" names no test`}
	if diff := cmp.Diff(want, unnamed(text)); diff != "" {
		t.Errorf("promises without a test (-want +got):\n%s", diff)
	}
}

var (
	nameTest = regexp.MustCompile("`(?:(\\w+)\\.)?((?:Test|Fuzz)[A-Z]\\w*)`")
	untested = regexp.MustCompile(`\(not tested: [^)]+\)`)
	ruler    = regexp.MustCompile(`^[|\s:-]+$`)
)

// namedTest is a test by the folder of its package and its name.
type namedTest struct{ folder, name string }

// namedIn returns the tests in a table of tests, without removed tests.
func namedIn(table string) []namedTest {
	var out []namedTest
	for line := range strings.Lines(table) {
		if words := strings.Fields(line); len(words) >= 3 && words[0] != "-" && words[0] != "#" {
			out = append(out, namedTest{words[0], words[1]})
		}
	}
	return out
}

// wrongNames returns the names of tests in a text that are not in the table, or that several packages have. A name
// that several packages have must be written with the last part of its package's folder.
func wrongNames(text string, entries []namedTest) []string {
	var wrong []string
	for _, match := range nameTest.FindAllStringSubmatch(text, -1) {
		folder, name := match[1], match[2]
		var folders []string
		for _, e := range entries {
			if e.name == name && (folder == "" || path.Base(e.folder) == folder) {
				folders = append(folders, e.folder)
			}
		}
		switch {
		case len(folders) == 0:
			wrong = append(wrong, strings.Trim(match[0], "`")+" is no test of tests.txt")
		case len(folders) > 1:
			wrong = append(wrong, fmt.Sprintf("%s is a test in %s: write which, such as %s.%s", name,
				strings.Join(folders, " and "), path.Base(folders[0]), name))
		}
	}
	return wrong
}

// unnamed returns the rows of tables and the bullets with a promise that neither name a test nor say why there
// is none.
func unnamed(text string) []string {
	var out []string
	for _, promise := range promises(withoutCode(text)) {
		if !nameTest.MatchString(promise) && !untested.MatchString(promise) {
			out = append(out, fmt.Sprintf("%.100q names no test", promise))
		}
	}
	return out
}

// promises returns the rows and bullets of a text, each as one line, except for rows and bullets below headings
// of notPromised.
func promises(text string) []string {
	var out []string
	isPromised, isBullet := true, false
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		_, heading, isHeading := strings.Cut(line, "# ")
		switch {
		case isHeading && strings.HasPrefix(line, "#"):
			isPromised, isBullet = !slices.Contains(notPromised, heading), false
		case !isPromised:
		case isBullet && strings.HasPrefix(line, "  "):
			out[len(out)-1] += " " + strings.TrimSpace(line)
		case strings.HasPrefix(line, "- "):
			out, isBullet = append(out, line), true
		default:
			isBullet = false
			if isRow(lines, i) {
				out = append(out, line)
			}
		}
	}
	return out
}

// isRow reports whether a line is a row of a table, but not its header and not the ruler below the header.
func isRow(lines []string, i int) bool {
	return strings.HasPrefix(lines[i], "|") && !ruler.MatchString(lines[i]) &&
		(i+1 == len(lines) || !strings.HasPrefix(lines[i+1], "|") || !ruler.MatchString(lines[i+1]))
}
