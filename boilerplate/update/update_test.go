// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
)

var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// mergeByEnds merges additions at the start with additions at the end; any other change is a conflict.
func mergeByEnds(_, current, base, wanted string) (string, bool, error) {
	if end, ok := strings.CutPrefix(current, base); ok {
		if start, ok := strings.CutSuffix(wanted, base); ok {
			return start + base + end, false, nil
		}
	}
	return "<<<<<<< yours\n" + current + "||||||| last\n" + base + "=======\n" + wanted + ">>>>>>> convention\n", true,
		nil
}

func tree(kind convention.Kind, path, text string) convention.Tree {
	r := &convention.Rendered{Kind: kind, Text: text, Convention: "go"}
	if kind == convention.Shared {
		pieces, err := convention.Split(text)
		if err != nil {
			panic(err)
		}
		for _, p := range pieces {
			if p.Name != "" {
				p.Convention = "go"
				r.Regions = append(r.Regions, p)
			}
		}
	}
	return convention.Tree{path: r}
}

// region is a region named go.
func region(text string) string { return "# boilerplate:begin go\n" + text + "# boilerplate:end go\n" }

func except(path, region, expires string) []subscription.Exception {
	return []subscription.Exception{{Path: path, Region: region, Reason: "we differ", Expires: expires}}
}

// result is the result for a file: its text and the messages of the plan; "" if the file does not exist.
type result struct {
	text, note string
	refused    string
	conflict   bool
}

// scenario is one path: its text at the last rendering, now, and at the next rendering. An empty text means no file.
type scenario struct {
	kind                  convention.Kind
	before, current, next string
	to                    string // the new path
	in                    func(*Input)
	want                  result
}

func (s scenario) plan(t *testing.T) (Input, *Plan) {
	t.Helper()
	in := Input{Current: map[string]*File{}, Now: now, Merge: mergeByEnds}
	if s.before != "" {
		first, err := New(Input{Wanted: tree(s.kind, "a", s.before), Now: now, Merge: mergeByEnds})
		if err != nil || len(first.Refusals) > 0 {
			t.Fatal(err, first.Refusals)
		}
		in.Lock, in.Base = first.Lock, first.Base
	}
	if s.current != "" {
		in.Current["a"] = &File{Text: s.current}
	}
	to := "a"
	if s.to != "" {
		to, in.Renames = s.to, map[string]string{"a": s.to}
	}
	if s.next != "" {
		in.Wanted = tree(s.kind, to, s.next)
	}
	if s.in != nil {
		s.in(&in)
	}
	plan, err := New(in)
	if err != nil {
		t.Fatal(err)
	}
	return in, plan
}

// apply returns the files after a plan is applied.
func apply(in Input, plan *Plan) map[string]*File {
	files := maps.Clone(in.Current)
	if len(plan.Refusals) > 0 {
		return files
	}
	for _, c := range plan.Changes {
		if c.After == nil {
			delete(files, c.Path)
			continue
		}
		files[c.Path] = c.After
	}
	return files
}

