// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"fmt"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Words for a wave of a rollout that ended before the wave did.
const (
	ShownStopped    = "Stopped"
	ShownNotStarted = "Not started"
)

// ShownPhase is what a person reads of a wave. It is the wave's phase, except where that says what does not happen: a
// wave of a rollout that ended without success does not go on, and one that updates no cluster waits.
func ShownPhase(r *v1alpha1.OperatorRollout, w *v1alpha1.WaveStatus) string {
	isTouched := w.Succeeded+w.Failed+w.InProgress > 0
	switch {
	case w.Phase == v1alpha1.WaveVerified || w.Phase == v1alpha1.WaveSkipped:
	case r.IsStopped() && isTouched:
		return ShownStopped
	case r.IsStopped():
		return ShownNotStarted
	case w.Phase == v1alpha1.WaveUpdating && !isTouched:
		return string(v1alpha1.WaveWaiting)
	}
	return string(w.Phase)
}

// MovedText says of clusters, such as "cluster prod-1", that their labels select another wave than the one that they
// belong to.
func MovedText(clusters, from, to string) string {
	return fmt.Sprintf("the labels of %s select wave %s now; in this rollout wave %s still applies", clusters, to, from)
}
