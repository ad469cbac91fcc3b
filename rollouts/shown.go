// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"fmt"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Texts for a wave that was not done when its rollout ended.
const (
	ShownStopped    = "Stopped"
	ShownNotStarted = "Not started"
)

// ShownPhase returns the phase of a wave for people. It is the wave's phase with two exceptions: a wave of a rollout
// that ended without success does not continue, and a wave that updates no cluster is shown as waiting.
func ShownPhase(r *v1alpha1.OperatorRollout, w *v1alpha1.WaveStatus) string {
	isTouched := w.Succeeded+w.Failed+w.InProgress > 0
	switch {
	case w.Phase == v1alpha1.WaveVerified || w.Phase == v1alpha1.WaveSkipped: // the phase is final
	case r.IsStopped() && isTouched:
		return ShownStopped
	case r.IsStopped():
		return ShownNotStarted
	case w.Phase == v1alpha1.WaveUpdating && !isTouched:
		return string(v1alpha1.WaveWaiting)
	}
	return string(w.Phase)
}

// MovedText says that the labels of clusters select another wave than the wave that the clusters belong to. clusters is
// a text such as "cluster prod-1".
func MovedText(clusters, from, to string) string {
	return fmt.Sprintf("the labels of %s select wave %s now; in this rollout wave %s still applies", clusters, to, from)
}
