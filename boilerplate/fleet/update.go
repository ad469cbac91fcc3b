// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bellwether-dev/bellwether/boilerplate/repository"
	"github.com/bellwether-dev/bellwether/boilerplate/run"
	"github.com/bellwether-dev/bellwether/boilerplate/update"
)

// Outcomes of the update of a repository.
const (
	UpToDate  = "up to date"
	Planned   = "planned" // in a dry run
	Opened    = "opened"
	Refreshed = "refreshed" // the pull request was not as it should be
	Unchanged = "unchanged" // the pull request is as it should be
	LeftAlone = "left alone"
	Refused   = "refused"
	Failed    = "failed"
)

// Update is what became of the update of one repository.
type Update struct {
	Repository
	Outcome     string   `json:"outcome"`
	Versions    []string `json:"versions,omitempty"`    // which conventions change
	Head        string   `json:"head,omitempty"`        // the branch of the update
	PullRequest string   `json:"pullRequest,omitempty"` // its URL
	Conflicts   []string `json:"conflicts,omitempty"`   // files with markers of conflicts in the branch
	Detail      string   `json:"detail,omitempty"`      // why the outcome is what it is
}

// String is the update in one line.
func (u Update) String() string {
	return strings.TrimSuffix(u.Name+": "+u.Outcome+": "+strings.TrimSpace(u.PullRequest+" "+u.Detail), ": ")
}

// Update updates all repositories to what the sources of their conventions have now.
func (f *Fleet) Update(ctx context.Context, all []Repository) []Update {
	return each(ctx, f, all, func(ctx context.Context, r Repository) Update {
		u := Update{Repository: r}
		if err := f.update(ctx, &u); err != nil {
			u.Outcome, u.Detail = Failed, err.Error()
		}
		return u
	})
}

func (f *Fleet) update(ctx context.Context, u *Update) error {
	url := u.Source
	if u.isFolder() {
		var err error
		if url, err = repository.RemoteURL(ctx, u.Source); err != nil {
			return err
		}
	}
	clone, unlock, err := f.clone(ctx, u.Repository, url)
	if err != nil {
		return err
	}
	defer unlock()
	opened, err := run.Open(f.dir(u.Repository), f.Sources)
	if opened != nil {
		defer func() { _ = opened.Tree.Close() }()
	}
	if err == nil && opened.Journal != nil {
		err = fmt.Errorf("%w: somebody has committed %s: remove it", run.ErrInProgress, repository.JournalFile)
	}
	if err != nil {
		return err
	}
	p, err := opened.Plan(ctx, run.Options{Now: f.Now})
	if err != nil {
		return err
	}
	u.Outcome, u.Versions, u.Conflicts = UpToDate, p.Versions, update.Conflicts(p.Changes)
	for _, r := range p.Plan.Refusals {
		u.Outcome, u.Detail = Refused, strings.TrimPrefix(u.Detail+"; "+r.Path+": "+r.Reason, "; ")
	}
	if u.Outcome == Refused || len(p.Changes) == 0 {
		return nil
	}
	return f.propose(ctx, clone, opened, p, u, url)
}

// propose commits an update, pushes it, and opens a pull request for it.
func (f *Fleet) propose(ctx context.Context, clone *repository.Clone, opened *run.Repository, p *run.Proposal,
	u *Update, url string) error {
	_, err := opened.Apply(ctx, p, false)
	if err == nil && len(u.Conflicts) > 0 {
		err = opened.Tree.Finish() // The branch has no update in progress.
	}
	if err != nil {
		return err
	}
	q := newRequest(u, clone, p, url)
	q.tree, err = clone.Stage(ctx, update.ChangedPaths(p.Changes))
	if err != nil || q.tree == "" { // Git makes nothing of the changes, such as a mode on some file systems.
		return err
	}
	switch u.Outcome, u.Head = Planned, q.head; {
	case f.DryRun:
		return nil
	case f.GitHub != nil:
		return f.GitHub.propose(ctx, u, q)
	}
	return f.runCommand(ctx, u, q)
}

// request is what a branch and its pull request should be.
type request struct {
	clone                *repository.Clone
	head, base, tree     string
	message, title, body string // message is that of the commit
	labels               []string
	hasConflicts         bool
	url                  string
}