// TestMatrix covers all updates: each kind of file in each possible state.
func TestMatrix(t *testing.T) {
	const own = "mine\n"
	crlf := func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }
	cases := map[string]scenario{
		"owned: new": {kind: convention.Owned, next: "2\n", want: result{text: "2\n"}},
		"owned: unchanged": {kind: convention.Owned, before: "1\n", current: "1\n", next: "2\n",
			want: result{text: "2\n"}},
		"owned: nothing new": {kind: convention.Owned, before: "1\n", current: "1\n", next: "1\n",
			want: result{text: "1\n"}},
		"owned: changed locally": {kind: convention.Owned, before: "1\n", current: own, next: "2\n",
			want: result{text: own, refused: "edited by hand"}},
		"owned: changed, alike": {kind: convention.Owned, before: "1\n", current: "2\n", next: "2\n",
			want: result{text: "2\n"}},
		"owned: deleted": {kind: convention.Owned, before: "1\n", next: "2\n",
			want: result{text: "2\n", note: "was missing"}},
		"owned: overwritten": {kind: convention.Owned, before: "1\n", current: own, next: "2\n",
			in:   func(in *Input) { in.Overwrite = []string{"a"} },
			want: result{text: "2\n", note: "overwritten"}},
		"owned: there before": {kind: convention.Owned, current: own, next: "2\n",
			want: result{text: own, refused: "is there already"}},
		"merged: adopted": {kind: convention.Merged, current: own, next: "2\n",
			in:   func(in *Input) { in.Adopt = true },
			want: result{text: "2\n"}},
		"a link, excepted": {kind: convention.Owned, before: "1\n", current: own, next: "2\n", in: func(in *Input) {
			in.Current["a"].Obstacle, in.Exceptions = "a symbolic link", except("a", "", "2027-01-01")
		}, want: result{text: own}},
		"owned: adopted": {kind: convention.Owned, current: own, next: "2\n",
			in:   func(in *Input) { in.Adopt = true },
			want: result{text: "2\n", note: "overwritten"}},
		"owned: exception": {kind: convention.Owned, before: "1\n", current: own, next: "2\n",
			in:   func(in *Input) { in.Exceptions = except("a", "", "2026-11-28") },
			want: result{text: own}},
		"owned: exception over": {kind: convention.Owned, before: "1\n", current: own, next: "2\n",
			in:   func(in *Input) { in.Exceptions = except("a", "", "2026-11-27") },
			want: result{text: own, refused: "edited by hand"}},
		"owned: removed":         {kind: convention.Owned, before: "1\n", current: "1\n"},
		"owned: removed, edited": {kind: convention.Owned, before: "1\n", current: own, want: result{text: own}},
		"owned: renamed": {kind: convention.Owned, before: "1\n", current: "1\n", next: "2\n", to: "b",
			want: result{text: "2\n", note: "renamed from a"}},
		"owned: renamed, edited": {kind: convention.Owned, before: "1\n", current: own, next: "2\n", to: "b",
			want: result{text: "", refused: "edited by hand"}},
		"owned: CRLF": {kind: convention.Owned, before: "1\n", current: "1\r\n", next: "2\n",
			want: result{text: "2\r\n"}},
		"owned: in the way": {kind: convention.Owned, next: "2\n",
			in:   func(in *Input) { in.Current["a"] = &File{Obstacle: "a submodule"} },
			want: result{refused: "a submodule is in the way"}},
		"merged: changed locally": {kind: convention.Merged, before: "1\n", current: "1\nmine\n", next: "0\n1\n",
			want: result{text: "0\n1\nmine\n"}},
		"merged: conflict": {kind: convention.Merged, before: "1\n", current: own, next: "2\n",
			want: result{text: "<<<<<<< yours\nmine\n||||||| last\n1\n=======\n2\n>>>>>>> convention\n",
				note: "conflict", conflict: true}},
		"merged: CRLF": {kind: convention.Merged, before: "1\n", current: "1\r\nmine\r\n", next: "0\n1\n",
			want: result{text: "0\r\n1\r\nmine\r\n"}},
		"merged: deleted": {kind: convention.Merged, before: "1\n", next: "1\n",
			want: result{text: "1\n", note: "was missing"}},
		"merged: there before": {kind: convention.Merged, current: own, next: "2\n",
			want: result{text: own, refused: "is there already"}},
		"merged: exception": {kind: convention.Merged, before: "1\n", current: own, next: "2\n",
			in:   func(in *Input) { in.Exceptions = except("a", "", "2027-01-01") },
			want: result{text: own}},
		"merged: removed, edited": {kind: convention.Merged, before: "1\n", current: own, want: result{text: own}},
		"merged: removed":         {kind: convention.Merged, before: "1\n", current: "1\n"},
		"merged: renamed, edited": {kind: convention.Merged, before: "1\n", current: "1\nmine\n",
			next: "0\n1\n", to: "b",
			want: result{text: "0\n1\nmine\n", note: "renamed from a"}},
		"merged: without a base": {kind: convention.Merged, before: "1\n", current: own, next: "2\n",
			in:   func(in *Input) { in.Base = nil },
			want: result{text: own, refused: "nothing can be merged"}},
		"merged: base not needed": {kind: convention.Merged, before: "1\n", current: "1\n", next: "2\n",
			in:   func(in *Input) { in.Base = nil },
			want: result{text: "2\n"}},
		"once: new":          {kind: convention.Once, next: "2\n", want: result{text: "2\n"}},
		"once: there before": {kind: convention.Once, current: own, next: "2\n", want: result{text: own}},
		"once: changed": {kind: convention.Once, before: "1\n", current: own, next: "2\n",
			want: result{text: own}},
		"once: deleted": {kind: convention.Once, before: "1\n", next: "2\n"},
		"once: renamed": {kind: convention.Once, before: "1\n", current: own, next: "2\n", to: "b",
			want: result{text: own, note: "renamed from a"}},
		"once: removed": {kind: convention.Once, before: "1\n", current: own, want: result{text: own}},
		"shared: new": {kind: convention.Shared, next: "x\n" + region("2\n"),
			want: result{text: "x\n" + region("2\n")}},
		"shared: there before": {kind: convention.Shared, current: own, next: region("2\n"),
			want: result{text: own + "\n" + region("2\n")}},
		"shared: no last line": {kind: convention.Shared, current: "mine", next: region("2\n"),
			want: result{text: own + "\n" + region("2\n")}},
		"shared: around": {kind: convention.Shared, before: region("1\n"), current: own + region("1\n") + own,
			next: region("2\n"),
			want: result{text: own + region("2\n") + own}},
		"shared: CRLF": {kind: convention.Shared, before: region("1\n"), current: crlf(own + region("1\n")),
			next: region("2\n"),
			want: result{text: crlf(own + region("2\n"))}},
		"shared: mixed lines": {kind: convention.Shared, before: region("1\n"), current: "a\r\nb\n" + region("1\n"),
			next: region("2\n"),
			want: result{text: "a\r\nb\n" + region("2\n")}},
		"shared: edited, same": {kind: convention.Shared, before: region("1\n"), current: region(own),
			next: region("1\n"),
			want: result{text: region(own)}},
		"shared: conflict": {kind: convention.Shared, before: region("1\n"), current: own + region("3\n"),
			next: region("2\n"),
			want: result{text: own + "<<<<<<< yours\n" + region("3\n") + "||||||| last\n" + region("1\n") +
				"=======\n" + region("2\n") + ">>>>>>> convention\n",
				note: "conflict", conflict: true}},
		"shared: overwritten": {kind: convention.Shared, before: region("1\n"), current: own + region("3\n"),
			next: region("2\n"),
			in:   func(in *Input) { in.Overwrite = []string{"a"} },
			want: result{text: own + region("2\n"), note: "region go overwritten"}},
		"shared: region deleted": {kind: convention.Shared, before: region("1\n"), current: own, next: region("2\n"),
			want: result{text: own + "\n" + region("2\n"), note: "region go was missing"}},
		"shared: region excepted": {kind: convention.Shared, before: region("1\n"), current: region(own),
			next: region("2\n"),
			in:   func(in *Input) { in.Exceptions = except("a", "go", "2027-01-01") },
			want: result{text: region(own)}},
		"shared: deleted": {kind: convention.Shared, before: region("1\n"), next: region("2\n"),
			want: result{text: region("2\n"), note: "was missing"}},
		"shared: broken": {kind: convention.Shared, before: region("1\n"), current: "# boilerplate:begin go\n1\n",
			next: region("2\n"),
			want: result{text: "# boilerplate:begin go\n1\n", refused: "regions are broken"}},
		"shared: not ours": {kind: convention.Shared, current: region(own), next: region("2\n"),
			want: result{text: region(own), refused: "with another text"}},
		"shared: removed": {kind: convention.Shared, before: region("1\n"), current: own + "\n" + region("1\n"),
			want: result{text: own, note: "region go removed"}},
		"shared: removed whole": {kind: convention.Shared, before: region("1\n"), current: region("1\n")},
		"shared: removed, edited": {kind: convention.Shared, before: region("1\n"), current: region(own),
			want: result{text: own, note: "region go was edited by hand, and stays without its markers"}},
		"shared: renamed": {kind: convention.Shared, before: region("1\n"), current: own + region("1\n"),
			next: region("2\n"), to: "b",
			want: result{text: own + region("2\n"), note: "renamed from a"}},
		"owned, now shared": {kind: convention.Owned, before: "1\n", current: "1\n",
			in:   func(in *Input) { in.Wanted = tree(convention.Shared, "a", region("2\n")) },
			want: result{text: region("2\n")}},
		"owned, edited, shared": {kind: convention.Owned, before: "1\n", current: own,
			in:   func(in *Input) { in.Wanted = tree(convention.Shared, "a", region("2\n")) },
			want: result{text: own + "\n" + region("2\n")}},
		"owned, now merged": {kind: convention.Owned, before: "1\n", current: "1\n",
			in:   func(in *Input) { in.Wanted = tree(convention.Merged, "a", "2\n") },
			want: result{text: "2\n"}},
		"shared, now owned": {kind: convention.Shared, before: region("1\n"), current: own + region("1\n"),
			in:   func(in *Input) { in.Wanted = tree(convention.Owned, "a", "2\n") },
			want: result{text: own + region("1\n"), refused: "edited by hand"}},
	}
	for name, s := range cases {
		t.Run(name, func(t *testing.T) {
			in, plan := s.plan(t)
			path := "a"
			if s.to != "" {
				path = s.to
			}
			files, got := apply(in, plan), result{conflict: len(ListConflicts(plan.Changes)) > 0}
			if f := files[path]; f != nil {
				got.text = f.Text
			}
			for _, c := range plan.Changes {
				if c.Path == path && c.After != nil {
					got.note = c.Note
				}
			}
			refused := ""
			for _, r := range plan.Refusals {
				refused = r.Reason
			}
			if s.want.refused == "" && refused != "" || !strings.Contains(refused, s.want.refused) {
				t.Errorf("refused because %q, want %q", refused, s.want.refused)
			}
			s.want.refused = ""
			if refused != "" {
				got.note, got.conflict = "", false
			}
			if diff := cmp.Diff(s.want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if s.to != "" && refused == "" && files["a"] != nil {
				t.Error("the old path is still there")
			}
			if refused == "" && !got.conflict {
				checkIdempotent(t, in, plan, files)
			}
		})
	}
}

