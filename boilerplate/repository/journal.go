// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
	"github.com/bellwether-dev/bellwether/boilerplate/update"
	"github.com/bellwether-dev/bellwether/untrusted"
)

// JournalFile says which update is in progress. Before it is written, the texts before and after the update are in
// stagingFolder. So a process that is killed has changed nothing yet, or the next one can go on or take it back.
const JournalFile = subscription.Folder + "/update.yaml"

const stagingFolder = subscription.Folder + "/update"

// Journal is an update in progress.
type Journal struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	// Message is that of the commit; empty for an update that makes none.
	Message string `yaml:"message,omitempty"`
	// Applied says that all files are written, and that conflicts are being resolved in some of them.
	Applied bool     `yaml:"applied,omitempty"`
	Changes []Staged `yaml:"changes"`
}

// Staged is one file of an update in progress.
type Staged struct {
	Path string `yaml:"path"`
	// Before and After are digests of the bytes; empty for no file.
	Before           string `yaml:"before,omitempty"`
	BeforeExecutable bool   `yaml:"beforeExecutable,omitempty"`
	After            string `yaml:"after,omitempty"`
	AfterExecutable  bool   `yaml:"afterExecutable,omitempty"`
	// Conflict says that somebody has to resolve conflicts in it.
	Conflict bool `yaml:"conflict,omitempty"`
}

// ErrChanged says that a file was changed since an update began.
var ErrChanged = errors.New("changed since the update began")

// Conflicts are the paths in which conflicts have to be resolved.
func (j *Journal) Conflicts() []string {
	var out []string
	for _, c := range j.Changes {
		if c.Conflict {
			out = append(out, c.Path)
		}
	}
	return out
}

// Paths are those of all files of the update.
func (j *Journal) Paths() []string {
	var out []string
	for _, c := range j.Changes {
		out = append(out, c.Path)
	}
	return out
}

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
	order := slices.Sorted(func(yield func(string) bool) {
		for name := range own {
			if !yield(name) {
				return
			}
		}
	})
	order = append(order, subscription.File, subscription.LockFile)
	own[subscription.File], own[subscription.LockFile] = nil, nil
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
		if err != nil {
			return nil, err
		}
		if c, ok := changeOf(name, current, own[name]); ok {
			changes = append(changes, c)
		}
	}
	return changes, nil
}

// changeOf is the change from one version of a file to another; false if there is none.
func changeOf(name string, before, after *update.File) (update.Change, bool) {
	c := update.Change{Path: name, Before: before, After: after, Action: update.Update}
	switch {
	case before == nil && after == nil:
		return c, false
	case before == nil:
		c.Action = update.Create
	case after == nil:
		c.Action = update.Remove
	default:
		unix := update.Digest(before.Text) == update.Digest(after.Text) // a checkout may have changed the line ends
		return c, before.Obstacle != "" || !unix
	}
	return c, true
}

