// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
	"github.com/bellwether-dev/bellwether/boilerplate/update"
)

// JournalFile describes the update in progress, with all texts before and after it. It is written before all other
// files, and removed at the end. So if a process is killed, either no file has changed, or another process can continue
// or revert the update.
const JournalFile = subscription.Folder + "/update.yaml"

// Journal is an update in progress.
type Journal struct {
	Message string          `yaml:"message,omitempty"` // the message of the commit; empty if the update makes no commit
	Applied bool            `yaml:"applied,omitempty"` // all files are written, and the user resolves conflicts
	Changes []update.Change `yaml:"changes,flow"`      // the flow style keeps every byte of a text
}

// ErrChanged means that a file was changed after an update began.
var ErrChanged = errors.New("changed since the update began")

// ListChanges returns the changes of a plan, followed by the changes of the program's own files: the base texts,
// the subscription, and the lock. subscriptionText is the new text of the subscription; nil if the repository ends
// all subscriptions. oldLock is the lock of the last rendering, or nil; its base texts are removed unless the plan
// has them.
func (t *Tree) ListChanges(plan *update.Plan, subscriptionText []byte,
	oldLock *subscription.Lock) ([]update.Change, error) {
	ownFiles := map[string]*update.File{}
	if oldLock != nil {
		for _, f := range oldLock.Files {
			ownFiles[toBasePath(f.Path)] = nil
		}
	}
	for name, text := range plan.Base {
		ownFiles[toBasePath(name)] = &update.File{Text: text}
	}
	order := append(slices.Sorted(maps.Keys(ownFiles)), subscription.File, subscription.LockFile)
	if subscriptionText != nil {
		text, err := plan.Lock.Write()
		if err != nil {
			return nil, err
		}
		ownFiles[subscription.File] = &update.File{Text: string(subscriptionText)}
		ownFiles[subscription.LockFile] = &update.File{Text: string(text)}
	}
	changes := slices.Clone(plan.Changes)
	for _, name := range order {
		current, err := t.Read(name)
		wanted := ownFiles[name]
		switch {
		case err != nil:
			return nil, err
		case current != nil && current.Obstacle != "":
			return nil, fmt.Errorf("write %s: %s is in the way", name, current.Obstacle)
		case current == nil && wanted == nil:
			continue
		case current != nil && wanted != nil && update.Digest(current.Text) == update.Digest(wanted.Text):
			continue // only the line endings can differ, because of a checkout
		}
		changes = append(changes, update.Change{Path: name, Before: current, After: wanted})
	}
	return changes, nil
}

// ReadJournal returns the update in progress, or nil if there is none.
func (t *Tree) ReadJournal() (*Journal, error) {
	text, err := t.ReadText(JournalFile)
	if err != nil || text == nil {
		return nil, err
	}
	j := &Journal{}
	if err := yaml.Unmarshal(text, j); err != nil {
		return nil, fmt.Errorf("read %s: %w", JournalFile, err)
	}
	for _, c := range j.Changes {
		if err := convention.CheckPath(c.Path); err != nil && !isOwnFile(c.Path) {
			return nil, fmt.Errorf("read %s: %w", JournalFile, err)
		}
	}
	return j, nil
}

// isOwnFile reports whether a path is one of the program's own files.
func isOwnFile(name string) bool {
	base, isBase := strings.CutPrefix(name, subscription.BaseFolder+"/")
	return name == subscription.File || name == subscription.LockFile || isBase && convention.CheckPath(base) == nil
}

// Begin records an update. Afterwards, any process can call Apply, also repeatedly.
func (t *Tree) Begin(changes []update.Change, message string) (*Journal, error) {
	j := &Journal{Message: message, Changes: changes}
	return j, t.writeJournal(j)
}

// writeJournal writes the journal file.
func (t *Tree) writeJournal(j *Journal) error {
	text, err := yaml.Marshal(j)
	if err == nil && len(text) > maxBytes {
		err = fmt.Errorf("the update has more than %d MiB", maxBytes>>20)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", JournalFile, err)
	}
	return t.writeFile(JournalFile, update.File{Text: string(text)})
}

// Apply writes the files of an update that are not written yet, in order. If a file has neither the old nor the new
// content, it returns an error that wraps ErrChanged. If the update has conflicts, Apply writes each file only once, so
// that it does not overwrite the user's resolution.
func (t *Tree) Apply(j *Journal) error {
	if j.Applied {
		return nil
	}
	for _, c := range j.Changes {
		if err := t.replaceFile(c.Path, c.Before, c.After); err != nil {
			return err
		}
	}
	if len(update.ListConflicts(j.Changes)) == 0 {
		return nil
	}
	j.Applied = true
	return t.writeJournal(j)
}

// Abort restores the old files of an update. It overwrites all edits in files with conflicts. If another file was
// changed, it returns an error that wraps ErrChanged.
func (t *Tree) Abort(j *Journal) error {
	for _, c := range slices.Backward(j.Changes) {
		from := c.After
		if c.Conflict { // the user may have edited the file
			var err error
			if from, err = t.Read(c.Path); err != nil {
				return err
			}
		}
		if err := t.replaceFile(c.Path, from, c.Before); err != nil {
			return err
		}
	}
	return t.Finish()
}

// replaceFile replaces the expected content of a file by other content; nil means that the file does not exist. It
// changes nothing if the file already has the other content, and returns an error that wraps ErrChanged if the file
// has neither. A missing file is written.
func (t *Tree) replaceFile(name string, from, to *update.File) error {
	current, err := t.Read(name)
	isWritten := current == nil && to == nil || hasSameText(current, to) && current.Executable == to.Executable
	switch {
	case err != nil:
		return err
	case isWritten:
		return nil
	case current != nil && !hasSameText(current, from) && !hasSameText(current, to):
		return fmt.Errorf("%s: %w", name, ErrChanged)
	case to == nil:
		return t.removeFile(name)
	}
	return t.writeFile(name, *to)
}

// hasSameText reports whether two files exist and have the same text.
func hasSameText(a, b *update.File) bool {
	return a != nil && b != nil && a.Text == b.Text && a.Obstacle == "" && b.Obstacle == ""
}

// Finish removes the journal file.
func (t *Tree) Finish() error {
	if err := errors.Join(t.removeFile(JournalFile), t.removeFile(temporaryFile)); err != nil {
		return fmt.Errorf("end the update: %w", err)
	}
	return nil
}
