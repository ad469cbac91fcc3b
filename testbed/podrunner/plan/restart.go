// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// FirstBackoff is the wait before the first restart. A kubelet waits
	// 10 s; the testbed has no time to lose.
	FirstBackoff = time.Second
	// MaxBackoff is the longest wait before a restart.
	MaxBackoff = 30 * time.Second
	// HealthyAfter is how long a container must live for its back-off to start anew.
	HealthyAfter = 60 * time.Second
)

// Backoff returns the wait before the next start, given the wait before the
// last one (zero at first) and how long the container then lived.
func Backoff(previous, lived time.Duration) time.Duration {
	if previous == 0 || lived >= HealthyAfter {
		return FirstBackoff
	}
	return min(2*previous, MaxBackoff)
}

// Policy returns the restart policy of the container: init containers are
// started again until they succeed unless the pod says Never, and those that
// say Always are sidecars.
func Policy(pod *corev1.Pod, c *corev1.Container, init bool) corev1.RestartPolicy {
	switch {
	case c.RestartPolicy != nil:
		return corev1.RestartPolicy(*c.RestartPolicy)
	case init && pod.Spec.RestartPolicy == corev1.RestartPolicyAlways:
		return corev1.RestartPolicyOnFailure
	default:
		return pod.Spec.RestartPolicy
	}
}

// Restart reports whether a container that ended with code is started again.
func Restart(policy corev1.RestartPolicy, code int32) bool {
	switch policy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return code != 0
	default:
		return true
	}
}

// Verdict is what a probe's results amount to.
type Verdict int

// Verdicts of a probe. Undecided means that neither threshold is reached yet:
// what was true before still is.
const (
	Undecided Verdict = iota
	Passing
	Failing
)

// ProbeCount counts the results of a probe against its thresholds.
type ProbeCount struct{ successes, failures int32 }

// Observe takes the next result of probe p and returns the verdict. Thresholds
// that are not set are 1 for success and 3 for failure.
func (c *ProbeCount) Observe(p *corev1.Probe, ok bool) Verdict {
	if ok {
		c.successes, c.failures = c.successes+1, 0
		if c.successes >= orDefault(p.SuccessThreshold, 1) {
			return Passing
		}
		return Undecided
	}
	c.successes, c.failures = 0, c.failures+1
	if c.failures >= orDefault(p.FailureThreshold, 3) {
		return Failing
	}
	return Undecided
}

// Period returns the time between two probes.
func Period(p *corev1.Probe) time.Duration {
	return time.Duration(orDefault(p.PeriodSeconds, 10)) * time.Second
}

// Timeout returns the time that one probe may take.
func Timeout(p *corev1.Probe) time.Duration {
	return time.Duration(orDefault(p.TimeoutSeconds, 1)) * time.Second
}

func orDefault(n, otherwise int32) int32 {
	if n <= 0 {
		return otherwise
	}
	return n
}
