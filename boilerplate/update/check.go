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
	Remedy      string // what to do about a finding
}

const (
	runUpdate    = "run `bellwether boilerplate update`"
	addException = "add an exception to " + subscription.File
)

// Rules are those of findings, by their names.
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

// Finding is one difference between a repository and its conventions.
type Finding struct {
	Rule   string `json:"rule"`
	Path   string `json:"path"`
	Line   int    `json:"line,omitempty"`  // 0 where the finding is about the file as a whole
	Owner  string `json:"owner,omitempty"` // the convention with its version; empty for the subscription itself
	Reason string `json:"reason"`
	Remedy string `json:"remedy"`
}

// String is the finding in one line.
func (f Finding) String() string {
	at, owner := f.Path, ""
	if f.Line > 0 {
		at = fmt.Sprintf("%s:%d", f.Path, f.Line)
	}
	if f.Owner != "" {
		owner = " (" + f.Owner + ")"
	}
	return at + ": " + f.Rule + owner + ": " + f.Reason
}

// State is what a repository has.
type State struct {
	Subscription *subscription.Subscription
	Lock         *subscription.Lock // nil where nothing was rendered yet
	Current      map[string]*File
	InProgress   bool // an update was interrupted
	Now          time.Time
}

// Check returns what has drifted, sorted by path and line.
func Check(s State) []Finding {
	c := &checker{State: s}
	if s.InProgress {
		c.add("update-in-progress", subscription.Folder+"/update.yaml", 0, "", "an update is in progress")
	}
	for _, difference := range s.Subscription.Differences(s.Lock) {
		c.add("not-updated", subscription.File, 0, "", difference)
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

// add notes a finding about a file of a convention, or about the subscription itself.
func (c *checker) add(rule, path string, line int, convention, reason string) {
	owner := convention
	if l := c.Lock.Convention(convention); l != nil {
		owner += "@" + l.Version
	}
	c.findings = append(c.findings, Finding{Rule: rule, Path: path, Line: line, Owner: owner, Reason: reason,
		Remedy: Rules[rule].Remedy})
}

func (c *checker) exceptions() {
	for _, e := range c.Subscription.Exceptions {
		switch {
		case e.Expired(c.Now):
			c.add("exception-expired", subscription.File, e.Line, "",
				fmt.Sprintf("the exception for %s expired on %s: %s", e.Path, e.Expires, e.Reason))
		case c.Lock != nil && c.Lock.File(e.Path) == nil && !slices.Contains(c.Lock.Excepted, e.Path) &&
			c.Current[e.Path] == nil:
			c.add("exception-unused", subscription.File, e.Line, "",
				"the exception is for "+e.Path+", which no convention brings")
		}
	}
}

func (c *checker) isExcepted(path, region string) bool {
	return subscription.IsExcepted(c.Subscription.Exceptions, path, region, c.Now)
}

func (c *checker) file(f *subscription.LockedFile) {
	current := c.Current[f.Path]
	switch {
	case f.Kind == convention.Once || c.isExcepted(f.Path, ""):
		return
	case current == nil:
		c.add("missing", f.Path, 0, f.Convention, "the file is missing")
		return
	case current.Obstacle != "":
		c.add("not-a-file", f.Path, 0, f.Convention, current.Obstacle+" is in the way")
		return
	case current.Executable && !f.Executable:
		c.add("mode", f.Path, 0, f.Convention, "the file is executable, and should not be")
	case f.Executable && !current.Executable:
		c.add("mode", f.Path, 0, f.Convention, "the file is not executable, and should be")
	}
	if line := ConflictLine(current.Text); line > 0 {
		c.add("conflict-marker", f.Path, line, f.Convention, "the file has the markers of a conflict")
	}
	switch {
	case f.Kind == convention.Shared:
		c.regions(f, current)
	case f.Kind == convention.Owned && Digest(current.Text) != f.Digest:
		c.add("edited", f.Path, 0, f.Convention, "the file was edited by hand, and its convention owns it")
	}
}

func (c *checker) regions(f *subscription.LockedFile, current *File) {
	pieces, err := convention.Split(current.Text)
	if err != nil {
		c.add("region-broken", f.Path, 0, f.Convention, err.Error())
		return
	}
	for _, r := range f.Regions {
		at := find(pieces, r.Name)
		switch {
		case c.isExcepted(f.Path, r.Name):
		case at < 0:
			c.add("region-missing", f.Path, 0, r.Convention, "region "+r.Name+" is missing")
		case Digest(convention.EndLine(pieces[at].Text)) != r.Digest:
			c.add("region-edited", f.Path, pieces[at].Line, r.Convention,
				"region "+r.Name+" was edited by hand, and its convention owns it")
		}
	}
}

// ConflictLine is the first line with a marker of a conflict; 0 if there is none.
func ConflictLine(text string) int {
	number := 0
	for line := range strings.Lines(text) {
		number++
		if strings.HasPrefix(line, "<<<<<<< ") || strings.HasPrefix(line, ">>>>>>> ") {
			return number
		}
	}
	return 0
}

// Paths are those of a repository's files that a plan or a check has to know.
func Paths(lock *subscription.Lock, wanted convention.Tree, renames map[string]string) []string {
	paths := sets.KeySet(wanted).Union(sets.KeySet(renames)).Insert(slices.Collect(maps.Values(renames))...)
	if lock != nil {
		for _, f := range lock.Files {
			paths.Insert(f.Path)
		}
	}
	return sets.List(paths)
}
