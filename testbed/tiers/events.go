// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"bufio"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"
)

// attributeWaited is testenv.AttributeWaited.
const attributeWaited = "waited"

// event is a line of `go test -json`: see `go doc test2json`.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build-output
	Test        string
	Output      string
	Key, Value  string // of attr
	Elapsed     float64
	FailedBuild string
}

// Package is how the tests of a package ended.
type Package struct {
	// Folder is the package's, from the root of the tree.
	Folder string
	// Passed is whether all of its tests passed; Cached whether Go's cache says so.
	Passed, Cached bool
	Seconds        float64
	Tests          map[string]*TestResult // subtests as well, by their full names
	// output is what no test printed: errors of the build, of TestMain, panics.
	output []string
}

// TestResult is how a test or subtest ended.
type TestResult struct {
	// State is pass, fail or skip; empty if the test did not end.
	State   string
	Seconds float64
	// Waits are for how many seconds the test says that it waited, by what for (testenv.Waited).
	Waits  map[string]float64
	output []string
}

// Failure is a test that failed; with no name, its package failed beside its tests.
type Failure struct {
	Folder, Test string
	Message      []string
}

// Name is the folder of the package and the name of the test.
func (f Failure) Name() string { return strings.TrimSpace(f.Folder + " " + f.Test) }

// Listener is told how tests go on, by one goroutine at a time.
type Listener interface {
	// Begin says that the tests of the package in a folder begin.
	Begin(folder string)
	// End says how they ended.
	End(p *Package)
}

// readEvents reads the output of `go test -json`. Lines that are no events, such as those of the go command itself, go
// to other.
func readEvents(r io.Reader, listener Listener, other func(line string)) error {
	packages, builds := map[string]*Package{}, map[string][]string{}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				other(strings.TrimSuffix(line, "\n"))
			} else if e.Action == "start" {
				listener.Begin(folderOf(e.Package))
			} else if p := record(packages, builds, e); p != nil {
				listener.End(p)
			}
		}
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// record adds an event, and returns the package if it ended by it.
func record(packages map[string]*Package, builds map[string][]string, e event) *Package {
	if e.Action == "build-output" {
		builds[e.ImportPath] = append(builds[e.ImportPath], e.Output)
		return nil
	}
	p := packages[e.Package]
	if p == nil {
		p = &Package{Folder: folderOf(e.Package), Tests: map[string]*TestResult{}}
		packages[e.Package] = p
	}
	if e.Test != "" {
		p.recordTest(e)
		return nil
	}
	switch e.Action {
	case "output":
		p.output = append(p.output, e.Output)
		p.Cached = p.Cached || strings.HasPrefix(e.Output, "ok ") && strings.HasSuffix(e.Output, "(cached)\n")
	case "pass", "fail", "skip":
		p.Passed, p.Seconds = e.Action != "fail", e.Elapsed
		p.output = append(builds[e.FailedBuild], p.output...)
		delete(packages, e.Package)
		return p
	}
	return nil
}

func (p *Package) recordTest(e event) {
	test := p.Tests[e.Test]
	if test == nil {
		test = &TestResult{}
		p.Tests[e.Test] = test
	}
	switch e.Action {
	case "output":
		test.output = append(test.output, e.Output)
	case "attr":
		test.recordAttribute(e.Key, e.Value)
	case "pass", "fail", "skip":
		test.State, test.Seconds = e.Action, e.Elapsed
		if !test.failed() {
			test.output = nil // nobody will read it
		}
	}
}

// recordAttribute adds up what the test waited for.
func (t *TestResult) recordAttribute(key, value string) {
	number, what, ok := strings.Cut(value, " ")
	seconds, err := strconv.ParseFloat(number, 64)
	if key != attributeWaited || !ok || err != nil {
		return
	}
	if t.Waits == nil {
		t.Waits = map[string]float64{}
	}
	t.Waits[what] += seconds
}

// Count returns how many tests, subtests not counted, ended in one of the given states; "" is that of a test that did
// not end.
func (p *Package) Count(states ...string) int {
	n := 0
	for name, test := range p.Tests {
		if slices.Contains(states, test.State) && !strings.Contains(name, "/") {
			n++
		}
	}
	return n
}

// Failures returns the tests that failed or did not end; of a test with such subtests, only those. If there are none
// although the package failed, the failure is the package's.
func (p *Package) Failures() []Failure {
	if p.Passed {
		return nil
	}
	var failures []Failure
	for name, test := range p.Tests {
		if test.failed() && !p.hasFailedSubtest(name) {
			message := messageOf(test.output)
			if test.State == "" {
				message = append(message, "the test did not end")
			}
			failures = append(failures, Failure{Folder: p.Folder, Test: name, Message: message})
		}
	}
	slices.SortFunc(failures, func(a, b Failure) int { return strings.Compare(a.Test, b.Test) })
	if len(failures) == 0 || panicked(p.output) {
		failures = append(failures, Failure{Folder: p.Folder, Message: messageOf(p.output)})
	}
	return failures
}

// forget counts failed tests as passed.
func (p *Package) forget(isMeant func(name string) bool) {
	for name, test := range p.Tests {
		if isMeant(name) && test.failed() {
			test.State = "pass"
		}
	}
}

func (t *TestResult) failed() bool { return t.State != "pass" && t.State != "skip" }

func (p *Package) hasFailedSubtest(name string) bool {
	for other, test := range p.Tests {
		if strings.HasPrefix(other, name+"/") && test.failed() {
			return true
		}
	}
	return false
}

func panicked(output []string) bool {
	return slices.ContainsFunc(output, func(line string) bool { return strings.HasPrefix(line, "panic: ") })
}

// frames begin lines that `go test` prints around the output of tests.
var frames = []string{"=== RUN", "=== PAUSE", "=== CONT", "=== NAME", "=== ATTR", "--- FAIL", "--- PASS", "--- SKIP",
	"FAIL"}

// messageOf returns output without the frames, split into lines.
func messageOf(output []string) []string {
	var lines []string
	for line := range strings.Lines(strings.Join(output, "")) {
		trimmed := strings.TrimSpace(line)
		if trimmed != "" && !slices.ContainsFunc(frames, func(f string) bool { return strings.HasPrefix(trimmed, f) }) {
			lines = append(lines, strings.TrimRight(line, "\r\n"))
		}
	}
	return lines
}