// Labels of pull requests.
const (
	label         = "boilerplate"
	conflictLabel = "boilerplate-conflict"
)

const footer = "\nMade by `bellwether boilerplate fleet update`, which leaves this branch alone once somebody else " +
	"has pushed to it.\n"

func newRequest(u *Update, clone *repository.Clone, p *run.Proposal, url string) request {
	q := request{clone: clone, base: clone.Branch, message: p.Message, url: url, hasConflicts: len(u.Conflicts) > 0,
		labels: append([]string{label}, u.Labels...)}
	// The branch is named after what is rendered, and for which branch.
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %v", q.base, *p.Plan.Lock))
	const bytes, longest = 6, 60_000 // GitHub takes 65,536 characters.
	q.head = fmt.Sprintf("boilerplate/%x", sum[:bytes])
	q.title, q.body, _ = strings.Cut(p.Message, "\n")
	if q.hasConflicts {
		q.labels = append(q.labels, conflictLabel)
		q.body = "\n**Conflicts.** These files have the markers of `git merge-file`: resolve what is between them, " +
			"and push to this branch.\n- " + strings.Join(u.Conflicts, "\n- ") + "\n" + q.body
	}
	q.body = strings.ToValidUTF8(q.body[:min(len(q.body), longest)], "") + footer
	return q
}

// push pushes the branch unless it is as it should be, or somebody else has pushed to it. It sets the outcome.
func (q request) push(ctx context.Context, u *Update) error {
	tip, err := q.clone.Tip(ctx, q.head)
	switch {
	case err != nil:
		return err
	case tip == nil:
		u.Outcome = Opened
	case !tip.IsOwn:
		u.Outcome, u.Detail = LeftAlone, "somebody has pushed to the branch "+q.head
		return nil
	case q.isAt(tip):
		u.Outcome = Unchanged
		return nil
	default:
		u.Outcome = Refreshed
	}
	if err := q.clone.Push(ctx, q.head, tip, q.message, q.tree); err != nil {
		if tip, tipErr := q.clone.Tip(ctx, q.head); tipErr != nil || !q.isAt(tip) {
			return err
		}
		u.Outcome = Unchanged // Another process has pushed the same.
	}
	return nil
}

func (q request) isAt(tip *repository.Tip) bool {
	return tip != nil && tip.IsOwn && tip.Tree == q.tree && tip.Parent == q.clone.Head
}

// runCommand pushes the branch, and then has the user's command open a pull request. A command that failed, or was
// killed with this process, is run again the next time.
func (f *Fleet) runCommand(ctx context.Context, u *Update, q request) error {
	dir := f.dir(u.Repository)
	pending, body := filepath.Join(dir, "..", "pending"), filepath.Join(dir, "..", "body.md")
	before, _ := os.ReadFile(pending)
	err := errors.Join(os.WriteFile(body, []byte(q.body), 0o600), os.WriteFile(pending, []byte(q.head), 0o600))
	if err == nil {
		err = q.push(ctx, u)
	}
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	if u.Outcome == Opened || u.Outcome == Refreshed || u.Outcome == Unchanged && string(before) == q.head {
		cmd := exec.CommandContext(ctx, "sh", "-c", f.Command) //nolint:gosec // it is the user's
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "BOILERPLATE_BRANCH="+q.head, "BOILERPLATE_BASE="+q.base,
			"BOILERPLATE_TITLE="+q.title, "BOILERPLATE_BODY_FILE="+body, "BOILERPLATE_URL="+q.url,
			"BOILERPLATE_LABELS="+strings.Join(q.labels, ","), "BOILERPLATE_OUTCOME="+u.Outcome)
		out, err := cmd.CombinedOutput()
		text := strings.TrimSpace(string(out))
		if err != nil {
			return fmt.Errorf("the command failed: %w: %s", err, text)
		}
		u.PullRequest = text[strings.LastIndex(text, "\n")+1:] // Such commands print its URL at the end.
	}
	if err := os.Remove(pending); err != nil {
		return fmt.Errorf("end the request: %w", err)
	}
	return nil
}
