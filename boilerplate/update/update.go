// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package update decides what an update of a repository changes, and what of a repository has drifted from its
// conventions. It is pure: its inputs are the files as they are, what was rendered last, and what is rendered now; the
// three-way merge of texts is a function that it is given. Nothing that a user wrote is lost: it is in the tree after
// the update, or between the markers of a conflict, or the update is refused.
package update

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
)

// File is a file of a repository.
type File struct {
	Text       string
	Executable bool
	Obstacle   string // what is at the path, or on the way to it, if that is no file: a symbolic link, a submodule
}

// Merge merges two versions of a text of a path with their common ancestor. It reports whether the result has the
// markers of conflicts.
type Merge func(path, current, base, wanted string) (text string, conflict bool, err error)

// Input is what a plan is made of.
type Input struct {
	Lock *subscription.Lock // what was rendered last; nil for a repository without an update so far
	Base map[string]string  // the texts as rendered last of merged files, and of the regions of shared ones
	// Current are the files of the repository at all paths of Lock, Wanted and Renames, as far as they are there.
	Current map[string]*File
	Wanted  convention.Tree
	Renames map[string]string // new paths of files by their old ones

	Exceptions []subscription.Exception
	Overwrite  []string // paths of files whose edits by hand are given up
	Adopt      bool     // overwrite files that were there before the convention
	Now        time.Time
	Merge      Merge

	eject bool // leave what no convention brings any more, without headers and markers
}

// Change is one file that an update writes or removes.
type Change struct {
	Path          string
	Kind          convention.Kind
	Convention    string
	Before, After *File  // nil for a file that is not there, and for one that is removed
	Conflict      bool   // After has the markers of conflicts
	Note          string // what is unusual about it; empty for most
}

// String is the change in one line.
func (c Change) String() string {
	action := "update"
	switch {
	case c.Before == nil:
		action = "create"
	case c.After == nil:
		action = "remove"
	}
	note := strings.TrimSuffix("; "+c.Note, "; ")
	return fmt.Sprintf("%s %s (%s, %s%s)", action, c.Path, c.Kind, c.Convention, note)
}

// Refusal is why an update cannot be made.
type Refusal struct {
	Path, Reason string
	Remedies     []string // what to do, each by itself
}

// Plan is what an update does. With refusals it does nothing.
type Plan struct {
	Changes  []Change // sorted by their paths
	Refusals []Refusal
	Notes    []string           // what was left as it is, a sentence each
	Lock     *subscription.Lock // after the update, as is Base
	Base     map[string]string
}

// Conflicts are the paths with markers of conflicts.
func Conflicts(changes []Change) []string {
	return ChangedPaths(slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return !c.Conflict }))
}

// ChangedPaths are the paths of changes.
func ChangedPaths(changes []Change) []string {
	var out []string
	for _, c := range changes {
		out = append(out, c.Path)
	}
	return out
}

