// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"crypto/sha256"
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
	return f.clone(ctx, u.Repository, url, func(c *repository.Clone) error {
		return f.open(c.Dir, func(opened *run.Repository) error { return f.propose(ctx, c, opened, u, url) })
	})
}

// propose plans an update, commits and pushes it, and opens a pull request for it.
func (f *Fleet) propose(ctx context.Context, c *repository.Clone, opened *run.Repository, u *Update, url string) error {
	if opened.Journal != nil {
		return fmt.Errorf("%w: somebody has committed %s: remove it", run.ErrInProgress, repository.JournalFile)
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
	_, err = opened.Apply(ctx, p, false)
	if err == nil && len(u.Conflicts) > 0 {
		err = opened.Tree.Finish() // The branch has no update in progress.
	}
	if err != nil {
		return err
	}
	q := newRequest(u, c, p, url)
	q.tree, err = c.Stage(ctx, update.ChangedPaths(p.Changes))
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

// request is what the branch of an update and its pull request should be. A repository has one of them for each branch
// that is updated: the next version of a convention goes to the same.
type request struct {
	clone                *repository.Clone
	head, base, tree     string
	message, title, body string // message is that of the commit
	mark                 string // is in the body, and names what is rendered
	labels               []string
	url, owner, name     string // the owner and the name are those on GitHub
	merged               string // the last commit of the branch's last pull request, if that was merged
}

// Labels of pull requests.
const (
	label         = "boilerplate"
	conflictLabel = "boilerplate-conflict"
)

const footer = "\nMade by `bellwether boilerplate fleet update`, which leaves this branch alone once somebody else " +
	"has pushed to it.\n"

func newRequest(u *Update, clone *repository.Clone, p *run.Proposal, url string) request {
	q := request{clone: clone, head: "boilerplate/" + clone.Branch, base: clone.Branch, message: p.Message, url: url,
		labels: append([]string{label}, u.Labels...)}
	q.title, q.body, _ = strings.Cut(p.Message, "\n")
	if len(u.Conflicts) > 0 {
		q.title += " (with conflicts)"
		q.labels = append(q.labels, conflictLabel)
		q.body = "\n**Conflicts.** These files have the markers of `git merge-file`: resolve what is between them, " +
			"and push to this branch.\n- " + strings.Join(u.Conflicts, "\n- ") + "\n" + q.body
	}
	const longest = 60_000 // GitHub takes 65,536 characters.
	q.mark = fmt.Sprintf("<!-- rendered: %x -->\n", sha256.Sum256(fmt.Append(nil, *p.Plan.Lock)))
	q.body = strings.ToValidUTF8(q.body[:min(len(q.body), longest)], "") + footer + q.mark
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
	case q.isAt(tip):
		u.Outcome = Unchanged
		return nil
	case !tip.IsOwn && tip.Commit != q.merged:
		u.Outcome, u.Detail = LeftAlone, "somebody has pushed to the branch "+q.head+": merge it, or delete it"
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

// runCommand pushes the branch, and then has the user's command open its pull request. The file of the body stays until
// that has succeeded, so that a command that failed, or was killed with this process, is run again the next time.
func (f *Fleet) runCommand(ctx context.Context, u *Update, q request) error {
	body := filepath.Join(f.Work, u.Name, "body.md")
	_, missing := os.Lstat(body)
	err := os.WriteFile(body, []byte(q.body), 0o600)
	if err == nil {
		err = q.push(ctx, u)
	}
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	if u.Outcome == Opened || u.Outcome == Refreshed || u.Outcome == Unchanged && missing == nil {
		cmd := exec.CommandContext(ctx, "sh", "-c", f.Command) //nolint:gosec // it is the user's
		cmd.Dir = q.clone.Dir
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
	return os.Remove(body)
}
