// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bellwether-dev/bellwether/phrase"
)

// refused is the message that people search for.
const refused = "hub refuses my credentials"

// refusal remembers since when the hub refuses the agent's credentials, and when it took in a renewal last.
type refusal struct {
	mu    sync.Mutex
	since time.Time
	err   error
	// accepted is when the last renewal succeeded, and failure why the last one did not; nil if it did.
	accepted time.Time
	failure  error
}

// isRefusal tells whether the hub answered and did not accept the credentials, or
// does not grant them the agent's Role.
func isRefusal(err error) bool { return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) }

// note takes in the result of a renewal. An error that is no answer of the hub
// leaves a refusal as it is.
func (r *refusal) note(err error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failure = err
	switch {
	case err == nil:
		r.accepted = now
		r.since, r.err = time.Time{}, nil
	case isRefusal(err):
		if r.err == nil {
			r.since = now
		}
		r.err = err
	}
}

// Ready is a health check: it fails while the hub refuses the agent's credentials.
// A hub that cannot be reached is no failure of the agent.
func (l *Lease) Ready(*http.Request) error { return l.message() }

// Connected is a health check: it fails while the hub does not take in renewals of the Lease, for whatever reason, so
// that the cluster counts as offline there. It is no failure of the agent, whose readiness probe leaves it out.
func (l *Lease) Connected(*http.Request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.accepted.IsZero() && l.failure == nil:
		return errNotRenewedYet
	case l.accepted.IsZero():
		return fmt.Errorf("%w: %w", errNotRenewedYet, l.failure)
	case l.Now().Sub(l.accepted) > l.For:
		return fmt.Errorf("the Lease on the hub has not been renewed since %s: %w",
			phrase.Time(l.accepted),
			l.failure)
	}
	return nil
}

var errNotRenewedYet = errors.New("the Lease on the hub has not been renewed yet")

// message says since when and why the hub refuses the credentials, and what to do; nil while it does not.
func (l *Lease) message() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		return nil
	}
	join := l.ClusterName
	if l.Hosted {
		join += " --hosted"
	}
	return fmt.Errorf("%s since %s: %w; run `bellwether fleet join %s --cluster-kubeconfig FILE`: the agent takes "+
		"over the new credentials by itself", refused, phrase.Time(l.since), l.err, join)
}
