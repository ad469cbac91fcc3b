// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// refusals remembers which OperatorInstalls could not be written, so that their clusters
// are held back and hold up no others. It is an observation and not state: a hub that
// starts anew finds out again.
type refusals struct {
	mu  sync.Mutex
	all map[member]refusal
}

type member struct {
	rollout types.UID
	cluster string
}

type refusal struct {
	// since is when the writes began to fail.
	since time.Time
	cause string
	// pause grows with each attempt, and ends at until; both are zero while the cluster
	// is not held back.
	pause time.Duration
	until time.Time
}

const (
	firstPause, lastPause = time.Minute, 10 * time.Minute
	// doubt is how long a failure that may be everybody's has to last.
	doubt = 15 * time.Second
	// forgetAfter is how long after its last pause a failure is kept.
	forgetAfter = time.Hour
	// maxCause keeps a hold's message within its limit.
	maxCause = 400
)

// note takes in the result of an action.
func (r *refusals) note(rollout types.UID, cluster string, err error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := member{rollout, cluster}
	blame := blameFor(err)
	switch {
	case err == nil:
		delete(r.all, key)
		return
	case blame == nobody:
		return
	case r.all == nil:
		r.all = map[member]refusal{}
	}
	f, known := r.all[key]
	if !known {
		f.since = now
	}
	f.cause = phrase.Truncate(phrase.OneLine(err.Error()), maxCause)
	if blame == object || now.Sub(f.since) >= doubt {
		if f.pause = min(max(2*f.pause, firstPause), lastPause); blame == somebody {
			f.pause = firstPause
		}
		f.until = now.Add(f.pause)
	}
	r.all[key] = f
	for key, f := range r.all {
		if now.Sub(f.since) > forgetAfter && now.Sub(f.until) > forgetAfter {
			delete(r.all, key)
		}
	}
}

// hold adds the holds of a rollout's clusters.
func (r *refusals) hold(rollout types.UID, clusters []rollouts.Cluster, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) == 0 {
		return
	}
	for i := range clusters {
		f := r.all[member{rollout, clusters[i].Name}]
		if now.Before(f.until) {
			clusters[i].Holds = slices.Insert(clusters[i].Holds, 0, rollouts.Hold{
				Reason: v1alpha1.ReasonClusterNotWritable, Message: f.cause, Until: f.until, Defers: true,
			})
		}
	}
}

// blame is what a failed write says about the object.
type blame int

const (
	// nobody: somebody else was faster, or the API server did not answer or is
	// overloaded. It is tried again.
	nobody blame = iota
	// somebody: a webhook of the namespace may have failed, or the API server as a
	// whole.
	somebody
	// object: the API server refuses this object.
	object
)

func blameFor(err error) blame {
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest,
		metav1.StatusReasonNotFound, metav1.StatusReasonRequestEntityTooLarge:
		return object
	case metav1.StatusReasonInternalError:
		return somebody
	default:
		return nobody
	}
}