// checkIdempotent checks that the next plan changes no file.
func checkIdempotent(t *testing.T, in Input, plan *Plan, files map[string]*File) {
	t.Helper()
	again, err := New(Input{Lock: plan.Lock, Base: plan.Base, Current: files, Wanted: in.Wanted, Now: now,
		Exceptions: in.Exceptions, Merge: mergeByEnds})
	if err != nil || len(again.Changes) > 0 || len(again.Refusals) > 0 {
		t.Errorf("a second update: %v, %+v, %+v", err, again.Changes, again.Refusals)
	}
	if diff := cmp.Diff(plan.Lock, again.Lock); diff != "" {
		t.Errorf("another lock:\n%s", diff)
	}
	if diff := cmp.Diff(plan.Base, again.Base); diff != "" {
		t.Errorf("another base:\n%s", diff)
	}
}

// TestNothingIsLost runs random updates. Each line that a user wrote is in the tree after the update, or the update
// is refused.
func TestNothingIsLost(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		kinds := []convention.Kind{convention.Owned, convention.Merged, convention.Shared, convention.Once}
		text := func(prefix string) string {
			var out strings.Builder
			for range 1 + r.IntN(4) {
				out.WriteString(prefix + string(rune('a'+r.IntN(6))) + "\n")
			}
			return out.String()
		}
		rendered := func(kind convention.Kind) string {
			if kind == convention.Shared {
				return text("c ") + region(text("c "))
			}
			return text("c ")
		}
		s := scenario{kind: kinds[r.IntN(4)]}
		if r.IntN(4) > 0 {
			s.before = rendered(s.kind)
			s.current = edit(r, s.before)
		} else if r.IntN(2) > 0 {
			s.current = text("u ")
		}
		next := kinds[r.IntN(4)]
		if r.IntN(3) > 0 {
			next = s.kind
		}
		s.in = func(in *Input) {
			path := "a"
			if r.IntN(4) == 0 {
				path, in.Renames = "b", map[string]string{"a": "b"}
			}
			if r.IntN(5) > 0 {
				in.Wanted = tree(next, path, rendered(next))
			}
			switch r.IntN(6) {
			case 0:
				in.Exceptions = except("a", "", "2027-01-01")
			case 1:
				in.Base = nil
			case 2:
				in.Current["b"] = &File{Text: text("u ")}
			}
		}
		in, plan := s.plan(t)
		after := ""
		for _, f := range apply(in, plan) {
			after += f.Text
		}
		for _, f := range in.Current {
			for line := range strings.Lines(f.Text) {
				if strings.HasPrefix(line, "u ") && !strings.Contains(after, strings.TrimSpace(line)) {
					t.Fatalf("seed %d: %q is lost\nbefore %q\ncurrent %q\nafter %q\n%+v", seed, line, s.before, f.Text,
						after, plan.Changes)
				}
			}
		}
	}
}

