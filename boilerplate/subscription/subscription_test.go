// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const start = "apiVersion: boilerplate.bellwether.dev/v1alpha1\nkind: Subscription\n"

const text = start + `# What we follow.
conventions:
  - name: go # ours
    source: builtin
    version: 0.1.0
  # The organisation's.
  - {name: org, source: "oci://registry.example.com/org:1.0.0"}
parameters:
  # Of go.mod.
  module: example.org/echo
exceptions:
  - path: .golangci.yml
    reason: We are on an older linter.
    expires: 2027-01-31
`

func TestParse(t *testing.T) {
	s, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	e := s.Exceptions[0]
	if e.Line != 14 || s.Use("org").Source != "oci://registry.example.com/org:1.0.0" || s.Use("none") != nil {
		t.Errorf("got %+v", s)
	}
	day := func(d int) time.Time { return time.Date(2027, 1, d, 23, 0, 0, 0, time.UTC) }
	if e.IsExpired(day(31)) || !e.IsExpired(day(32)) || e.DaysLeft(day(30)) != 1 {
		t.Error("an exception holds until the end of its day")
	}
}

func TestParseErrors(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"an unknown field": {start + "conventions: []\nrun: make\n", "line 4: field run not found"},
		"another kind":     {strings.Replace(start, "Subscription", "Lock", 1), "must be of"},
		"no reason": {start + "conventions: []\nexceptions:\n- {path: a, reason: ' ', expires: 2027-01-31}\n",
			"line 5"},
		"no day": {start + "conventions: []\nexceptions:\n- {path: a, reason: b}\n", "line 5"},
		"a path that leads out": {start + "conventions: []\nexceptions:\n" +
			"- {path: ../a, reason: b, expires: 2027-01-31}\n",
			"line 5"},
		"a key that leads out": {start + "conventions: []\nkeys: [../../id_rsa]\n", "keys"},
		"no source": {start + "conventions:\n- {name: a}\n",
			"line 4: invalid subscription: convention a has no source"},
		"twice": {start + "conventions:\n- {name: a, source: builtin}\n- {name: a, source: builtin}\n",
			"line 5: invalid subscription: convention a is there twice"},
		"aliases": {start + "conventions: []\nparameters:\n  a: &a [1,1,1,1,1,1,1,1,1,1]\n" +
			"  b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n  c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
			"  d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n  e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n" +
			"  f: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n", "refused"},
		"behind an alias": {start + "conventions: []\nparameters: " +
			"{a: &e [{path: ../a, reason: b, expires: 2027-01-31}]}\n" +
			"exceptions: *e\n", "line 0: invalid subscription: exception"},
		"behind a merge": {start + "<<: {conventions: [{name: a}]}\n",
			"line 0: invalid subscription: convention a has"},
		"nothing": {"", "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse([]byte(c.text)); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestWriteKeepsComments changes some values, and compares the text line by line.
func TestWriteKeepsComments(t *testing.T) {
	s, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s.Use("go").Version, s.Use("go").Digest = "0.2.0", "sha256:abc"
	s.Parameters["name"] = "echo"
	s.Exceptions = nil
	got, err := s.Write([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(text, "version: 0.1.0\n", "version: 0.2.0\n    digest: sha256:abc\n", 1)
	want, _, _ = strings.Cut(want, "exceptions:")
	want += "  name: echo\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again, err := Parse(got); err != nil || again.Parameters["name"] != "echo" {
		t.Errorf("got %v, %v", again, err)
	}
}

func TestLockIsReadAsWritten(t *testing.T) {
	want := &Lock{Conventions: []Locked{{Use: Use{Name: "go", Source: Builtin, Version: "0.1.0"},
		Parameters: []string{"a"}}},
		Parameters: map[string]any{"a": []any{"b"}, "n": 2},
		Files: []LockedFile{{Path: "Makefile", Kind: "shared", Convention: "go",
			Regions: []LockedRegion{{Name: "go", Convention: "go", Digest: "sha256:1"}}}}}
	written, err := want.Write()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseLock(written)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v; (-want +got):\n%s", err, diff)
	}
	if got.File("Makefile").Region("go").Digest != "sha256:1" || got.File("a").Region("b") != nil {
		t.Error("a region is not found")
	}
	bad := strings.Replace(string(written), "path: Makefile", "path: ../Makefile", 1)
	if _, err := ParseLock([]byte(bad)); err == nil {
		t.Error("a path that leads out is not refused")
	}
}

func TestDifferences(t *testing.T) {
	lock := &Lock{Conventions: []Locked{{Use: Use{Name: "go", Source: Builtin, Version: "0.1.0"}},
		{Use: Use{Name: "old"}}},
		Parameters: map[string]any{"a": "b"}}
	s := &Subscription{Conventions: []Use{{Name: "go", Source: Builtin, Version: "0.2.0"}, {Name: "new"}},
		Parameters: map[string]any{"a": "c"}}
	want := []string{"convention go is 0.2.0, and 0.1.0 was rendered", "convention new was not rendered yet",
		"convention old is no longer subscribed to", "parameter a has another value than what was rendered"}
	if diff := cmp.Diff(want, s.Differences(lock)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := s.Differences(nil); len(got) != 1 {
		t.Errorf("without a lock: %v", got)
	}
}
