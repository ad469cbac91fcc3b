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
	Refreshed = "refreshed" // the branch or the pull request was changed
	Unchanged = "unchanged" // the branch and the pull request were already up to date
	LeftAlone = "left alone"
	Refused   = "refused"
	Failed    = "failed"
)

// Update is the result of the update of one repository.
type Update struct {
	Repository
	Outcome     string   `json:"outcome"`
	Versions    []string `json:"versions,omitempty"`    // the conventions that change
	Head        string   `json:"head,omitempty"`        // the branch of the update
	PullRequest string   `json:"pullRequest,omitempty"` // the URL of the pull request
	Conflicts   []string `json:"conflicts,omitempty"`   // files in the branch with conflict markers
	Detail      string   `json:"detail,omitempty"`      // the reason for the outcome
}

// String returns the update in one line.
func (u Update) String() string {
	return strings.TrimSuffix(u.Name+": "+u.Outcome+": "+strings.TrimSpace(u.PullRequest+" "+u.Detail), ": ")
}

// Update updates all repositories to the versions that the sources of their conventions have now.
func (f *Fleet) Update(ctx context.Context, all []Repository) []Update {
	return processAll(ctx, f, all, func(ctx context.Context, r Repository) Update {
		u := Update{Repository: r}
		if err := f.updateRepository(ctx, &u); err != nil {
			u.Outcome, u.Detail = Failed, err.Error()
		}
		return u
	})
}

// updateRepository updates one repository and sets the fields of u.
func (f *Fleet) updateRepository(ctx context.Context, u *Update) error {
	url := u.Source
	if u.isFolder() {
		var err error
		if url, err = repository.RemoteURL(ctx, u.Source); err != nil {
			return err
		}
	}
	return f.useClone(ctx, u.Repository, url, func(c *repository.Clone) error {
		return f.useFolder(c.Dir, func(opened *run.Repository) error { return f.proposeUpdate(ctx, c, opened, u, url) })
	})
}

// proposeUpdate plans an update, commits and pushes it, and opens a pull request for it, by GitHub or by the command.
// It sets the outcome of u. It stops without an error if the update is refused, if nothing changes, and in a dry run.
func (f *Fleet) proposeUpdate(ctx context.Context, c *repository.Clone, opened *run.Repository, u *Update,
	url string) error {
	if opened.Journal != nil {
		return fmt.Errorf("%w: somebody has committed %s: remove it", run.ErrInProgress, repository.JournalFile)
	}
	p, err := opened.Plan(ctx, run.Options{Now: f.Now})
	if err != nil {
		return err
	}
	u.Outcome, u.Versions, u.Conflicts = UpToDate, p.Versions, update.ListConflicts(p.Changes)
	for _, r := range p.Plan.Refusals {
		u.Outcome, u.Detail = Refused, strings.TrimPrefix(u.Detail+"; "+r.Path+": "+r.Reason, "; ")
	}
	if u.Outcome == Refused || len(p.Changes) == 0 {
		return nil
	}
	_, err = opened.Apply(ctx, p, false)
	if err == nil && len(u.Conflicts) > 0 {
		err = opened.Tree.Finish() // the branch must not contain an update in progress
	}
	if err != nil {
		return err
	}
	q := newRequest(u, c, p, url)
	q.tree, err = c.Stage(ctx, update.ChangedPaths(p.Changes))
	if err != nil || q.tree == "" { // git sees no change, for example if only a mode changed on some file systems
		return err
	}
	switch u.Outcome, u.Head = Planned, q.head; {
	case f.DryRun:
		return nil
	case f.GitHub != nil:
		return f.GitHub.updatePullRequest(ctx, u, q)
	}
	return f.runCommand(ctx, u, q)
}

// request is the wanted state of an update's branch and its pull request. A repository has one request for each updated
// branch; later updates use the same request.
type request struct {
	clone                *repository.Clone
	head, base, tree     string
	message, title, body string // message is the message of the commit
	mark                 string // a line of the body that identifies the rendered content
	labels               []string
	url, owner, name     string // owner and name are those on GitHub
	merged               string // the last commit of the branch's last pull request if it was merged; empty otherwise
}

// Labels of pull requests.
const (
	label         = "boilerplate"
	conflictLabel = "boilerplate-conflict"
)

const footer = "\nMade by `bellwether boilerplate fleet update`, which leaves this branch alone once somebody else " +
	"has pushed to it.\n"

// newRequest returns the request for a proposal.
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
	const maxBody = 60_000 // GitHub accepts 65,536 characters
	q.mark = fmt.Sprintf("<!-- rendered: %x -->\n", sha256.Sum256(fmt.Append(nil, *p.Plan.Lock)))
	q.body = strings.ToValidUTF8(q.body[:min(len(q.body), maxBody)], "") + footer + q.mark
	return q
}

// pushBranch pushes the branch unless it is already up to date or another user has pushed to it. It sets the outcome.
func (q request) pushBranch(ctx context.Context, u *Update) error {
	tip, err := q.clone.Tip(ctx, q.head)
	switch {
	case err != nil:
		return err
	case tip == nil:
		u.Outcome = Opened
	case q.isCurrent(tip):
		u.Outcome = Unchanged
		return nil
	case !tip.IsOwn && tip.Commit != q.merged: // the commit of a merged pull request can be replaced
		u.Outcome, u.Detail = LeftAlone, "somebody has pushed to the branch "+q.head+": merge it, or delete it"
		return nil
	default:
		u.Outcome = Refreshed
	}
	if err := q.clone.Push(ctx, q.head, tip, q.message, q.tree); err != nil {
		if newTip, tipErr := q.clone.Tip(ctx, q.head); tipErr != nil || !q.isCurrent(newTip) {
			return err
		}
		u.Outcome = Unchanged // another process has pushed the same content
	}
	return nil
}

// isCurrent reports whether the branch already has the wanted commit.
func (q request) isCurrent(tip *repository.Tip) bool {
	return tip != nil && tip.IsOwn && tip.Tree == q.tree && tip.Parent == q.clone.Head
}

// runCommand pushes the branch, and then runs the user's command, which opens the pull request. The file with the body
// is removed only after success, so that a command that failed or was killed runs again in the next update.
func (f *Fleet) runCommand(ctx context.Context, u *Update, q request) error {
	body := filepath.Join(f.Work, u.Name, "body.md")
	_, statErr := os.Lstat(body)
	err := os.WriteFile(body, []byte(q.body), 0o600)
	if err == nil {
		err = q.pushBranch(ctx, u)
	}
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	isRepeated := u.Outcome == Unchanged && statErr == nil // the last command failed or was killed
	if u.Outcome == Opened || u.Outcome == Refreshed || isRepeated {
		cmd := exec.CommandContext(ctx, "sh", "-c", f.Command) //nolint:gosec // it is the user's own command
		cmd.Dir = q.clone.Dir
		cmd.Env = append(os.Environ(), "BOILERPLATE_BRANCH="+q.head, "BOILERPLATE_BASE="+q.base,
			"BOILERPLATE_TITLE="+q.title, "BOILERPLATE_BODY_FILE="+body, "BOILERPLATE_URL="+q.url,
			"BOILERPLATE_LABELS="+strings.Join(q.labels, ","), "BOILERPLATE_OUTCOME="+u.Outcome)
		out, err := cmd.CombinedOutput()
		text := strings.TrimSpace(string(out))
		if err != nil {
			return fmt.Errorf("the command failed: %w: %s", err, text)
		}
		u.PullRequest = text[strings.LastIndex(text, "\n")+1:] // such commands print the URL at the end
	}
	return os.Remove(body)
}
