// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package update decides what an update of a repository changes, and what of a repository has drifted from its
// conventions. It is pure: its inputs are the files as they are, what was rendered last, and what is rendered now; the
// three-way merge of texts is a function that it is given. Nothing that a user wrote is lost: it is in the tree after
// the update, or between the markers of a conflict, or the update is refused.
package update

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
)

// File is a file of a repository.
type File struct {
	Text       string
	Executable bool
	// Obstacle says what is at the path or on the way to it, where that is no file: a symbolic link, a folder, a
	// submodule.
	Obstacle string
}

// Merge merges two versions of a text of a path with their common ancestor. It reports whether the result has the
// markers of conflicts.
type Merge func(path, current, base, wanted string) (text string, conflict bool, err error)

// Input is what a plan is made of.
type Input struct {
	// Lock says what was rendered last; nil for a repository without an update so far.
	Lock *subscription.Lock
	// Base has the texts as rendered last of merged files, and of the regions of shared ones.
	Base map[string]string
	// Current are the files of the repository at all paths of Lock, Wanted and Renames, as far as they are there.
	Current map[string]*File
	Wanted  convention.Tree
	// Renames are new paths of files by their old ones.
	Renames    map[string]string
	Exceptions []subscription.Exception
	// Overwrite are paths of owned files and shared ones whose edits by hand are given up.
	Overwrite []string
	// Adopt overwrites files that were there before the convention.
	Adopt bool
	Now   time.Time
	Merge Merge
}

// Action is what happens to a file.
type Action string

// The actions.
const (
	Create Action = "create"
	Update Action = "update"
	Remove Action = "remove"
)

// Change is one file that an update writes or removes.
type Change struct {
	Path       string
	Action     Action
	Kind       convention.Kind
	Convention string
	// Before is nil for a file that is not there, After for one that is removed.
	Before, After *File
	// Conflict says that After has the markers of conflicts.
	Conflict bool
	// Note says what is unusual about it; empty for most.
	Note string
}

// Refusal is why an update cannot be made.
type Refusal struct {
	Path string
	// Line is 0 where it is about the file as a whole.
	Line   int
	Reason string
	// Remedies are what to do, each by itself.
	Remedies []string
}

// Plan is what an update does. With refusals it does nothing.
type Plan struct {
	// Changes are sorted by their paths.
	Changes  []Change
	Refusals []Refusal
	// Notes say what was left as it is, a sentence each.
	Notes []string
	// Lock and Base are those after the update.
	Lock *subscription.Lock
	Base map[string]string
}

// Conflicts are the paths with markers of conflicts.
func (p *Plan) Conflicts() []string {
	var out []string
	for _, c := range p.Changes {
		if c.Conflict {
			out = append(out, c.Path)
		}
	}
	return out
}

