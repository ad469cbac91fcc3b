// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// PodHistory counts the restarts of an operator's containers from what its pods
// report over time. A pod reports how often each container restarted since the
// pod was created, and only why it ended the last time; so all restarts between
// two observations count with the reason of the last one. The zero value is
// ready for use.
type PodHistory struct {
	// since is when the first observation was made.
	since time.Time
	// restarts are those that were counted, by pod and container.
	restarts map[types.UID]map[string]int32
}

// Observe takes all pods that the operator has now. It returns how many
// restarts came since the last observation, by values of series.RestartReason.
// Restarts of pods that are older than the first observation do not count then:
// an agent that ran before has counted them.
func (h *PodHistory) Observe(pods []corev1.Pod, now time.Time) map[string]int {
	if h.since.IsZero() {
		h.since = now
	}
	found := map[string]int{}
	next := make(map[types.UID]map[string]int32, len(pods))
	for i := range pods {
		pod := &pods[i]
		if next[pod.UID] != nil { // two Deployments select it
			continue
		}
		before, known := h.restarts[pod.UID]
		isOld := !known && pod.CreationTimestamp.Time.Before(h.since)
		counts := map[string]int32{}
		for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses,
			pod.Status.ContainerStatuses} {
			for _, c := range list {
				counts[c.Name] = c.RestartCount
				if more := c.RestartCount - before[c.Name]; more > 0 && !isOld {
					found[restartReason(c.LastTerminationState.Terminated)] += int(more)
				}
			}
		}
		next[pod.UID] = counts
	}
	h.restarts = next
	return found
}

// restartReason returns a value of series.RestartReason.
func restartReason(ended *corev1.ContainerStateTerminated) string {
	switch {
	case ended == nil:
		return series.RestartOther
	case ended.Reason == "OOMKilled":
		return series.RestartOOM
	case ended.ExitCode != 0:
		return series.RestartError
	default:
		return series.RestartOther
	}
}

// PendingPods counts the pods that have been Pending for longer than MinAge: they
// cannot be scheduled, or their images cannot be pulled.
func PendingPods(pods []corev1.Pod, now time.Time) int {
	n := 0
	for i := range pods {
		p := &pods[i]
		if p.Status.Phase == corev1.PodPending && p.DeletionTimestamp == nil &&
			now.Sub(p.CreationTimestamp.Time) >= MinAge {
			n++
		}
	}
	return n
}
