// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
)

// Rules of findings.
const (
	RuleEdited       = "edited"
	RuleMissing      = "missing"
	RuleRegion       = "region-edited"
	RuleNoRegion     = "region-missing"
	RuleBroken       = "region-broken"
	RuleMode         = "mode"
	RuleObstacle     = "not-a-file"
	RuleExpired      = "exception-expired"
	RuleUnused       = "exception-unused"
	RuleNotUpdated   = "not-updated"
	RuleInterrupted  = "update-in-progress"
	RuleConflictMark = "conflict-marker"
)

// Rules describes the rules of findings.
var Rules = map[string]string{
	RuleEdited:       "A file that a convention owns was edited by hand.",
	RuleMissing:      "A file that a convention brings is missing.",
	RuleRegion:       "A region that a convention owns was edited by hand.",
	RuleNoRegion:     "A region that a convention brings is missing.",
	RuleBroken:       "The markers of a region are broken.",
	RuleMode:         "A file is executable and should not be, or the other way round.",
	RuleObstacle:     "Something else than a file is at the path of a file.",
	RuleExpired:      "An exception has expired.",
	RuleUnused:       "An exception is for a path that no convention brings.",
	RuleNotUpdated:   "The subscription has changed since the last update.",
	RuleInterrupted:  "An update was interrupted, or has conflicts.",
	RuleConflictMark: "A file has the markers of a conflict.",
}

// Finding is one difference between a repository and its conventions.
type Finding struct {
	Rule string `json:"rule"`
	Path string `json:"path"`
	// Line is 0 where the finding is about the file as a whole.
	Line int `json:"line,omitempty"`
	// Owner is the convention with its version; empty for findings about the subscription itself.
	Owner  string `json:"owner,omitempty"`
	Reason string `json:"reason"`
	Remedy string `json:"remedy"`
}

// String is the finding in one line.
func (f Finding) String() string {
	owner := ""
	if f.Owner != "" {
		owner = " (" + f.Owner + ")"
	}
	return at(f.Path, f.Line) + ": " + f.Rule + owner + ": " + f.Reason
}

// State is what a repository has.
type State struct {
	Subscription *subscription.Subscription
	// Lock is nil where nothing was rendered yet.
	Lock    *subscription.Lock
	Current map[string]*File
	// InProgress says that an update was interrupted.
	InProgress bool
	Now        time.Time
}

const updateCommand = "run `bellwether boilerplate update`"

// Check returns what has drifted, sorted by path and line.
func Check(s State) []Finding {
	c := &checker{State: s}
	if s.InProgress {
		c.add(Finding{Rule: RuleInterrupted, Path: subscription.Folder + "/update.yaml",
			Reason: "an update is in progress",
			Remedy: "resolve its conflicts and run `bellwether boilerplate update --continue`, or take it back with " +
				"--abort"})
	}
	for _, difference := range s.Subscription.Differences(s.Lock) {
		c.add(Finding{Rule: RuleNotUpdated, Path: subscription.File, Reason: difference, Remedy: updateCommand})
	}
	c.exceptions()
	if s.Lock != nil {
		for i := range s.Lock.Files {
			c.file(&s.Lock.Files[i])
		}
	}
	slices.SortStableFunc(c.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule))
	})
	return c.findings
}

type checker struct {
	State
	findings []Finding
}

func (c *checker) add(f Finding) { c.findings = append(c.findings, f) }

func (c *checker) exceptions() {
	for _, e := range c.Subscription.Exceptions {
		switch {
		case e.Expired(c.Now):
			c.add(Finding{Rule: RuleExpired, Path: subscription.File, Line: e.Line,
				Reason: fmt.Sprintf("the exception for %s expired on %s: %s", e.Path, e.Expires, e.Reason),
				Remedy: "remove it and " + updateCommand + ", or give it a later day"})
		case c.Lock != nil && c.Lock.File(e.Path) == nil && c.Current[e.Path] == nil:
			c.add(Finding{Rule: RuleUnused, Path: subscription.File, Line: e.Line,
				Reason: "the exception is for " + e.Path + ", which no convention brings", Remedy: "remove it"})
		}
	}
}

