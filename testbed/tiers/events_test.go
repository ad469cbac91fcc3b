// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// module writes a module whose packages have the given tests, and returns its folder.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module " + importPrefix + "\n\ngo 1.26\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// testFile is a file of a package with the body of its tests by their names.
func testFile(tests ...string) string {
	text := "package a\nimport \"testing\"\nfunc main() {}\n"
	for _, test := range tests {
		name, body, _ := strings.Cut(test, ":")
		text += fmt.Sprintf("func %s(t *testing.T) { %s }\n", name, body)
	}
	return text
}

// TestGoTest runs the go command on tests that end in all ways.
func TestGoTest(t *testing.T) {
	const (
		passes = `TestPasses:t.Log("fine")`
		fails  = `TestFails:t.Run("part", func(t *testing.T) { t.Error("one"); t.Fatal("two") })`
		skips  = `TestSkips:t.Skip()`
		// waits is paused, and panics the only one that runs: go test says of the output of tests that run at a time
		// that it is of the last one that went on, whichever that is.
		waits  = `TestWaits:t.Parallel(); select {}`
		panics = `TestPanics:panic("oh")`
	)
	for name, c := range map[string]struct {
		file, run string
		want      []string // failures: the name, and the last line of the message
		passed    int
		failed    int // or did not end
	}{
		"all pass": {file: testFile(passes, skips), passed: 1},
		"selected": {file: testFile(passes, fails), run: "^(TestPasses)$", passed: 1},
		"a subtest": {
			file: testFile(passes, fails), passed: 1, failed: 1,
			want: []string{"a TestFails/part: a_test.go:5: two"},
		},
		"does not build": {
			file: testFile("TestOdd:var x int"), want: []string{"a: a/a_test.go:4:34: declared and not used: x"},
		},
		"main fails": {
			file: testFile("TestMain2:") + "func TestMain(m *testing.M) { println(`no cluster`) ; panic(`main`) }\n",
			want: []string{"a: panic"},
		},
		"panics": {
			file: testFile(waits, panics), failed: 2,
			want: []string{"a TestPanics: panic", "a TestWaits: the test did not end"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			var last lastResult
			root := module(t, map[string]string{"a/a_test.go": c.file})
			job := Job{Module: ".", Folders: []string{"a"}, Run: c.run}
			err := GoTest{Root: root, Out: t.Output()}.Run(t.Context(), job, &last)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range last.Failures() {
				got = append(got, f.Name()+": "+headline(f.Message))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
			if passed, failed := last.Count("pass"), last.Count("fail", ""); passed != c.passed || failed != c.failed {
				t.Errorf("%d tests passed, %d failed; want %d, %d", passed, failed, c.passed, c.failed)
			}
		})
	}
}

// headline is the last line of a message; of a panic, the word alone.
func headline(message []string) string {
	for _, line := range message {
		if strings.HasPrefix(line, "panic: ") {
			return "panic"
		}
	}
	return strings.TrimSpace(message[len(message)-1])
}

func TestGoTestIsInterrupted(t *testing.T) {
	root := module(t, map[string]string{"a/a_test.go": "package a\nimport (\n\"os\"\n\"os/signal\"\n\"testing\"\n)\n" +
		"func TestWaits(t *testing.T) {\n\tended := make(chan os.Signal, 1)\n\tsignal.Notify(ended, os.Interrupt)\n" +
		"\tif err := os.WriteFile(\"waiting\", nil, 0o600); err != nil {\n\t\tt.Fatal(err)\n\t}\n\t<-ended\n" +
		"\tif err := os.WriteFile(\"cleaned\", nil, 0o600); err != nil {\n\t\tt.Fatal(err)\n\t}\n\tos.Exit(130)\n}\n"})
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		for t.Context().Err() == nil {
			if _, err := os.Stat(filepath.Join(root, "a", "waiting")); err == nil {
				cancel(errDeadline)
				return
			}
		}
	}()
	err := GoTest{Root: root, Out: t.Output()}.Run(ctx, Job{Module: ".", Folders: []string{"a"}}, &lastResult{})
	if !errors.Is(err, errDeadline) {
		t.Errorf("got %v, want %v", err, errDeadline)
	}
	if _, err := os.Stat(filepath.Join(root, "a", "cleaned")); err != nil {
		t.Errorf("the test could not clean up: %v", err)
	}
}

func TestSummarize(t *testing.T) {
	long := make([]string, 100)
	for i := range long {
		long[i] = fmt.Sprint("line ", i)
	}
	many := make([]Failure, 200)
	for i := range many {
		many[i] = Failure{Folder: "a", Test: fmt.Sprint("Test", i), Message: long}
	}
	for name, c := range map[string]struct {
		failures []Failure
		has      []string
	}{
		"none": {},
		"a long message": {
			failures: many[:1], has: []string{FailuresTitle, "a Test0", "    line 0", "    ...", "    line 99"},
		},
		"a long log after the message": {
			failures: []Failure{{Folder: "a", Test: "TestA", Message: append([]string{"why"},
				slices.Repeat([]string{`    {"level":"info","msg":"Acting"}`}, 100)...)}},
			has: []string{"a TestA\n    why"},
		},
		"several": {failures: many[:5], has: []string{"a Test4"}},
		"many":    {failures: many, has: []string{"a Test0", "a Test37", "and 162 more"}},
	} {
		lines := summarize(c.failures)
		if len(lines) > mostLines {
			t.Errorf("%s: %d lines, want at most %d", name, len(lines), mostLines)
		}
		for _, want := range c.has {
			if !strings.Contains(strings.Join(lines, "\n")+"\n", want+"\n") {
				t.Errorf("%s: no line %q in\n%s", name, want, strings.Join(lines, "\n"))
			}
		}
	}
}
