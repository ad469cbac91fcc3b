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

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
)

// Rule is a kind of finding.
type Rule struct {
	Description string
	Remedy      string // the solution for a finding
}

const (
	runUpdate    = "run `bellwether boilerplate update`"
	addException = "add an exception to " + subscription.File
)

// Rules are the rules of findings, by name.
var Rules = map[string]Rule{
	"edited":  {"A file that a convention owns was edited by hand.", "take the edit back, or " + addException},
	"missing": {"A file that a convention brings is missing.", runUpdate + ", which writes it again"},
	"region-edited": {"A region that a convention owns was edited by hand.",
		"take the edit back or move it out of the region, or " + addException},
	"region-missing": {"A region that a convention brings is missing.", runUpdate + ", which writes it again"},
	"region-broken":  {"The markers of a region are broken.", "restore the markers of the region"},
	"mode":           {"A file is executable and should not be, or the reverse.", runUpdate + ", which sets it"},
	"not-a-file": {"Something else than a file is at the path of a file.",
		"replace it by the file, or add an exception"},
	"exception-expired": {"An exception has expired.", "remove it and " + runUpdate + ", or give it a later day"},
	"exception-unused":  {"An exception is for a path that no convention brings.", "remove it"},
	"not-updated":       {"The subscription has changed since the last update.", runUpdate},
	"update-in-progress": {"An update was interrupted, or has conflicts.",
		"resolve its conflicts and run `bellwether boilerplate update --continue`, or take it back with --abort"},
	"conflict-marker": {"A file has the markers of a conflict.", "resolve the conflict"},
}

// Finding is a difference between a repository and its conventions.
type Finding struct {
	Rule   string `json:"rule"`
	Path   string `json:"path"`
	Line   int    `json:"line,omitempty"`  // 0 if the finding is about the whole file
	Owner  string `json:"owner,omitempty"` // the convention with its version; empty for the subscription itself
	Reason string `json:"reason"`
	Remedy string `json:"remedy"`
}

// String returns the finding in one line.
func (f Finding) String() string {
	place, owner := f.Path, ""
	if f.Line > 0 {
		place = fmt.Sprintf("%s:%d", f.Path, f.Line)
	}
	if f.Owner != "" {
		owner = " (" + f.Owner + ")"
	}
	return place + ": " + f.Rule + owner + ": " + f.Reason
}

// State is the state of a repository.
type State struct {
	Subscription *subscription.Subscription
	Lock         *subscription.Lock // nil before the first update
	Current      map[string]*File
	InProgress   bool // an update was interrupted
	Now          time.Time
}

// Check returns the differences between a repository and its conventions, sorted by path and line.
func Check(s State) []Finding {
	c := &checker{State: s}
	if s.InProgress {
		c.addFinding("update-in-progress", subscription.Folder+"/update.yaml", 0, "", "an update is in progress")
	}
	for _, difference := range s.Subscription.Differences(s.Lock) {
		c.addFinding("not-updated", subscription.File, 0, "", difference)
	}
	c.checkExceptions()
	if s.Lock != nil {
		for i := range s.Lock.Files {
			c.checkFile(&s.Lock.Files[i])
		}
	}
	slices.SortStableFunc(c.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule))
	})
	return c.findings
}

// checker collects the findings of Check.
type checker struct {
	State
	findings []Finding
}

// addFinding adds a finding about a file of a convention, or about the subscription if convention is empty.
func (c *checker) addFinding(rule, path string, line int, convention, reason string) {
	owner := convention
	if l := c.Lock.Convention(convention); l != nil {
		owner += "@" + l.Version
	}
	c.findings = append(c.findings, Finding{Rule: rule, Path: path, Line: line, Owner: owner, Reason: reason,
		Remedy: Rules[rule].Remedy})
}

// checkExceptions reports expired and unused exceptions.
func (c *checker) checkExceptions() {
	for _, e := range c.Subscription.Exceptions {
		isKnown := c.Lock.File(e.Path) != nil || c.Lock != nil && slices.Contains(c.Lock.Excepted, e.Path)
		switch {
		case e.IsExpired(c.Now):
			c.addFinding("exception-expired", subscription.File, e.Line, "",
				fmt.Sprintf("the exception for %s expired on %s: %s", e.Path, e.Expires, e.Reason))
		case c.Lock != nil && !isKnown && c.Current[e.Path] == nil:
			c.addFinding("exception-unused", subscription.File, e.Line, "",
				"the exception is for "+e.Path+", which no convention brings")
		}
	}
}

// isExcepted reports whether a valid exception exists for a file or a region.
func (c *checker) isExcepted(path, region string) bool {
	return subscription.IsExcepted(c.Subscription.Exceptions, path, region, c.Now)
}

// checkFile reports the differences of one file. It reports nothing for a file with an exception, and for a file that
// is written only once.
func (c *checker) checkFile(f *subscription.LockedFile) {
	current := c.Current[f.Path]
	switch {
	case f.Kind == convention.Once || c.isExcepted(f.Path, ""):
		return
	case current == nil:
		c.addFinding("missing", f.Path, 0, f.Convention, "the file is missing")
		return
	case current.Obstacle != "":
		c.addFinding("not-a-file", f.Path, 0, f.Convention, current.Obstacle+" is in the way")
		return
	case current.Executable && !f.Executable:
		c.addFinding("mode", f.Path, 0, f.Convention, "the file is executable, and should not be")
	case f.Executable && !current.Executable:
		c.addFinding("mode", f.Path, 0, f.Convention, "the file is not executable, and should be")
	}
	if line := FindConflictLine(current.Text); line > 0 {
		c.addFinding("conflict-marker", f.Path, line, f.Convention, "the file has the markers of a conflict")
	}
	switch {
	case f.Kind == convention.Shared:
		c.checkRegions(f, current)
	case f.Kind == convention.Owned && Digest(current.Text) != f.Digest:
		c.addFinding("edited", f.Path, 0, f.Convention, "the file was edited by hand, and its convention owns it")
	}
}

// checkRegions reports missing and edited regions of a shared file.
func (c *checker) checkRegions(f *subscription.LockedFile, current *File) {
	pieces, err := convention.Split(current.Text)
	if err != nil {
		c.addFinding("region-broken", f.Path, 0, f.Convention, err.Error())
		return
	}
	for _, r := range f.Regions {
		index := findRegion(pieces, r.Name)
		switch {
		case c.isExcepted(f.Path, r.Name): // the region may differ or be missing
		case index < 0:
			c.addFinding("region-missing", f.Path, 0, r.Convention, "region "+r.Name+" is missing")
		case Digest(convention.EndLine(pieces[index].Text)) != r.Digest:
			c.addFinding("region-edited", f.Path, pieces[index].Line, r.Convention,
				"region "+r.Name+" was edited by hand, and its convention owns it")
		}
	}
}

// FindConflictLine returns the first line with a conflict marker, from 1; 0 if there is none.
func FindConflictLine(text string) int {
	number := 0
	for line := range strings.Lines(text) {
		number++
		if strings.HasPrefix(line, "<<<<<<< ") || strings.HasPrefix(line, ">>>>>>> ") {
			return number
		}
	}
	return 0
}

// ListPaths returns the paths of the files that a plan or a check needs.
func ListPaths(lock *subscription.Lock, wanted convention.Tree, renames map[string]string) []string {
	paths := sets.KeySet(wanted).Union(sets.KeySet(renames)).Insert(slices.Collect(maps.Values(renames))...)
	if lock != nil {
		for _, f := range lock.Files {
			paths.Insert(f.Path)
		}
	}
	return sets.List(paths)
}