// Journal returns the update in progress, nil if there is none.
func (t *Tree) Journal() (*Journal, error) {
	text, err := t.Text(JournalFile)
	if err != nil || text == nil {
		return nil, err
	}
	j := &Journal{}
	err = untrusted.CheckYAML(text)
	if err == nil {
		decoder := yaml.NewDecoder(bytes.NewReader(text))
		decoder.KnownFields(true)
		err = decoder.Decode(j)
	}
	for _, c := range j.Changes {
		if !isOwnFile(c.Path) && err == nil {
			err = convention.CheckPath(c.Path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", JournalFile, err)
	}
	return j, nil
}

// isOwnFile reports whether a path is that of one of the program's own files.
func isOwnFile(name string) bool {
	base, isBase := strings.CutPrefix(name, subscription.BaseFolder+"/")
	return name == subscription.File || name == subscription.LockFile || isBase && convention.CheckPath(base) == nil
}

// Begin stages an update, and records it. After it, Apply can be called any number of times, by any process.
func (t *Tree) Begin(changes []update.Change, message string) (*Journal, error) {
	// What an update left that was killed before it was recorded.
	if err := t.root.RemoveAll(stagingFolder); err != nil {
		return nil, fmt.Errorf("remove %s: %w", stagingFolder, err)
	}
	j := &Journal{APIVersion: convention.APIVersion, Kind: "Update", Message: message}
	for i, c := range changes {
		s := Staged{Path: c.Path, Conflict: c.Conflict}
		if c.Before != nil {
			s.Before, s.BeforeExecutable = exactDigest(c.Before), c.Before.Executable
			if err := t.write(stagedPath("before", i), *c.Before); err != nil {
				return nil, err
			}
		}
		if c.After != nil {
			s.After, s.AfterExecutable = exactDigest(c.After), c.After.Executable
			if err := t.write(stagedPath("after", i), *c.After); err != nil {
				return nil, err
			}
		}
		j.Changes = append(j.Changes, s)
	}
	return j, t.record(j)
}

func (t *Tree) record(j *Journal) error {
	text, err := yaml.Marshal(j)
	if err != nil {
		return fmt.Errorf("encode %s: %w", JournalFile, err)
	}
	return t.write(JournalFile, update.File{Text: string(text)})
}

func stagedPath(side string, i int) string { return fmt.Sprintf("%s/%s/%d", stagingFolder, side, i) }

// exactDigest identifies the bytes of a file. It is empty for none.
func exactDigest(f *update.File) string {
	if f == nil {
		return ""
	}
	return update.Digest(f.Text + "\x00") // which keeps line ends as they are
}

// Apply writes the files of an update that are not written yet, in order. A file that is neither as it was nor as it is
// to be is an error that wraps ErrChanged. Once all files of an update with conflicts are written, Apply leaves them to
// whoever resolves the conflicts.
func (t *Tree) Apply(j *Journal) error {
	if j.Applied {
		return nil
	}
	for i := range j.Changes {
		if err := t.apply(j, i); err != nil {
			return err
		}
	}
	if len(j.Conflicts()) == 0 {
		return nil
	}
	j.Applied = true
	return t.record(j)
}

// apply writes one file.
func (t *Tree) apply(j *Journal, i int) error {
	c := j.Changes[i]
	return t.move(c, c.Before, c.After, stagedPath("after", i), c.AfterExecutable)
}

// Abort puts the files of an update back as they were. A file with conflicts is put back whatever somebody wrote there
// since; any other one that was changed is an error that wraps ErrChanged.
func (t *Tree) Abort(j *Journal) error {
	for i, c := range slices.Backward(j.Changes) {
		from := c.After
		if c.Conflict {
			current, err := t.Read(c.Path)
			if err != nil {
				return err
			}
			from = exactDigest(current)
		}
		if err := t.move(c, from, c.Before, stagedPath("before", i), c.BeforeExecutable); err != nil {
			return err
		}
	}
	return t.Finish()
}

// move replaces a file that has one digest by a staged one that has another.
func (t *Tree) move(c Staged, from, to, staged string, executable bool) error {
	current, err := t.Read(c.Path)
	if err != nil {
		return err
	}
	is := exactDigest(current)
	switch {
	case is == to && (current == nil || current.Executable == executable):
		return nil
	case current != nil && current.Obstacle != "", is != from && is != to && is != "":
		return fmt.Errorf("%s: %w", c.Path, ErrChanged)
	case to == "":
		return t.remove(c.Path)
	}
	text, err := t.Text(staged)
	if err != nil {
		return err
	}
	f := update.File{Text: string(text), Executable: executable}
	if exactDigest(&f) != to {
		return fmt.Errorf("%s: what was staged for %s was changed", staged, c.Path)
	}
	return t.write(c.Path, f)
}

// Finish removes the record of an update.
func (t *Tree) Finish() error {
	if err := errors.Join(t.remove(JournalFile), t.root.RemoveAll(stagingFolder)); err != nil {
		return fmt.Errorf("end the update: %w", err)
	}
	if err := t.root.Remove(temporary); err != nil && !isMissing(err) {
		return fmt.Errorf("end the update: %w", err)
	}
	_ = t.root.Remove(subscription.Folder) // where nothing is left in it
	return nil
}
