// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package vitals

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// PodHistory counts the restarts of an operator's containers from the statuses of its pods over time. A pod
// reports how often each container restarted since the pod was created, and why it ended the last time; so
// all restarts between two observations count with the last reason. The zero value is ready for use.
type PodHistory struct {
	// since is the time of the first observation.
	since time.Time
	// restarts are the counted restarts, by pod and container.
	restarts map[types.UID]map[string]int32
}

// Observe receives all current pods of the operator. It returns how many restarts happened since the
// last observation, by values of series.RestartReason. At the first observation of a pod that is
// older than this history, its restarts are not counted, because a previous agent has counted them.
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
		previousCounts, known := h.restarts[pod.UID]
		isOld := !known && pod.CreationTimestamp.Time.Before(h.since)
		counts := map[string]int32{}
		for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses,
			pod.Status.ContainerStatuses} {
			for _, c := range list {
				counts[c.Name] = c.RestartCount
				if added := c.RestartCount - previousCounts[c.Name]; added > 0 && !isOld {
					found[readRestartReason(c.LastTerminationState.Terminated)] += int(added)
				}
			}
		}
		next[pod.UID] = counts
	}
	h.restarts = next
	return found
}

// readRestartReason returns a value of series.RestartReason.
func readRestartReason(ended *corev1.ContainerStateTerminated) string {
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

// PendingPods counts the pods that have been Pending for at least
// MinAge: they cannot be scheduled, or their images cannot be pulled.
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
