// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package update determines what an update of a repository changes, and how a repository differs from its conventions.
// It has no side effects: its inputs are the current files, the last rendered content and the newly rendered content; a
// function of the caller merges texts three ways. Text of users is never lost: it is in the files after the update, or
// between conflict markers, or the update is refused.
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
	Obstacle   string // the object at the path or a parent path if it is not a regular file, such as a link
}

// Merge merges two versions of the text of a path with their common ancestor. It reports whether the result has
// conflict markers.
type Merge func(path, current, base, wanted string) (text string, conflict bool, err error)

// Input is the input of a plan.
type Input struct {
	Lock *subscription.Lock // the last rendering; nil before the first update
	Base map[string]string  // the last rendered texts of merged files, and of the regions of shared files
	// Current are the existing files of the repository at all paths of Lock, Wanted and Renames.
	Current map[string]*File
	Wanted  convention.Tree
	Renames map[string]string // the new paths of files by their old paths

	Exceptions []subscription.Exception
	Overwrite  []string // paths of files whose manual edits are discarded
	Adopt      bool     // overwrite files that existed before the convention
	Now        time.Time
	Merge      Merge

	eject bool // keep the files that no convention brings, without headers and markers
}

// Change is a file that an update writes or removes.
type Change struct {
	Path          string
	Kind          convention.Kind
	Convention    string
	Before, After *File  // nil if the file does not exist before or after the update
	Conflict      bool   // After has conflict markers
	Note          string // an unusual fact about the change; mostly empty
}

// String returns the change in one line.
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

// Refusal is a reason why an update is impossible.
type Refusal struct {
	Path, Reason string
	Remedies     []string // possible solutions; one of them is sufficient
}

// Plan contains the changes of an update. If there are refusals, no change is made.
type Plan struct {
	Changes  []Change // sorted by path
	Refusals []Refusal
	Notes    []string           // sentences about files that stay unchanged
	Lock     *subscription.Lock // the lock after the update; Base is also the state after the update
	Base     map[string]string
}

// ListConflicts returns the paths with conflict markers.
func ListConflicts(changes []Change) []string {
	return ChangedPaths(slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return !c.Conflict }))
}

// ChangedPaths returns the paths of changes.
func ChangedPaths(changes []Change) []string {
	var out []string
	for _, c := range changes {
		out = append(out, c.Path)
	}
	return out
}

// New returns a plan. The lock of the plan contains only files; the caller must add the conventions and parameters.
// Errors come from Merge.
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
		p.renameFile(from, in.Renames[from])
	}
	for _, path := range sets.List(sets.KeySet(p.locked).Union(sets.KeySet(in.Wanted))) {
		p.planPath(p.newTarget(path))
	}
	slices.SortFunc(p.plan.Changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return p.plan, p.err
}

// planner builds one plan.
type planner struct {
	Input
	plan    *Plan
	locked  map[string]*subscription.LockedFile
	renamed map[string]string // the old paths of files by their new paths
	err     error             // the first error of Merge
}

// target is one path: its last rendered, current and wanted content. Each of them can be nil.
type target struct {
	path    string
	locked  *subscription.LockedFile
	wanted  *convention.Rendered
	current *File
	text    string // the text of current; with LF line endings if crlf is true
	crlf    bool
}

// newTarget returns the target for a path.
func (p *planner) newTarget(path string) *target {
	t := &target{path: path, locked: p.locked[path], wanted: p.Wanted[path], current: p.Current[path]}
	if t.current != nil {
		t.text, t.crlf = toUnixLines(t.current.Text)
	}
	return t
}

// isAsRendered reports whether the file is unchanged since the last rendering.
func (t *target) isAsRendered() bool {
	return t.current != nil && t.locked != nil && Digest(t.current.Text) == t.locked.Digest
}

// toUnixLines converts a text to LF line endings and returns true, if all its lines end with CR LF. It returns any
// other text unchanged.
func toUnixLines(text string) (string, bool) {
	crlf := strings.Count(text, "\r\n")
	if crlf == 0 || crlf != strings.Count(text, "\n") || strings.ContainsRune(text, 0) {
		return text, false
	}
	return strings.ReplaceAll(text, "\r\n", "\n"), true
}