// New makes a plan. The lock of the plan has files alone; who calls it adds conventions and parameters. The error is
// one of Merge.
func New(in Input) (*Plan, error) {
	p := &planner{Input: in, plan: &Plan{Lock: &subscription.Lock{}, Base: map[string]string{}}}
	p.Current, p.Base = maps.Clone(in.Current), maps.Clone(in.Base)
	p.locked = map[string]*subscription.LockedFile{}
	if in.Lock != nil {
		for i := range in.Lock.Files {
			p.locked[in.Lock.Files[i].Path] = &in.Lock.Files[i]
		}
	}
	p.renamed = map[string]string{}
	for _, from := range slices.Sorted(maps.Keys(in.Renames)) {
		p.rename(from, in.Renames[from])
	}
	paths := map[string]bool{}
	for path := range p.locked {
		paths[path] = true
	}
	for path := range in.Wanted {
		paths[path] = true
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if err := p.file(path); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(p.plan.Changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return p.plan, nil
}

// planner makes one plan.
type planner struct {
	Input
	plan   *Plan
	locked map[string]*subscription.LockedFile
	// renamed are the old paths of files by their new ones.
	renamed map[string]string
}

// target is one path: what was rendered, what is there, and what is wanted. Each may be nil.
type target struct {
	path   string
	locked *subscription.LockedFile
	wanted *convention.Rendered
	// current is the file as it is. text is its text with line feeds alone where crlf says that it has none of them.
	current *File
	text    string
	crlf    bool
}

func (p *planner) target(path string) *target {
	t := &target{path: path, locked: p.locked[path], wanted: p.Wanted[path], current: p.Current[path]}
	if t.current != nil {
		t.text, t.crlf = unixLines(t.current.Text)
	}
	return t
}

// unixLines returns a text all of whose lines end with CR LF with line feeds alone. Any other text stays as it is.
func unixLines(text string) (string, bool) {
	crlf := strings.Count(text, "\r\n")
	if crlf == 0 || crlf != strings.Count(text, "\n") || strings.ContainsRune(text, 0) {
		return text, false
	}
	return strings.ReplaceAll(text, "\r\n", "\n"), true
}

// Digest identifies a text, whether its lines end with LF or with CR LF.
func Digest(text string) string {
	unix, _ := unixLines(text)
	sum := sha256.Sum256([]byte(unix))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// rename moves a file to its new path before anything else is decided.
func (p *planner) rename(from, to string) {
	locked, wanted := p.locked[from], p.Wanted[to]
	if locked == nil || wanted == nil || p.Wanted[from] != nil || p.locked[to] != nil {
		return // The path is decided as any other.
	}
	current, taken := p.Current[from], p.Current[to]
	if current != nil && (current.Obstacle != "" || taken != nil) {
		p.refuse(from, fmt.Sprintf("it is renamed to %s, and one of them is in the way", to),
			"move or remove the one that you do not need, and commit")
		return
	}
	moved := *locked
	moved.Path = to
	p.locked[to] = &moved
	delete(p.locked, from)
	if base, ok := p.Base[from]; ok {
		p.Base[to] = base
	}
	if current == nil {
		return
	}
	p.Current[to], p.renamed[to] = current, from
	p.plan.Changes = append(p.plan.Changes, Change{Path: from, Action: Remove, Kind: locked.Kind,
		Convention: locked.Convention, Before: current, Note: "renamed to " + to})
}

func (p *planner) file(path string) error {
	t := p.target(path)
	switch {
	case t.current != nil && t.current.Obstacle != "":
		if t.wanted == nil {
			p.note("%s is %s, and no longer of a convention", path, t.current.Obstacle)
			return nil
		}
		p.refuse(path, t.current.Obstacle+" is in the way", "remove it, or add an exception for "+path)
		return nil
	case p.isExcepted(path, ""):
		p.keepExcepted(t)
		return nil
	case t.wanted == nil:
		p.release(t)
		return nil
	case t.wanted.Kind == convention.Owned:
		p.owned(t)
		return nil
	case t.wanted.Kind == convention.Once:
		p.once(t)
		return nil
	case t.wanted.Kind == convention.Merged:
		return p.merged(t)
	}
	return p.shared(t)
}

// isExcepted reports whether an exception holds for a file, or for a region of it.
func (p *planner) isExcepted(path, region string) bool {
	return slices.ContainsFunc(p.Exceptions, func(e subscription.Exception) bool {
		return e.Path == path && e.Region == region && !e.Expired(p.Now)
	})
}

// keepExcepted leaves a file to the repository. What was rendered before the exception stays the ancestor of the
// update after it.
func (p *planner) keepExcepted(t *target) {
	if from := p.renamed[t.path]; from != "" {
		p.write(t, t.text, "renamed from "+from+"; kept by an exception")
	} else if t.wanted != nil {
		p.note("%s stays as it is, by an exception", t.path)
	}
	if t.wanted == nil || t.locked == nil {
		return
	}
	p.plan.Lock.Files = append(p.plan.Lock.Files, *t.locked)
	if base, ok := p.Base[t.path]; ok {
		p.plan.Base[t.path] = base
	}
}

// release removes what a convention no longer brings, unless somebody has edited it.
func (p *planner) release(t *target) {
	switch {
	case t.current == nil, t.locked.Kind == convention.Once:
	case t.locked.Kind == convention.Shared:
		p.releaseRegions(t)
	case Digest(t.current.Text) == t.locked.Digest:
		p.plan.Changes = append(p.plan.Changes, Change{Path: t.path, Action: Remove, Kind: t.locked.Kind,
			Convention: t.locked.Convention, Before: t.current, Note: "no longer of a convention"})
	default:
		p.note("%s is no longer of a convention; it was edited by hand, and stays as a file of the repository", t.path)
	}
}

func (p *planner) owned(t *target) {
	p.lock(t)
	edited := t.current != nil && t.text != t.wanted.Text &&
		(t.locked == nil || Digest(t.current.Text) != t.locked.Digest)
	switch {
	case t.current == nil && t.locked != nil:
		p.write(t, t.wanted.Text, "was missing")
	case !edited:
		p.write(t, t.wanted.Text, "")
	case slices.Contains(p.Overwrite, t.path), t.locked == nil && p.Adopt:
		p.write(t, t.wanted.Text, "overwritten")
	case t.locked == nil:
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
	if t.current == nil && t.locked == nil || p.renamed[t.path] != "" {
		text := t.wanted.Text
		if t.current != nil {
			text = t.text
		}
		p.write(t, text, "")
	}
}

func (p *planner) merged(t *target) error {
	p.lock(t)
	p.plan.Base[t.path] = t.wanted.Text
	switch base, hasBase := p.base(t); {
	case t.current == nil && t.locked != nil:
		p.write(t, t.wanted.Text, "was missing")
	case t.current == nil, slices.Contains(p.Overwrite, t.path):
		p.write(t, t.wanted.Text, "")
	case t.locked == nil && t.text != t.wanted.Text && !p.Adopt:
		p.refuseTaken(t.path)
	case !hasBase && t.locked != nil && t.text != t.wanted.Text:
		p.refuseWithoutBase(t.path)
	default:
		text, conflict, err := p.merge(t.path, t.text, base, t.wanted.Text)
		if err != nil {
			return err
		}
		p.writeMerged(t, text, conflict)
	}
	return nil
}

func (p *planner) refuseWithoutBase(path string) {
	p.refuse(path, "what was rendered last is not in "+subscription.BaseFolder+", so that nothing can be merged",
		"restore it with `git checkout HEAD -- "+subscription.BaseFolder+"`",
		"give your edits up with --overwrite "+path)
}

// base is the text as it was rendered last.
func (p *planner) base(t *target) (string, bool) {
	base, ok := p.Base[t.path]
	if t.locked == nil {
		return "", false
	}
	if base, _ = unixLines(base); ok && t.locked.Kind == t.wanted.Kind {
		return base, true
	}
	if t.current != nil && Digest(t.current.Text) == t.locked.Digest { // It was owned, or its base is missing.
		return t.text, true
	}
	return "", false
}

// merge merges three ways, and calls the merge of texts only where both sides have changed.
func (p *planner) merge(path, current, base, wanted string) (string, bool, error) {
	switch {
	case current == wanted, wanted == base:
		return current, false, nil
	case current == base:
		return wanted, false, nil
	}
	text, conflict, err := p.Merge(path, current, base, wanted)
	if err != nil {
		return "", false, fmt.Errorf("merge %s: %w", path, err)
	}
	return text, conflict, nil
}

// write plans a text, with line feeds alone, for a path.
func (p *planner) write(t *target, text, note string) {
	if t.crlf {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	p.change(t, text, note, false)
}

func (p *planner) writeMerged(t *target, text string, conflict bool) {
	if t.crlf {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
	}
	note := ""
	if conflict {
		note = "conflict"
	}
	p.change(t, text, note, conflict)
}

// change plans exactly these bytes for a path, unless it has them.
func (p *planner) change(t *target, text, note string, conflict bool) {
	after := &File{Text: text}
	switch {
	case t.wanted == nil || t.wanted.Kind == convention.Once && t.current != nil:
		after.Executable = t.current.Executable
	default:
		after.Executable = t.wanted.Executable
	}
	c := Change{Path: t.path, Action: Update, Before: t.current, After: after, Conflict: conflict, Note: note}
	from := p.renamed[t.path]
	switch {
	case t.current == nil, from != "":
		c.Action, c.Before = Create, nil
		if from != "" && note == "" {
			c.Note = "renamed from " + from
		}
	case *t.current == *after:
		return
	}
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
