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

	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// refusedMessage is the text that users search for.
const refusedMessage = "hub refuses my credentials"

// refusal records since when the hub refuses the agent's credentials, and when the hub
// accepted the last renewal.
type refusal struct {
	mu    sync.Mutex
	since time.Time
	err   error
	// acceptedAt is when the last renewal succeeded. lastError is the error of the newest
	// renewal; nil if it succeeded.
	acceptedAt time.Time
	lastError  error
}

// isRefusal reports whether the hub answered and did not accept the credentials, or does not
// grant them the agent's Role.
func isRefusal(err error) bool { return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) }

// record stores the result of a renewal. An error without a response of the hub does not
// change a recorded refusal.
func (r *refusal) record(err error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastError = err
	switch {
	case err == nil:
		r.acceptedAt = now
		r.since, r.err = time.Time{}, nil
	case isRefusal(err):
		if r.err == nil {
			r.since = now
		}
		r.err = err
	}
}

// Ready is a health check. It fails while the hub refuses the agent's credentials. It does not
// fail if the hub cannot be reached, because that is not a failure of the agent.
func (l *Lease) Ready(*http.Request) error { return l.newRefusalError() }

// Connected is a health check. It fails while the hub accepts no renewals of the Lease, for any
// reason, so that the cluster counts as offline. The readiness probe of the agent does not use
// it, because the reason might not be a failure of the agent.
func (l *Lease) Connected(*http.Request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.acceptedAt.IsZero() && l.lastError == nil:
		return errNotRenewedYet
	case l.acceptedAt.IsZero():
		return fmt.Errorf("%w: %w", errNotRenewedYet, l.lastError)
	case l.Now().Sub(l.acceptedAt) > l.Validity:
		return fmt.Errorf("the Lease on the hub has not been renewed since %s: %w",
			phrase.Time(l.acceptedAt),
			l.lastError)
	}
	return nil
}

var errNotRenewedYet = errors.New("the Lease on the hub has not been renewed yet")

// newRefusalError returns an error with the start and the reason of the hub's refusal, and with
// the command that solves it; nil while the hub does not refuse the credentials.
func (l *Lease) newRefusalError() error {
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
		"over the new credentials by itself", refusedMessage, phrase.Time(l.since), l.err, join)
}