func (c *checker) isExcepted(path, region string) bool {
	return slices.ContainsFunc(c.Subscription.Exceptions, func(e subscription.Exception) bool {
		return e.Path == path && (e.Region == "" || e.Region == region) && !e.Expired(c.Now)
	})
}

// owner is a convention with its version.
func (c *checker) owner(name string) string {
	if l := c.Lock.Convention(name); l != nil {
		return name + "@" + l.Version
	}
	return name
}

func (c *checker) file(f *subscription.LockedFile) {
	if c.isExcepted(f.Path, "") {
		return
	}
	current := c.Current[f.Path]
	found := Finding{Path: f.Path, Owner: c.owner(f.Convention)}
	switch {
	case f.Kind == convention.Once:
		return
	case current == nil:
		found.Rule, found.Reason = RuleMissing, "the file is missing"
		found.Remedy = updateCommand + ", which writes it again"
		c.add(found)
		return
	case current.Obstacle != "":
		found.Rule, found.Reason = RuleObstacle, current.Obstacle+" is in the way"
		found.Remedy = "replace it by the file, or add an exception"
		c.add(found)
		return
	case current.Executable != f.Executable:
		found.Rule, found.Reason = RuleMode, "the file is executable, and should not be"
		if f.Executable {
			found.Reason = "the file is not executable, and should be"
		}
		found.Remedy = updateCommand + ", which sets it"
		c.add(found)
	}
	if line := conflictLine(current.Text); line > 0 {
		c.add(Finding{Rule: RuleConflictMark, Path: f.Path, Line: line, Owner: c.owner(f.Convention),
			Reason: "the file has the markers of a conflict", Remedy: "resolve the conflict"})
	}
	switch {
	case f.Kind == convention.Shared:
		c.regions(f, current)
	case f.Kind == convention.Owned && Digest(current.Text) != f.Digest:
		c.add(Finding{Rule: RuleEdited, Path: f.Path, Owner: c.owner(f.Convention),
			Reason: "the file was edited by hand, and its convention owns it",
			Remedy: "take the edit back, or add an exception to " + subscription.File})
	}
}

func (c *checker) regions(f *subscription.LockedFile, current *File) {
	pieces, err := convention.Split(current.Text)
	if err != nil {
		c.add(Finding{Rule: RuleBroken, Path: f.Path, Owner: c.owner(f.Convention), Reason: err.Error(),
			Remedy: "restore the markers of the region"})
		return
	}
	for _, r := range f.Regions {
		if c.isExcepted(f.Path, r.Name) {
			continue
		}
		at := slices.IndexFunc(pieces, func(p convention.Piece) bool { return p.Name == r.Name })
		switch {
		case at < 0:
			c.add(Finding{Rule: RuleNoRegion, Path: f.Path, Owner: c.owner(r.Convention),
				Reason: "region " + r.Name + " is missing", Remedy: updateCommand + ", which writes it again"})
		case Digest(endLine(pieces[at].Text)) != r.Digest:
			c.add(Finding{Rule: RuleRegion, Path: f.Path, Line: pieces[at].Line, Owner: c.owner(r.Convention),
				Reason: "region " + r.Name + " was edited by hand, and its convention owns it",
				Remedy: "take the edit back or move it out of the region, or add an exception to " + subscription.File})
		}
	}
}

// conflictLine is the first line with a marker of a conflict; 0 if there is none.
func conflictLine(text string) int {
	number := 0
	for line := range strings.Lines(text) {
		number++
		if strings.HasPrefix(line, "<<<<<<< ") || strings.HasPrefix(line, ">>>>>>> ") {
			return number
		}
	}
	return 0
}

// HasConflict reports whether a text has markers of conflicts.
func HasConflict(text string) bool { return conflictLine(text) > 0 }

// Paths are those of a repository's files that a plan or a check has to know.
func Paths(lock *subscription.Lock, wanted convention.Tree, renames map[string]string) []string {
	paths := map[string]bool{}
	if lock != nil {
		for _, f := range lock.Files {
			paths[f.Path] = true
		}
	}
	for path := range wanted {
		paths[path] = true
	}
	for from, to := range renames {
		paths[from], paths[to] = true, true
	}
	return slices.Sorted(maps.Keys(paths))
}
