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
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// writeFailures records which OperatorInstalls could not be written, so that their clusters are
// held back and do not block other clusters. It is in memory only: after a restart, the hub
// detects the failures again.
type writeFailures struct {
	mu       sync.Mutex
	byMember map[member]writeFailure
}

// member is a cluster in a rollout.
type member struct {
	rollout types.UID
	cluster string
}

// writeFailure is the state of an OperatorInstall that could not be written.
type writeFailure struct {
	// since is when the writes began to fail.
	since time.Time
	cause string
	// pause is how long the cluster is held back. It doubles with each failure that is about the
	// object. The pause ends at until. Both are zero while the cluster is not held back.
	pause time.Duration
	until time.Time
}

const (
	minPause, maxPause = time.Minute, 10 * time.Minute
	// minFailureAge is how long a failure that can have a general cause must last before
	// the cluster is held back.
	minFailureAge = 15 * time.Second
	// forgetAfter is how long a failure is kept after its start and its last pause.
	forgetAfter = time.Hour
	// maxCauseLength keeps the message of a hold within its limit.
	maxCauseLength = 400
)

// record stores the result of an action. nil removes the failure of the cluster. An error that
// says nothing about the cluster is ignored. Other errors hold the cluster back, at once if they
// are about the object, or after minFailureAge.
func (w *writeFailures) record(rollout types.UID, cluster string, err error, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := member{rollout, cluster}
	blame := classifyError(err)
	switch {
	case err == nil:
		delete(w.byMember, key)
		return
	case blame == blameUnknown:
		return
	case w.byMember == nil:
		w.byMember = map[member]writeFailure{}
	}
	f, known := w.byMember[key]
	if !known {
		f.since = now
	}
	f.cause = phrase.Truncate(phrase.OneLine(err.Error()), maxCauseLength)
	if blame == blameObject || now.Sub(f.since) >= minFailureAge {
		if f.pause = min(max(2*f.pause, minPause), maxPause); blame == blameWebhook {
			f.pause = minPause // the cause might not be this cluster, so the pause does not grow
		}
		f.until = now.Add(f.pause)
	}
	w.byMember[key] = f
	for key, f := range w.byMember {
		if now.Sub(f.since) > forgetAfter && now.Sub(f.until) > forgetAfter {
			delete(w.byMember, key)
		}
	}
}

// addHolds adds a hold to each cluster of the rollout whose pause has not ended.
func (w *writeFailures) addHolds(rollout types.UID, clusters []rollouts.Cluster, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.byMember) == 0 {
		return
	}
	for i := range clusters {
		f := w.byMember[member{rollout, clusters[i].Name}]
		if now.Before(f.until) {
			clusters[i].Holds = slices.Insert(clusters[i].Holds, 0, rollouts.Hold{
				Reason: v1alpha1.ReasonClusterNotWritable, Message: f.cause, Until: f.until, Defers: true,
			})
		}
	}
}

// blame classifies the cause of a failed write.
type blame int

const (
	// blameUnknown: a conflict, or the API server did not answer or is overloaded. The error
	// says nothing about the cluster.
	blameUnknown blame = iota
	// blameWebhook: a webhook of the namespace might have failed, or the API server
	// as a whole has a problem.
	blameWebhook
	// blameObject: the API server refuses this object.
	blameObject
)

// classifyError returns the cause of a failed write by the reason of the API server's error.
func classifyError(err error) blame {
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest,
		metav1.StatusReasonNotFound, metav1.StatusReasonRequestEntityTooLarge:
		return blameObject
	case metav1.StatusReasonInternalError:
		return blameWebhook
	default:
		return blameUnknown
	}
}