// edit deletes, replaces and adds lines, like a user.
func edit(r *rand.Rand, text string) string {
	lines := slices.Collect(strings.Lines(text))
	for range r.IntN(3) {
		at := r.IntN(len(lines) + 1)
		switch line := "u " + string(rune('a'+r.IntN(20))) + "\n"; {
		case r.IntN(2) == 0 && at < len(lines):
			lines[at] = line
		default:
			lines = slices.Insert(lines, at, line)
		}
	}
	out := strings.Join(lines, "")
	if r.IntN(4) == 0 {
		out = strings.ReplaceAll(out, "\n", "\r\n")
	}
	return out
}

func TestCheck(t *testing.T) {
	wanted := convention.Tree{}
	maps.Copy(wanted, tree(convention.Owned, "owned", "1\n"))
	maps.Copy(wanted, tree(convention.Shared, "shared", region("1\n")))
	maps.Copy(wanted, tree(convention.Merged, "merged", "1\n"))
	maps.Copy(wanted, tree(convention.Once, "once", "1\n"))
	never := tree(convention.Owned, "never", "1\n")
	maps.Copy(never, wanted)
	plan, err := New(Input{Wanted: never, Exceptions: except("never", "", "2026-11-28"), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	use := subscription.Use{Name: "go", Source: subscription.Builtin, Version: "0.1.0"}
	plan.Lock.Conventions = []subscription.Locked{{Use: use}}
	cases := map[string]struct {
		change func(*State)
		want   []string
	}{
		"as rendered": {func(*State) {}, nil},
		"edited": {func(s *State) { s.Current["owned"].Text = "2\n" },
			[]string{"owned: edited (go@0.1.0): the file was edited by hand, and its convention owns it"}},
		"CRLF": {func(s *State) { s.Current["owned"].Text = "1\r\n" }, nil},
		"missing": {func(s *State) { delete(s.Current, "owned"); delete(s.Current, "once") },
			[]string{"owned: missing (go@0.1.0): the file is missing"}},
		"mode": {func(s *State) { s.Current["owned"].Executable = true },
			[]string{"owned: mode (go@0.1.0): the file is executable, and should not be"}},
		"a link": {func(s *State) { s.Current["owned"].Obstacle = "a symbolic link" },
			[]string{"owned: not-a-file (go@0.1.0): a symbolic link is in the way"}},
		"merged is for both": {func(s *State) { s.Current["merged"].Text = "2\n" }, nil},
		"a region edited": {func(s *State) { s.Current["shared"].Text = "a\n" + region("2\n") },
			[]string{"shared:2: region-edited (go@0.1.0): region go was edited by hand, and its convention owns it"}},
		"a region missing": {func(s *State) { s.Current["shared"].Text = "a\n" },
			[]string{"shared: region-missing (go@0.1.0): region go is missing"}},
		"a region broken": {func(s *State) { s.Current["shared"].Text = "# boilerplate:end go\n" },
			[]string{"shared: region-broken (go@0.1.0): line 1: region go ends, and did not begin"}},
		"a conflict": {func(s *State) { s.Current["merged"].Text = "1\n<<<<<<< yours\n" },
			[]string{"merged:2: conflict-marker (go@0.1.0): the file has the markers of a conflict"}},
		"an exception": {func(s *State) {
			s.Current["owned"].Text, s.Subscription.Exceptions = "2\n", except("owned", "", "2026-11-28")
		}, nil},
		"an exception for a region": {func(s *State) {
			s.Current["shared"].Text, s.Subscription.Exceptions = region("2\n"), except("shared", "go", "2026-11-28")
		}, nil},
		"an exception that has expired": {
			func(s *State) { s.Subscription.Exceptions = except("owned", "", "2026-11-27") },
			[]string{".boilerplate.yaml: exception-expired: the exception for owned expired on 2026-11-27: we differ"}},
		"an exception for nothing": {func(s *State) { s.Subscription.Exceptions = except("other", "", "2026-11-28") },
			[]string{".boilerplate.yaml: exception-unused: the exception is for other, which no convention brings"}},
		"an exception for what was never rendered": {
			func(s *State) { s.Subscription.Exceptions = except("never", "", "2026-11-28") }, nil},
		"another parameter": {func(s *State) { s.Subscription.Parameters = map[string]any{"a": "b"} },
			[]string{".boilerplate.yaml: not-updated: parameter a has another value than what was rendered"}},
		"another version": {func(s *State) { s.Subscription.Conventions[0].Version = "0.2.0" },
			[]string{".boilerplate.yaml: not-updated: convention go is 0.2.0, and 0.1.0 was rendered"}},
		"nothing rendered": {func(s *State) { s.Lock = nil },
			[]string{".boilerplate.yaml: not-updated: nothing was rendered yet"}},
		"in progress": {func(s *State) { s.InProgress = true },
			[]string{".boilerplate/update.yaml: update-in-progress: an update is in progress"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := State{Subscription: &subscription.Subscription{Conventions: []subscription.Use{use}}, Lock: plan.Lock,
				Current: map[string]*File{}, Now: now}
			for path, r := range wanted {
				s.Current[path] = &File{Text: r.Text}
			}
			c.change(&s)
			var got []string
			for _, f := range Check(s) {
				got = append(got, f.String())
				if f.Remedy == "" || Rules[f.Rule].Description == "" {
					t.Errorf("%s has no remedy or rule", f)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEject(t *testing.T) {
	const header = "# Code generated by bellwether boilerplate from convention go 0.1.0. DO NOT EDIT.\n"
	wanted := convention.Tree{}
	maps.Copy(wanted, tree(convention.Owned, "owned", header+"1\n"))
	maps.Copy(wanted, tree(convention.Shared, "shared", region("1\n")))
	other := convention.Region{Name: "org", Convention: "org",
		Text: "# boilerplate:begin org\n2\n# boilerplate:end org\n"}
	wanted["shared"].Regions = append(wanted["shared"].Regions, other)
	wanted["shared"].Text += other.Text
	plan, err := New(Input{Wanted: wanted, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	plan.Lock.Conventions = []subscription.Locked{{Use: subscription.Use{Name: "go"}},
		{Use: subscription.Use{Name: "org"}}}
	in := Input{Current: map[string]*File{"owned": {Text: header + "1\n"}, "shared": {Text: wanted["shared"].Text}}}
	for name, want := range map[string]map[string]string{
		"":    {"owned": "1\n", "shared": "1\n2\n"},
		"go":  {"owned": "1\n", "shared": "1\n" + other.Text},
		"org": {"owned": header + "1\n", "shared": region("1\n") + "2\n"},
	} {
		ejected := Eject(plan.Lock, plan.Base, in.Current, name)
		for path, f := range apply(in, ejected) {
			if f.Text != want[path] {
				t.Errorf("eject %q: %s is %q, want %q", name, path, f.Text, want[path])
			}
		}
		if left := len(ejected.Lock.Conventions); name == "" && left != 0 || name != "" && left != 1 {
			t.Errorf("eject %q: %d conventions are left", name, left)
		}
		if got := ejected.Base["shared"]; name == "go" && got != other.Text {
			t.Errorf("eject %q: the base is %q", name, got)
		}
	}
}

func TestDiff(t *testing.T) {
	got := Diff([]Change{
		{Path: "d/new", After: &File{Text: "1\n2"}},
		{Path: "run", Before: &File{Text: "1\n"}, After: &File{Text: "2\r\n", Executable: true}},
		{Path: "gone", Before: &File{Text: "1\n", Executable: true}},
		{Path: "picture", After: &File{Text: "\x00"}},
		{Path: "mode", Before: &File{Text: "1\n", Executable: true}, After: &File{Text: "1\n"}},
	})
	want := "--- /dev/null\n+++ b/d/new\n@@ -0,0 +1,2 @@\n+1\n+2\n" +
		"--- a/run\n+++ b/run\n@@ -1 +1 @@\n-1\n+2\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n" +
		"--- /dev/null\n+++ b/picture\n@@ -0,0 +1 @@\n+a binary file with digest " + Digest("\x00") + "\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	forward, backward := "", ""
	for i := range maxCompared { // a comparison would take minutes
		forward, backward = fmt.Sprintf("%s%d\n", forward, i), fmt.Sprintf("%d\n%s", i, backward)
	}
	got = Diff([]Change{{Path: "long", Before: &File{Text: forward}, After: &File{Text: backward}}})
	if len(got) > 1000 || !strings.Contains(got, "too long to be shown") {
		t.Errorf("%d bytes of a long difference", len(got))
	}
}