// New makes a plan. The lock of the plan has files alone; who calls it adds conventions and parameters. The error is
// one of Merge.
func New(in Input) (*Plan, error) {
	p := &planner{Input: in, plan: &Plan{Lock: &subscription.Lock{}, Base: map[string]string{}},
		locked: map[string]*subscription.LockedFile{}, renamed: map[string]string{}}
	p.Current, p.Base = maps.Clone(in.Current), maps.Clone(in.Base)
	if in.Lock != nil {
		for i := range in.Lock.Files {
			p.locked[in.Lock.Files[i].Path] = &in.Lock.Files[i]
		}
	}
	for _, from := range slices.Sorted(maps.Keys(in.Renames)) {
		p.rename(from, in.Renames[from])
	}
	for _, path := range sets.List(sets.KeySet(p.locked).Union(sets.KeySet(in.Wanted))) {
		p.file(p.target(path))
	}
	slices.SortFunc(p.plan.Changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return p.plan, p.err
}

// planner makes one plan.
type planner struct {
	Input
	plan    *Plan
	locked  map[string]*subscription.LockedFile
	renamed map[string]string // the old paths of files by their new ones
	err     error             // the first one of Merge
}

// target is one path: what was rendered, what is there, and what is wanted. Each may be nil.
type target struct {
	path    string
	locked  *subscription.LockedFile
	wanted  *convention.Rendered
	current *File
	text    string // that of current, with line feeds alone where crlf says that it has none of them
	crlf    bool
}

func (p *planner) target(path string) *target {
	t := &target{path: path, locked: p.locked[path], wanted: p.Wanted[path], current: p.Current[path]}
	if t.current != nil {
		t.text, t.crlf = unixLines(t.current.Text)
	}
	return t
}

// isAsRendered reports whether the file is what was rendered last.
func (t *target) isAsRendered() bool {
	return t.current != nil && t.locked != nil && Digest(t.current.Text) == t.locked.Digest
}

// unixLines returns a text all of whose lines end with CR LF with line feeds alone. Any other text stays as it is.
func unixLines(text string) (string, bool) {
	crlf := strings.Count(text, "\r\n")
	if crlf == 0 || crlf != strings.Count(text, "\n") || strings.ContainsRune(text, 0) {
		return text, false
	}
	return strings.ReplaceAll(text, "\r\n", "\n"), true
}

// lineEnds returns a text with the line ends that a file has.
func lineEnds(text string, crlf bool) string {
	if crlf {
		return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
	}
	return text
}

// Digest identifies a text, whether its lines end with LF or with CR LF.
func Digest(text string) string {
	unix, _ := unixLines(text)
	sum := sha256.Sum256([]byte(unix))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// rename moves a file to its new path before anything else is decided.
func (p *planner) rename(from, to string) {
	t := p.target(from)
	if t.locked == nil || p.Wanted[to] == nil || t.wanted != nil || p.locked[to] != nil {
		return // The path is decided as any other.
	}
	if t.current != nil && (t.current.Obstacle != "" || p.Current[to] != nil) {
		p.refuse(from, fmt.Sprintf("it is renamed to %s, and one of them is in the way", to),
			"move or remove the one that you do not need, and commit")
		return
	}
	moved := *t.locked
	moved.Path = to
	p.locked[to] = &moved
	delete(p.locked, from)
	if base, ok := p.Base[from]; ok {
		p.Base[to] = base
	}
	if t.current != nil {
		p.Current[to], p.renamed[to] = t.current, from
		p.remove(t, "renamed to "+to)
	}
}

func (p *planner) file(t *target) {
	switch {
	case subscription.IsExcepted(p.Exceptions, t.path, "", p.Now):
		p.keepExcepted(t)
	case t.current != nil && t.current.Obstacle != "" && t.wanted == nil:
		p.note("%s is %s, and no longer of a convention", t.path, t.current.Obstacle)
	case t.current != nil && t.current.Obstacle != "":
		p.refuse(t.path, t.current.Obstacle+" is in the way", "remove it, or add an exception for "+t.path)
	case t.wanted == nil:
		p.release(t)
	case t.wanted.Kind == convention.Owned:
		p.owned(t)
	case t.wanted.Kind == convention.Once:
		p.once(t)
	case t.wanted.Kind == convention.Merged:
		p.merged(t)
	default:
		p.shared(t)
	}
}

// keepExcepted leaves a file to the repository. What was rendered before the exception stays the ancestor of the
// update after it.
func (p *planner) keepExcepted(t *target) {
	if from := p.renamed[t.path]; from != "" {
		p.write(t, t.text, "renamed from "+from+"; kept by an exception", false)
	} else if t.wanted != nil {
		p.note("%s stays as it is, by an exception", t.path)
	}
	switch {
	case t.wanted == nil:
		return
	case t.locked == nil:
		p.plan.Lock.Excepted = append(p.plan.Lock.Excepted, t.path)
		return
	}
	p.plan.Lock.Files = append(p.plan.Lock.Files, *t.locked)
	if base, ok := p.Base[t.path]; ok {
		p.plan.Base[t.path] = base
	}
}

func (p *planner) owned(t *target) {
	p.lock(t)
	switch isNew := t.locked == nil; {
	case t.current == nil && !isNew:
		p.write(t, t.wanted.Text, "was missing", false)
	case t.current == nil, t.text == t.wanted.Text, t.isAsRendered():
		p.write(t, t.wanted.Text, "", false)
	case slices.Contains(p.Overwrite, t.path), isNew && p.Adopt:
		p.write(t, t.wanted.Text, "overwritten", false)
	case isNew:
		p.refuseTaken(t.path)
	default:
		p.refuse(t.path, "it was edited by hand, and convention "+t.wanted.Convention+" owns it",
			"add an exception with a reason and a day to "+subscription.File,
			"give the edit up with --overwrite "+t.path,
			"move the edit to a file of your own, or outside of the regions of a shared file")
	}
}

func (p *planner) refuseTaken(path string) {
	p.refuse(path, "it is there already, and is not from a convention",
		"compare it with --dry-run --adopt, and overwrite it with --adopt, or with --overwrite "+path,
		"keep it with an exception in "+subscription.File)
}

func (p *planner) once(t *target) {
	p.lock(t)
	switch {
	case p.renamed[t.path] != "":
		p.write(t, t.text, "", false)
	case t.current == nil && t.locked == nil:
		p.write(t, t.wanted.Text, "", false)
	}
}

func (p *planner) merged(t *target) {
	p.lock(t)
	p.plan.Base[t.path] = t.wanted.Text
	switch base, hasBase := p.base(t); {
	case t.current == nil && t.locked != nil:
		p.write(t, t.wanted.Text, "was missing", false)
	case t.current == nil, slices.Contains(p.Overwrite, t.path):
		p.write(t, t.wanted.Text, "", false)
	case t.locked == nil && t.text != t.wanted.Text && !p.Adopt:
		p.refuseTaken(t.path)
	case t.locked != nil && !hasBase && t.text != t.wanted.Text:
		p.refuseWithoutBase(t.path)
	default:
		text, conflict := p.merge(t.path, t.text, base, t.wanted.Text)
		p.write(t, text, "", conflict)
	}
}

func (p *planner) refuseWithoutBase(path string) {
	p.refuse(path, "what was rendered last is not in "+subscription.BaseFolder+", so that nothing can be merged",
		"restore it with `git checkout HEAD -- "+subscription.BaseFolder+"`",
		"give your edits up with --overwrite "+path)
}

// base is the text as it was rendered last.
func (p *planner) base(t *target) (string, bool) {
	base, ok := p.Base[t.path]
	if base, _ = unixLines(base); ok && t.locked != nil && t.locked.Kind == t.wanted.Kind {
		return base, true
	}
	return t.text, t.isAsRendered() // It was owned, or its base is missing.
}

// merge merges three ways, and calls the merge of texts only where both sides have changed.
func (p *planner) merge(path, current, base, wanted string) (string, bool) {
	switch {
	case current == wanted, wanted == base:
		return current, false
	case current == base:
		return wanted, false
	}
	text, conflict, err := p.Merge(path, current, base, wanted)
	if err != nil && p.err == nil {
		p.err = fmt.Errorf("merge %s: %w", path, err)
	}
	return text, conflict
}

// write plans a text for a path, with the line ends that it has.
func (p *planner) write(t *target, text, note string, conflict bool) {
	p.change(t, lineEnds(text, t.crlf), note, conflict)
}

// change plans exactly these bytes for a path, unless it has them.
func (p *planner) change(t *target, text, note string, conflict bool) {
	after := &File{Text: text}
	if t.wanted == nil || t.wanted.Kind == convention.Once && t.current != nil {
		after.Executable = t.current.Executable
	} else {
		after.Executable = t.wanted.Executable
	}
	if conflict {
		note = strings.TrimPrefix(note+"; conflict", "; ")
	}
	c := Change{Before: t.current, After: after, Conflict: conflict, Note: note}
	switch from := p.renamed[t.path]; {
	case from != "":
		c.Before, c.Note = nil, cmp.Or(note, "renamed from "+from)
	case t.current == nil:
	case *t.current == *after:
		return
	case t.current.Executable != after.Executable:
		c.Note = strings.TrimPrefix(note+"; another mode", "; ")
	}
	p.add(t, c)
}

func (p *planner) remove(t *target, note string) {
	p.add(t, Change{Before: t.current, Note: note})
}

func (p *planner) add(t *target, c Change) {
	c.Path = t.path
	if t.wanted != nil {
		c.Kind, c.Convention = t.wanted.Kind, t.wanted.Convention
	} else {
		c.Kind, c.Convention = t.locked.Kind, t.locked.Convention
	}
	p.plan.Changes = append(p.plan.Changes, c)
}

// lock notes what is rendered now.
func (p *planner) lock(t *target) {
	p.plan.Lock.Files = append(p.plan.Lock.Files, subscription.LockedFile{Path: t.path, Kind: t.wanted.Kind,
		Convention: t.wanted.Convention, Executable: t.wanted.Executable, Digest: Digest(t.wanted.Text)})
}

func (p *planner) refuse(path, reason string, remedies ...string) {
	p.plan.Refusals = append(p.plan.Refusals, Refusal{Path: path, Reason: reason, Remedies: remedies})
}

func (p *planner) note(format string, args ...any) {
	p.plan.Notes = append(p.plan.Notes, fmt.Sprintf(format, args...))
}
