// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
	"github.com/bellwether-dev/bellwether/boilerplate/update"
)

// Status contains the subscriptions of a repository and its state.
type Status struct {
	Conventions []ConventionStatus `json:"conventions"`
	Exceptions  []ExceptionStatus  `json:"exceptions"`
	InProgress  []string           `json:"inProgress,omitempty"` // the paths of an update in progress
	Findings    int                `json:"findings"`             // the number of differences to the conventions
}

// ConventionStatus is a convention that a repository subscribes to. Version and Digest are those of the last
// rendering, and empty before it.
type ConventionStatus struct {
	subscription.Use
	Newest  string `json:"newest,omitempty"`  // the current version of the source; empty if it was not queried
	Problem string `json:"problem,omitempty"` // the reason why the source could not be read
}

// IsBehind reports whether the source has a version other than the rendered version.
func (c ConventionStatus) IsBehind() bool { return c.Newest != "" && c.Newest != c.Version }

// ExceptionStatus is an exception of a repository.
type ExceptionStatus struct {
	subscription.Exception
	DaysLeft int `json:"daysLeft"` // negative if it has expired
}

// Status returns the state of a repository. Registries are queried only if remote is true.
func (r *Repository) Status(ctx context.Context, remote bool, now time.Time) (*Status, error) {
	findings, err := r.Check(now)
	if err != nil {
		return nil, err
	}
	loader, err := r.newLoader()
	if err != nil {
		return nil, err
	}
	s := &Status{Conventions: []ConventionStatus{}, Exceptions: []ExceptionStatus{}, Findings: len(findings)}
	for _, use := range r.Subscription.Conventions {
		requested := subscription.Use{Name: use.Name, Source: use.Source}
		c, locked := ConventionStatus{Use: requested}, r.Lock.Convention(use.Name)
		if locked != nil {
			c.Version, c.Digest = locked.Version, locked.Digest
		}
		if remote || !strings.HasPrefix(use.Source, subscription.OCI) {
			found, err := loader.Load(ctx, requested, locked)
			if err != nil {
				c.Problem = err.Error()
			} else {
				c.Newest = found.Version
			}
		}
		s.Conventions = append(s.Conventions, c)
	}
	for _, e := range r.Subscription.Exceptions {
		s.Exceptions = append(s.Exceptions, ExceptionStatus{e, e.DaysLeft(now)})
	}
	if r.Journal != nil {
		s.InProgress = update.ChangedPaths(r.Journal.Changes)
	}
	return s, nil
}