// toLineEnds converts a text to CR LF line endings if crlf is true.
func toLineEnds(text string, crlf bool) string {
	if crlf {
		return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
	}
	return text
}

// Digest returns the SHA-256 of a text. It is the same for LF and CR LF line endings.
func Digest(text string) string {
	unix, _ := toUnixLines(text)
	sum := sha256.Sum256([]byte(unix))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// renameFile moves the lock, base text and current content of a file to its new path, and plans the removal of the old
// path. It must be called before other paths are planned. It changes nothing if the old path was not rendered or is
// still wanted, or if the new path is not wanted or was rendered.
func (p *planner) renameFile(from, to string) {
	t := p.newTarget(from)
	if t.locked == nil || p.Wanted[to] == nil || t.wanted != nil || p.locked[to] != nil {
		return // planPath handles the path in the usual way
	}
	if t.current != nil && (t.current.Obstacle != "" || p.Current[to] != nil) {
		p.addRefusal(from, fmt.Sprintf("it is renamed to %s, and one of them is in the way", to),
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
		p.planRemoval(t, "renamed to "+to)
	}
}

// planPath plans one path.
func (p *planner) planPath(t *target) {
	switch {
	case subscription.IsExcepted(p.Exceptions, t.path, "", p.Now):
		p.keepExcepted(t)
	case t.current != nil && t.current.Obstacle != "" && t.wanted == nil:
		p.addNote("%s is %s, and no longer of a convention", t.path, t.current.Obstacle)
	case t.current != nil && t.current.Obstacle != "":
		p.addRefusal(t.path, t.current.Obstacle+" is in the way", "remove it, or add an exception for "+t.path)
	case t.wanted == nil:
		p.releaseFile(t)
	case t.wanted.Kind == convention.Owned:
		p.planOwned(t)
	case t.wanted.Kind == convention.Once:
		p.planOnce(t)
	case t.wanted.Kind == convention.Merged:
		p.planMerged(t)
	default:
		p.planShared(t)
	}
}

// keepExcepted keeps the text of a file because of an exception; a renamed file is still moved. The lock and base text
// of the last rendering stay, so that they are the ancestor of the first update after the exception.
func (p *planner) keepExcepted(t *target) {
	if from := p.renamed[t.path]; from != "" {
		p.planText(t, t.text, "renamed from "+from+"; kept by an exception", false)
	} else if t.wanted != nil {
		p.addNote("%s stays as it is, by an exception", t.path)
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

// planOwned plans a file that the convention owns: the wanted text replaces the file. It refuses to overwrite a file
// that a user has edited, or that existed before the convention, unless the input allows it.
func (p *planner) planOwned(t *target) {
	p.addToLock(t)
	switch isNew := t.locked == nil; {
	case t.current == nil && !isNew:
		p.planText(t, t.wanted.Text, "was missing", false)
	case t.current == nil, t.text == t.wanted.Text, t.isAsRendered(): // no edit of a user is lost
		p.planText(t, t.wanted.Text, "", false)
	case slices.Contains(p.Overwrite, t.path), isNew && p.Adopt:
		p.planText(t, t.wanted.Text, "overwritten", false)
	case isNew:
		p.refuseTaken(t.path)
	default:
		p.addRefusal(t.path, "it was edited by hand, and convention "+t.wanted.Convention+" owns it",
			"add an exception with a reason and a day to "+subscription.File,
			"give the edit up with --overwrite "+t.path,
			"move the edit to a file of your own, or outside of the regions of a shared file")
	}
}

// refuseTaken refuses to overwrite a file that existed before the convention.
func (p *planner) refuseTaken(path string) {
	p.addRefusal(path, "it is there already, and is not from a convention",
		"compare it with --dry-run --adopt, and overwrite it with --adopt, or with --overwrite "+path,
		"keep it with an exception in "+subscription.File)
}

// planOnce plans a file that is written only once: if it is missing and was never rendered. A renamed file keeps
// its text.
func (p *planner) planOnce(t *target) {
	p.addToLock(t)
	switch {
	case p.renamed[t.path] != "":
		p.planText(t, t.text, "", false)
	case t.current == nil && t.locked == nil:
		p.planText(t, t.wanted.Text, "", false)
	}
}

// planMerged plans a file that is merged three ways. A missing file is written again. It refuses a merge without the
// base text, and a file that existed before the convention with another text.
func (p *planner) planMerged(t *target) {
	p.addToLock(t)
	p.plan.Base[t.path] = t.wanted.Text
	switch base, hasBase := p.findBase(t); {
	case t.current == nil && t.locked != nil:
		p.planText(t, t.wanted.Text, "was missing", false)
	case t.current == nil, slices.Contains(p.Overwrite, t.path):
		p.planText(t, t.wanted.Text, "", false)
	case t.locked == nil && t.text != t.wanted.Text && !p.Adopt:
		p.refuseTaken(t.path)
	case t.locked != nil && !hasBase && t.text != t.wanted.Text:
		p.refuseWithoutBase(t.path)
	default:
		text, conflict := p.mergeText(t.path, t.text, base, t.wanted.Text)
		p.planText(t, text, "", conflict)
	}
}

// refuseWithoutBase refuses a merge because the base text is missing.
func (p *planner) refuseWithoutBase(path string) {
	p.addRefusal(path, "what was rendered last is not in "+subscription.BaseFolder+", so that nothing can be merged",
		"restore it with `git checkout HEAD -- "+subscription.BaseFolder+"`",
		"give your edits up with --overwrite "+path)
}

// findBase returns the last rendered text, and whether it is known: from the base texts, or else the current text if
// the file is unchanged since then.
func (p *planner) findBase(t *target) (string, bool) {
	base, ok := p.Base[t.path]
	if base, _ = toUnixLines(base); ok && t.locked != nil && t.locked.Kind == t.wanted.Kind {
		return base, true
	}
	return t.text, t.isAsRendered() // the file was owned, or its base text is missing
}

// mergeText merges three ways, and reports whether the result has conflict markers. It calls Merge only if both sides
// have changed. It records the first error of Merge in p.err.
func (p *planner) mergeText(path, current, base, wanted string) (string, bool) {
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

// planText plans a text for a path, with the current line endings of the file.
func (p *planner) planText(t *target, text, note string, conflict bool) {
	p.planBytes(t, toLineEnds(text, t.crlf), note, conflict)
}

// planBytes plans exactly these bytes for a path, unless the file already has them. The mode is the current mode if no
// convention wants the file, or if the file belongs to the repository.
func (p *planner) planBytes(t *target, text, note string, conflict bool) {
	after := &File{Text: text}
	isUsersMode := t.wanted == nil || t.wanted.Kind == convention.Once && t.current != nil
	if isUsersMode {
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
	case t.current == nil: // a new file needs no note
	case *t.current == *after:
		return
	case t.current.Executable != after.Executable:
		c.Note = strings.TrimPrefix(note+"; another mode", "; ")
	}
	p.addChange(t, c)
}

// planRemoval plans to remove a file.
func (p *planner) planRemoval(t *target, note string) {
	p.addChange(t, Change{Before: t.current, Note: note})
}

// addChange adds a change of the target to the plan.
func (p *planner) addChange(t *target, c Change) {
	c.Path = t.path
	if t.wanted != nil {
		c.Kind, c.Convention = t.wanted.Kind, t.wanted.Convention
	} else {
		c.Kind, c.Convention = t.locked.Kind, t.locked.Convention
	}
	p.plan.Changes = append(p.plan.Changes, c)
}

// addToLock adds the wanted file to the lock of the plan.
func (p *planner) addToLock(t *target) {
	p.plan.Lock.Files = append(p.plan.Lock.Files, subscription.LockedFile{Path: t.path, Kind: t.wanted.Kind,
		Convention: t.wanted.Convention, Executable: t.wanted.Executable, Digest: Digest(t.wanted.Text)})
}

// addRefusal adds a refusal to the plan.
func (p *planner) addRefusal(path, reason string, remedies ...string) {
	p.plan.Refusals = append(p.plan.Refusals, Refusal{Path: path, Reason: reason, Remedies: remedies})
}

// addNote adds a note to the plan.
func (p *planner) addNote(format string, args ...any) {
	p.plan.Notes = append(p.plan.Notes, fmt.Sprintf(format, args...))
}
