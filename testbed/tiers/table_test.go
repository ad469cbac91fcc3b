// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompare(t *testing.T) {
	first := []Entry{{Folder: "a", Name: "TestOne"}, {Folder: "a", Name: "TestTwo"}}
	for name, c := range map[string]struct {
		table string
		found []Entry
		want  string // in the only sentence; empty for none
	}{
		"nothing changed": {table: "a TestOne test\na TestTwo cluster\n", found: first},
		"moved and renamed": {
			table: "b TestTwo cluster\na TestUno test was TestOne\n",
			found: []Entry{{Folder: "a", Name: "TestUno"}, {Folder: "b", Name: "TestTwo"}},
		},
		"merged":  {table: "a TestOne test\n- TestTwo merged into a.TestOne\n", found: first[:1]},
		"removed": {table: "a TestOne test\n- TestTwo removed: its feature is gone\n", found: first[:1]},
		"merged into nothing": {
			table: "a TestOne test\n- TestTwo merged into a.TestThree\n", found: first[:1],
			want: "TestTwo is said to be merged into a.TestThree, which is not in tests.txt",
		},
		"removed with its line": {
			table: "a TestOne test\n", found: first[:1], want: "the first part of tests.txt has lost",
		},
		"removed without a word": {
			table: "a TestOne test\na TestTwo test\n", found: first[:1],
			want: "a TestTwo is in tests.txt and not in the tree",
		},
		"added": {
			table: "a TestOne test\na TestTwo test\n", found: append(first[:2:2], Entry{Folder: "c", Name: "TestNew"}),
			want: "c TestNew is not in tests.txt",
		},
		"twice": {
			table: "a TestOne test\na TestTwo test\n" + since + "\na TestTwo test\n", found: first, want: "twice",
		},
		"a tag that the table does not know": {
			table: "a TestOne test\na TestTwo test\n",
			found: []Entry{first[0], {Folder: "a", Name: "TestTwo", Tier: Long}}, want: "contradict",
		},
		"a tier without its tag": {table: "a TestOne test\na TestTwo long\n", found: first, want: "contradict"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(c.table, since) {
				c.table += since + "\n"
			}
			wrong, err := compare(c.table, sumOfNames(first), c.found)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(wrong, "\n"); (got == "") != (c.want == "") || !strings.Contains(got, c.want) ||
				len(wrong) > 1 {
				t.Errorf("got %q, want one sentence with %q", wrong, c.want)
			}
		})
	}
}

func TestParseTableRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"another tier":       "a TestOne sometimes\n" + since,
		"a fate without why": "- TestOne removed\n" + since,
		"no second part":     "a TestOne test\n",
	} {
		if _, _, err := parseTable(text); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestTestsOf(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []Entry
	}{
		"all kinds": {
			text: "package a\nfunc TestMain(m *testing.M) {}\nfunc TestA(t *testing.T) {}\nfunc Testify() {}\n" +
				"func FuzzB(f *testing.F) {}\nfunc ExampleC() {}\nfunc (s suite) TestD() {}\n" +
				"func BenchmarkE(b *testing.B) {}\n",
			want: []Entry{{Folder: "a", Name: "TestA"}, {Folder: "a", Name: "FuzzB"}, {Folder: "a", Name: "ExampleC"}},
		},
		"a tag of a tier": {
			text: "//go:build long\n\npackage a\nfunc TestA(t *testing.T) {}\n",
			want: []Entry{{Folder: "a", Name: "TestA", Tier: Long}},
		},
		"another tag": {
			text: "//go:build linux && !windows\n\npackage a\nfunc TestA(t *testing.T) {}\n",
			want: []Entry{{Folder: "a", Name: "TestA"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := testsOf("a", "a_test.go", []byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("tests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestJobs(t *testing.T) {
	entries := []Entry{
		{Folder: "a", Name: "TestA", Tier: Test},
		{Folder: "b", Name: "TestB", Tier: Test},
		{Folder: "testbed/c", Name: "TestC", Tier: Test},
		{Folder: "testbed/c", Name: "FuzzC", Tier: Test},
		{Folder: "testbed/c", Name: "TestOnCluster", Tier: Cluster},
		{Folder: "testbed/d", Name: "TestD", Tier: Cluster},
		{Folder: "testbed/d", Name: "TestLong", Tier: Long},
		{Folder: "testbed/sigstore", Name: "TestE", Tier: Test},
		{Name: "TestGone", Fate: "removed: why"},
	}
	for name, c := range map[string]struct {
		got, want []Job
	}{
		"what everybody runs": {
			got: mergeWhole(jobsOf(entries, Test)),
			want: []Job{
				{Module: ".", Folders: []string{"a", "b"}},
				{Module: "testbed", Folders: []string{"testbed/c"}, Run: "^(FuzzC|TestC)$"},
				{Module: "testbed/sigstore", Folders: []string{"testbed/sigstore"}},
			},
		},
		"on clusters": {
			got: jobsOf(entries, Cluster),
			want: []Job{
				{Module: "testbed", Folders: []string{"testbed/c"}, Run: "^(TestOnCluster)$"},
				{Module: "testbed", Folders: []string{"testbed/d"}},
			},
		},
		"long ones of one folder": {
			got: jobsOf(Below(append(entries, Entry{Folder: "testbed2", Name: "TestLong", Tier: Long}), "testbed"),
				Long),
			want: []Job{{Module: "testbed", Folders: []string{"testbed/d"}, Run: "^(TestLong)$"}},
		},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s: jobs (-want +got):\n%s", name, diff)
		}
	}
	packages := Job{Module: "testbed", Folders: []string{"testbed/c"}}.packages()
	if diff := cmp.Diff([]string{"./c"}, packages); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
}
