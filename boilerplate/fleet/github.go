// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-github/v84/github"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/bellwether-dev/bellwether/outbound"
)

// GitHub opens pull requests by GitHub's API.
type GitHub struct {
	client *github.Client
	mu     sync.Mutex // keeps requests from each other, as GitHub asks its clients to do
	wait   func(context.Context, time.Duration) error
}

// NewGitHub returns a client of GitHub, or of the GitHub Enterprise Server with this address. The token is sent there
// and nowhere else.
func NewGitHub(address, token string) (*GitHub, error) {
	const maxAnswer = 16 << 20
	client := github.NewClient(outbound.Client(outbound.Transport(), maxAnswer)).WithAuthToken(token)
	if address != "" {
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "https" && u.Hostname() != "127.0.0.1" {
			return nil, fmt.Errorf("%q is no https URL, and a token is not sent there", address)
		}
		if client, err = client.WithEnterpriseURLs(address, address); err != nil {
			return nil, fmt.Errorf("connect to %s: %w", address, err)
		}
	}
	client.DisableRateLimitCheck = true // call waits as long as GitHub says.
	return &GitHub{client: client, wait: outbound.Sleep}, nil
}

// call makes a request, and repeats it if GitHub has refused it for the number of requests.
func call[T any](ctx context.Context, g *GitHub, do func() (T, *github.Response, error)) (T, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	const attempts, longest = 3, 5 * time.Minute
	for attempt := 1; ; attempt++ {
		result, response, err := do()
		if err == nil {
			return result, nil
		}
		delay, isLimited := retryAfter(response)
		if !isLimited || attempt == attempts || delay > longest {
			return result, fmt.Errorf("GitHub: %w", err)
		}
		if err := g.wait(ctx, delay); err != nil {
			return result, err
		}
	}
}

// retryAfter is how long GitHub wants a client to wait. Source: GitHub's "Rate limits for the REST API".
func retryAfter(r *github.Response) (time.Duration, bool) {
	if r == nil || r.StatusCode != http.StatusForbidden && r.StatusCode != http.StatusTooManyRequests {
		return 0, false
	}
	if asked, ok := outbound.RetryAfter(r.Response, time.Now()); ok {
		return asked, true
	}
	if r.Header.Get(github.HeaderRateRemaining) == "0" {
		return max(time.Until(r.Rate.Reset.Time), time.Second), true
	}
	return time.Minute, r.StatusCode == http.StatusTooManyRequests
}

// ownerAndName are the last two parts of a URL.
var ownerAndName = regexp.MustCompile(`[/:]([A-Za-z0-9._-]+)/([A-Za-z0-9._-]+?)(\.git)?/?$`)

// propose pushes a branch and brings its pull request to what it should be.
func (g *GitHub) propose(ctx context.Context, u *Update, q request) error {
	full := ownerAndName.FindStringSubmatch(q.url)
	if full == nil {
		return fmt.Errorf("%s does not say its owner and name on GitHub", q.url)
	}
	q.owner, q.name = full[1], full[2]
	found, err := g.find(ctx, q)
	if err != nil {
		return err
	}
	u.PullRequest = found.GetHTMLURL()
	switch isClosed := found.GetState() == "closed"; {
	case isClosed && found.MergedAt != nil:
		q.merged = found.GetHead().GetSHA() // GitHub keeps it.
	case isClosed && strings.Contains(found.GetBody(), strings.TrimSpace(q.mark)):
		u.Outcome, u.Detail = LeftAlone, "somebody has closed the pull request"
		return nil
	}
	if err := q.push(ctx, u); err != nil || u.Outcome == LeftAlone {
		return err
	}
	if found.GetState() != "open" {
		u.Outcome = Opened
		if found, err = g.create(ctx, q); err != nil {
			return err
		}
		u.PullRequest = found.GetHTMLURL()
	}
	changed, err := g.refresh(ctx, q, found)
	if changed && u.Outcome == Unchanged {
		u.Outcome = Refreshed
	}
	return err
}

// find returns the open pull request of a branch, or else the last one that was closed; nil if there was none.
func (g *GitHub) find(ctx context.Context, q request) (*github.PullRequest, error) {
	list, err := call(ctx, g, func() ([]*github.PullRequest, *github.Response, error) {
		return g.client.PullRequests.List(ctx, q.owner, q.name, &github.PullRequestListOptions{
			State: "all", Head: q.owner + ":" + q.head, Base: q.base, Sort: "created", Direction: "desc"})
	})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	isOpen := func(p *github.PullRequest) bool { return p.GetState() == "open" }
	return list[max(slices.IndexFunc(list, isOpen), 0)], nil
}

// create opens a pull request. If somebody else has done so by now, that one is returned.
func (g *GitHub) create(ctx context.Context, q request) (*github.PullRequest, error) {
	made, err := call(ctx, g, func() (*github.PullRequest, *github.Response, error) {
		return g.client.PullRequests.Create(ctx, q.owner, q.name,
			&github.NewPullRequest{Title: &q.title, Head: &q.head, Base: &q.base, Body: &q.body})
	})
	var refused *github.ErrorResponse
	if errors.As(err, &refused) && refused.Response.StatusCode == http.StatusUnprocessableEntity {
		if found, findErr := g.find(ctx, q); findErr == nil && found.GetState() == "open" {
			return found, nil
		}
	}
	return made, err
}

// refresh brings title, text and labels to what they should be, and reports whether it changed any. Labels of others
// stay.
func (g *GitHub) refresh(ctx context.Context, q request, p *github.PullRequest) (bool, error) {
	has, wanted := sets.New[string](), sets.New(q.labels...)
	for _, l := range p.Labels {
		has.Insert(l.GetName())
	}
	wanted = wanted.Union(has.Clone().Delete(conflictLabel))
	body := strings.ReplaceAll(p.GetBody(), "\r\n", "\n")
	if p.GetTitle() == q.title && body == q.body && has.Equal(wanted) {
		return false, nil
	}
	labels := sets.List(wanted)
	_, err := call(ctx, g, func() (*github.Issue, *github.Response, error) {
		return g.client.Issues.Edit(ctx, q.owner, q.name, p.GetNumber(),
			&github.IssueRequest{Title: &q.title, Body: &q.body, Labels: &labels})
	})
	return true, err
}
