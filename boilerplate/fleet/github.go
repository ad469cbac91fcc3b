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

	"github.com/bellwether-dev/bellwether/internal/outbound"
)

// GitHub opens pull requests with the API of GitHub.
type GitHub struct {
	client *github.Client
	mu     sync.Mutex // prevents parallel requests, as GitHub requires
	wait   func(context.Context, time.Duration) error
}

// NewGitHub returns a client of GitHub, or of the GitHub Enterprise Server at the address. The token is sent only to
// this server.
func NewGitHub(address, token string) (*GitHub, error) {
	const maxAnswer = 16 << 20
	client := github.NewClient(outbound.NewClient(outbound.NewTransport(), maxAnswer)).WithAuthToken(token)
	if address != "" {
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "https" && u.Hostname() != "127.0.0.1" { // tests use 127.0.0.1
			return nil, fmt.Errorf("%q is no https URL, and a token is not sent there", address)
		}
		if client, err = client.WithEnterpriseURLs(address, address); err != nil {
			return nil, fmt.Errorf("connect to %s: %w", address, err)
		}
	}
	client.DisableRateLimitCheck = true // callAPI waits as long as GitHub requires
	return &GitHub{client: client, wait: outbound.Sleep}, nil
}

// callAPI makes a request, and repeats it if GitHub has refused it because of a rate limit.
func callAPI[T any](ctx context.Context, g *GitHub, do func() (T, *github.Response, error)) (T, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	const attempts, maxDelay = 3, 5 * time.Minute
	for attempt := 1; ; attempt++ {
		result, response, err := do()
		if err == nil {
			return result, nil
		}
		delay, isLimited := readRetryDelay(response)
		if !isLimited || attempt == attempts || delay > maxDelay {
			return result, fmt.Errorf("GitHub: %w", err)
		}
		if err := g.wait(ctx, delay); err != nil {
			return result, err
		}
	}
}

// readRetryDelay returns the time that GitHub requires a client to wait, and whether a rate limit is the reason of the
// refusal. Source: GitHub's "Rate limits for the REST API".
func readRetryDelay(r *github.Response) (time.Duration, bool) {
	isRefused := r != nil && (r.StatusCode == http.StatusForbidden || r.StatusCode == http.StatusTooManyRequests)
	if !isRefused {
		return 0, false
	}
	if delay, ok := outbound.RetryAfter(r.Response, time.Now()); ok {
		return delay, true
	}
	if r.Header.Get(github.HeaderRateRemaining) == "0" {
		return max(time.Until(r.Rate.Reset.Time), time.Second), true
	}
	// GitHub does not say how long to wait. The status Forbidden then has another reason than a rate limit.
	return time.Minute, r.StatusCode == http.StatusTooManyRequests
}

// repositoryPattern matches the owner and the name, which are the last two parts of a URL.
var repositoryPattern = regexp.MustCompile(`[/:]([A-Za-z0-9._-]+)/([A-Za-z0-9._-]+?)(\.git)?/?$`)

// updatePullRequest pushes a branch, and opens its pull request or updates it. It sets the outcome and the pull
// request of u. If somebody has closed the pull request for the same content, it changes nothing, and the outcome
// is LeftAlone.
func (g *GitHub) updatePullRequest(ctx context.Context, u *Update, q request) error {
	match := repositoryPattern.FindStringSubmatch(q.url)
	if match == nil {
		return fmt.Errorf("%s does not say its owner and name on GitHub", q.url)
	}
	q.owner, q.name = match[1], match[2]
	found, err := g.findPullRequest(ctx, q)
	if err != nil {
		return err
	}
	u.PullRequest = found.GetHTMLURL()
	switch isClosed := found.GetState() == "closed"; {
	case isClosed && found.MergedAt != nil:
		q.merged = found.GetHead().GetSHA() // GitHub keeps this commit
	case isClosed && strings.Contains(found.GetBody(), strings.TrimSpace(q.mark)):
		u.Outcome, u.Detail = LeftAlone, "somebody has closed the pull request"
		return nil
	}
	if err := q.pushBranch(ctx, u); err != nil || u.Outcome == LeftAlone {
		return err
	}
	if found.GetState() != "open" {
		u.Outcome = Opened
		if found, err = g.createPullRequest(ctx, q); err != nil {
			return err
		}
		u.PullRequest = found.GetHTMLURL()
	}
	changed, err := g.refreshPullRequest(ctx, q, found)
	if changed && u.Outcome == Unchanged {
		u.Outcome = Refreshed
	}
	return err
}

// findPullRequest returns the open pull request of a branch, or else the last closed one; nil if there is none.
func (g *GitHub) findPullRequest(ctx context.Context, q request) (*github.PullRequest, error) {
	list, err := callAPI(ctx, g, func() ([]*github.PullRequest, *github.Response, error) {
		return g.client.PullRequests.List(ctx, q.owner, q.name, &github.PullRequestListOptions{
			State: "all", Head: q.owner + ":" + q.head, Base: q.base, Sort: "created", Direction: "desc"})
	})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	isOpen := func(p *github.PullRequest) bool { return p.GetState() == "open" }
	return list[max(slices.IndexFunc(list, isOpen), 0)], nil // the first is the newest
}

// createPullRequest opens a pull request. If another process has already opened it, that pull request is returned.
func (g *GitHub) createPullRequest(ctx context.Context, q request) (*github.PullRequest, error) {
	created, err := callAPI(ctx, g, func() (*github.PullRequest, *github.Response, error) {
		return g.client.PullRequests.Create(ctx, q.owner, q.name,
			&github.NewPullRequest{Title: &q.title, Head: &q.head, Base: &q.base, Body: &q.body})
	})
	var refusal *github.ErrorResponse
	if errors.As(err, &refusal) && refusal.Response.StatusCode == http.StatusUnprocessableEntity {
		if found, findErr := g.findPullRequest(ctx, q); findErr == nil && found.GetState() == "open" {
			return found, nil
		}
	}
	return created, err
}

// refreshPullRequest sets title, text and labels, and reports whether it changed any of them. Labels that other users
// added stay.
func (g *GitHub) refreshPullRequest(ctx context.Context, q request, p *github.PullRequest) (bool, error) {
	current, wanted := sets.New[string](), sets.New(q.labels...)
	for _, l := range p.Labels {
		current.Insert(l.GetName())
	}
	wanted = wanted.Union(current.Clone().Delete(conflictLabel))
	body := strings.ReplaceAll(p.GetBody(), "\r\n", "\n")
	if p.GetTitle() == q.title && body == q.body && current.Equal(wanted) {
		return false, nil
	}
	labels := sets.List(wanted)
	_, err := callAPI(ctx, g, func() (*github.Issue, *github.Response, error) {
		return g.client.Issues.Edit(ctx, q.owner, q.name, p.GetNumber(),
			&github.IssueRequest{Title: &q.title, Body: &q.body, Labels: &labels})
	})
	return true, err
}
