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

// JournalFile says which update is in progress, with all texts before and after. It is written before anything else,
// and removed at the end. So a process that is killed has changed nothing yet, or the next one can go on or take it
// back.
const JournalFile = subscription.Folder + "/update.yaml"

// Journal is an update in progress.
type Journal struct {
	Message string          `yaml:"message,omitempty"` // that of the commit; empty for an update that makes none
	Applied bool            `yaml:"applied,omitempty"` // all files are written, and conflicts are being resolved
	Changes []update.Change `yaml:"changes,flow"`      // in flow style, which keeps each byte of a text
}

// ErrChanged says that a file was changed since an update began.
var ErrChanged = errors.New("changed since the update began")

// Changes are those of a plan, with those of the program's own files: the texts of bases, the subscription, and the
// lock, which is the last. Unless all is gone, subscriptionText is the new text of the subscription.
func (t *Tree) Changes(plan *update.Plan, subscriptionText []byte, before *subscription.Lock) ([]update.Change, error) {
	own := map[string]*update.File{}
	if before != nil {
		for _, f := range before.Files {
			own[basePath(f.Path)] = nil
		}
	}
	for name, text := range plan.Base {
		own[basePath(name)] = &update.File{Text: text}
	}
	order := append(slices.Sorted(maps.Keys(own)), subscription.File, subscription.LockFile)
	if subscriptionText != nil {
		text, err := plan.Lock.Write()
		if err != nil {
			return nil, err
		}
		own[subscription.File] = &update.File{Text: string(subscriptionText)}
		own[subscription.LockFile] = &update.File{Text: string(text)}
	}
	changes := slices.Clone(plan.Changes)
	for _, name := range order {
		current, err := t.Read(name)
		after := own[name]
		switch {
		case err != nil:
			return nil, err
		case current != nil && current.Obstacle != "":
			return nil, fmt.Errorf("write %s: %s is in the way", name, current.Obstacle)
		case current == nil && after == nil:
			continue
		case current != nil && after != nil && update.Digest(current.Text) == update.Digest(after.Text):
			continue // A checkout may have changed the line ends.
		}
		changes = append(changes, update.Change{Path: name, Before: current, After: after})
	}
	return changes, nil
}

// Journal returns the update in progress, nil if there is none.
func (t *Tree) Journal() (*Journal, error) {
	text, err := t.Text(JournalFile)
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

// isOwnFile reports whether a path is that of one of the program's own files.
func isOwnFile(name string) bool {
	base, isBase := strings.CutPrefix(name, subscription.BaseFolder+"/")
	return name == subscription.File || name == subscription.LockFile || isBase && convention.CheckPath(base) == nil
}

// Begin records an update. After it, Apply can be called any number of times, by any process.
func (t *Tree) Begin(changes []update.Change, message string) (*Journal, error) {
	j := &Journal{Message: message, Changes: changes}
	return j, t.record(j)
}

func (t *Tree) record(j *Journal) error {
	text, err := yaml.Marshal(j)
	if err == nil && len(text) > maxBytes {
		err = fmt.Errorf("the update has more than %d MiB", maxBytes>>20)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", JournalFile, err)
	}
	return t.write(JournalFile, update.File{Text: string(text)})
}

// Apply writes the files of an update that are not written yet, in order. A file that is neither as it was nor as it is
// to be is an error that wraps ErrChanged. Once all files of an update with conflicts are written, Apply leaves them to
// whoever resolves the conflicts.
func (t *Tree) Apply(j *Journal) error {
	if j.Applied {
		return nil
	}
	for _, c := range j.Changes {
		if err := t.replace(c.Path, c.Before, c.After); err != nil {
			return err
		}
	}
	if len(update.Conflicts(j.Changes)) == 0 {
		return nil
	}
	j.Applied = true
	return t.record(j)
}

// Abort puts the files of an update back as they were. A file with conflicts is put back whatever somebody wrote there
// since; any other one that was changed is an error that wraps ErrChanged.
func (t *Tree) Abort(j *Journal) error {
	for _, c := range slices.Backward(j.Changes) {
		from := c.After
		if c.Conflict {
			var err error
			if from, err = t.Read(c.Path); err != nil {
				return err
			}
		}
		if err := t.replace(c.Path, from, c.Before); err != nil {
			return err
		}
	}
	return t.Finish()
}

// replace replaces one version of a file by another; nil is no file.
func (t *Tree) replace(name string, from, to *update.File) error {
	current, err := t.Read(name)
	switch {
	case err != nil:
		return err
	case current == nil && to == nil, hasText(current, to) && current.Executable == to.Executable:
		return nil
	case current != nil && !hasText(current, from) && !hasText(current, to):
		return fmt.Errorf("%s: %w", name, ErrChanged)
	case to == nil:
		return t.remove(name)
	}
	return t.write(name, *to)
}

func hasText(a, b *update.File) bool {
	return a != nil && b != nil && a.Text == b.Text && a.Obstacle == "" && b.Obstacle == ""
}

// Finish removes the record of an update.
func (t *Tree) Finish() error {
	if err := errors.Join(t.remove(JournalFile), t.remove(temporary)); err != nil {
		return fmt.Errorf("end the update: %w", err)
	}
	return nil
}
