// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakeTests plays the go command.
type fakeTests struct {
	// fails is how many times in a row the tests "folder Test" fail.
	fails map[string]int
	// hangs are the folders whose tests run until they are interrupted.
	hangs map[string]bool
	// ran is what ran, in its order: the folder, and the expression if there is one.
	ran []string
}

func (f *fakeTests) run(ctx context.Context, job Job, listener Listener) error {
	folder := job.Folders[0]
	f.ran = append(f.ran, strings.TrimSpace(folder+" "+job.Run))
	listener.Begin(folder)
	if f.hangs[folder] {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	p := &Package{Folder: folder, Passed: true, Tests: map[string]*TestResult{}}
	for _, name := range []string{"TestA", "TestB", "TestC"} {
		if job.Run != "" && job.Run != selectTests([]string{name}) {
			continue
		}
		p.Tests[name] = &TestResult{State: "pass"}
		if key := folder + " " + name; f.fails[key] > 0 {
			f.fails[key]--
			p.Tests[name].State, p.Passed = "fail", false
		}
	}
	listener.End(p)
	return nil
}

func TestChanged(t *testing.T) {
	entries := []Entry{{Folder: "a", Name: "TestA", Tier: Cluster}, {Folder: "b", Name: "TestB", Tier: Cluster}}
	for name, c := range map[string]struct {
		fails   map[string]int
		hangs   map[string]bool
		before  map[string]passRecord
		want    error
		ran     []string
		prints  []string
		records map[string]passRecord
	}{
		"a new machine": {
			ran: []string{"a", "b"}, prints: []string{"6 passed, 0 failed"},
			records: map[string]passRecord{"a": {Passed: "a1"}, "b": {Passed: "b1"}},
		},
		"one package is the same": {
			before: map[string]passRecord{"a": {Passed: "a1"}, "b": {Passed: "b0"}},
			ran:    []string{"b"}, prints: []string{"same  a"},
			records: map[string]passRecord{"a": {Passed: "a1"}, "b": {Passed: "b1"}},
		},
		"all are the same": {before: map[string]passRecord{"a": {Passed: "a1"}, "b": {Passed: "b1"}}},
		"a flaky test": {
			fails: map[string]int{"a TestB": 1},
			ran:   []string{"a", "b", "a ^(TestB)$"}, prints: []string{"FLAKY a TestB", "6 passed, 0 failed"},
			records: map[string]passRecord{"a": {Passed: "a1"}, "b": {Passed: "b1"}},
		},
		"a defect": {
			fails: map[string]int{"a TestB": 2}, want: ErrFailed,
			ran: []string{"a", "b", "a ^(TestB)$"}, prints: []string{FailuresTitle + "\na TestB"},
			records: map[string]passRecord{"a": {}, "b": {Passed: "b1"}},
		},
		"too many to be flaky": {
			fails: map[string]int{"a TestA": 1, "a TestB": 1, "b TestC": 1}, want: ErrFailed,
			ran: []string{"a", "b"}, prints: []string{"3 tests failed: none runs once more"},
			records: map[string]passRecord{"a": {}, "b": {}},
		},
		"the time is up": {
			hangs: map[string]bool{"b": true},
			ran:   []string{"a", "b"}, prints: []string{"NOT RUN b"},
			records: map[string]passRecord{"a": {Passed: "a1"}, "b": {NotRun: true}},
		},
		"left by the last run": {
			before:  map[string]passRecord{"b": {Passed: "b0", NotRun: true}},
			ran:     []string{"b", "a"},
			records: map[string]passRecord{"a": {Passed: "a1"}, "b": {Passed: "b1"}},
		},
		"left twice": {
			hangs: map[string]bool{"b": true}, before: map[string]passRecord{"b": {NotRun: true}}, want: ErrFailed,
			ran: []string{"b"}, prints: []string{"running: b (1m0s)", "NOT RUN a", "NOT RUN b", "two runs in a row"},
			records: map[string]passRecord{"a": {NotRun: true}, "b": {NotRun: true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tests, out := &fakeTests{fails: c.fails, hangs: c.hangs}, &bytes.Buffer{}
			changed := Changed{
				Runner: Runner{
					Test: tests.run, Components: func(context.Context) error { return nil }, Parallel: 1,
					Report: NewReport(out),
					Times:  &Times{path: filepath.Join(t.TempDir(), "times.json"), seconds: map[string]float64{}},
				},
				Digest: func(job Job) (string, error) { return job.Folders[0] + "1", nil },
				State:  t.TempDir(), Limit: time.Hour,
			}
			for folder, record := range c.before {
				if err := changed.keep(folder, record); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Test(t, func(t *testing.T) { // the time is up at once when all that is left hangs
				if err := changed.Run(t.Context(), entries, Cluster); !errors.Is(err, c.want) {
					t.Errorf("got error %v, want %v", err, c.want)
				}
			})
			if diff := cmp.Diff(c.ran, tests.ran); diff != "" {
				t.Errorf("ran (-want +got):\n%s", diff)
			}
			for folder, want := range c.records {
				if got, err := changed.load(folder); err != nil || got != want {
					t.Errorf("%s: kept %+v, %v; want %+v", folder, got, err, want)
				}
			}
			for _, want := range c.prints {
				if !strings.Contains(out.String(), want) {
					t.Errorf("prints no %q", want)
				}
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

// TestAKilledRunKeepsWhatPassed: when the second package begins, the first one is known to have passed.
func TestAKilledRunKeepsWhatPassed(t *testing.T) {
	tests, state := &fakeTests{}, t.TempDir()
	var changed Changed
	changed = Changed{State: state, Limit: time.Hour,
		Digest: func(j Job) (string, error) { return j.Folders[0] + "1", nil },
		Runner: Runner{Parallel: 1, Components: func(context.Context) error { return nil },
			Report: NewReport(&bytes.Buffer{}),
			Times:  &Times{path: filepath.Join(t.TempDir(), "times.json"), seconds: map[string]float64{}},
			Test: func(ctx context.Context, job Job, listener Listener) error {
				if last, err := changed.load("a"); job.Folders[0] == "b" && (err != nil || last.Passed != "a1") {
					t.Errorf("when b begins, a is known by %+v, %v", last, err)
				}
				return tests.run(ctx, job, listener)
			}}}
	if err := changed.Run(t.Context(), []Entry{{Folder: "a", Name: "TestA", Tier: Cluster},
		{Folder: "b", Name: "TestB", Tier: Cluster}}, Cluster); err != nil {
		t.Error(err)
	}
}

// TestInputs names what the tests of a package depend on beside the packages that they import.
func TestInputs(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ has, hasNot []string }{
		"testbed/integration/cli": {
			has: []string{"testbed/integration/cli", "cmd/bellwether", "explain", "testbed/cmd/podrunner"},
		},
		"testbed/alerts": {has: []string{"alerts/slo"}, hasNot: []string{"cmd/hub", "cmd/agent"}},
		"testbed/e2e":    {has: []string{"cmd/hub", "cmd/agent", "cmd/bellwether", "controllers/hub/rollout"}},
	}
	in, err := LoadInputs(t.Context(), root, slices.Collect(maps.Keys(cases)))
	if err != nil {
		t.Fatal(err)
	}
	for folderOfTests, c := range cases {
		folders := map[string]bool{}
		if err := in.collect(folders, importPrefix+"/"+folderOfTests+".test"); err != nil {
			t.Fatal(err)
		}
		for _, folder := range c.has {
			if !folders[filepath.Join(root, folder)] {
				t.Errorf("%s: %s is no input", folderOfTests, folder)
			}
		}
		for _, folder := range c.hasNot {
			if folders[filepath.Join(root, folder)] {
				t.Errorf("%s: %s is an input", folderOfTests, folder)
			}
		}
	}
}

func TestDigestSeesEveryFile(t *testing.T) {
	files := map[string]string{"a.go": "1", "a_test.go": "1", "testdata/deep/golden.txt": "1", "template.tmpl": "1"}
	digest := func(files map[string]string) string {
		dir := module(t, files)
		in := &Inputs{root: dir, files: map[string][]byte{}}
		sum, err := in.sumOfFolder(dir, true)
		if err != nil {
			t.Fatal(err)
		}
		return string(sum)
	}
	before := digest(files)
	if digest(files) != before {
		t.Fatal("the digest of the same files in another folder differs")
	}
	for name := range files {
		changed := maps.Clone(files)
		changed[name] = "2"
		if name != "go.mod" && digest(changed) == before {
			t.Errorf("a change of %s is not seen", name)
		}
	}
	files["testdata/new.txt"] = ""
	if digest(files) == before {
		t.Error("a new file is not seen")
	}
}
