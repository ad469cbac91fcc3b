// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

const (
	// DefaultJobTimeout is the timeout of a Job that sets none.
	DefaultJobTimeout = 5 * time.Minute
	// MaxJobTimeout is the longest permitted timeout of a Job.
	MaxJobTimeout = 24 * time.Hour
	minJobTimeout = time.Second
	// maxJobs is the API's limit for the Jobs that are requested from one cluster.
	maxJobs = 12
)

// Job is a Job that a cluster was requested to run.
type Job struct {
	RequestedAt time.Time
	// State is empty until the agent reports the Job.
	State   v1alpha1.JobState
	Message string
	EndedAt time.Time
}

// PreflightJob is a Job that must succeed on a cluster before the cluster is admitted.
type PreflightJob struct {
	Name    string
	Timeout time.Duration
}

// PreflightJobOf returns the preflight Job of a rollout. It returns nil if there is none.
func PreflightJobOf(ro *v1alpha1.OperatorRollout) *PreflightJob {
	if c := ro.Spec.Strategy.Preflight; c == nil || c.Job == nil {
		return nil
	}
	timeout := fillDefault(ro.Spec.Strategy.Preflight.Job.Timeout, metav1.Duration{Duration: DefaultJobTimeout})
	return &PreflightJob{Name: buildJobName(ro, "", ""), Timeout: timeout.Duration}
}

// buildJobName returns the name of the Job of a gate, or of the preflight Job if gate is empty. The name contains the
// number of retries, so a retry runs all Jobs again.
func buildJobName(ro *v1alpha1.OperatorRollout, wave, gate string) string {
	text := fmt.Sprintf("%s\x00%s\x00%s\x00%d", ro.UID, wave, gate, ro.Spec.Retries)
	sum := sha256.Sum256([]byte(text))
	kind := "gate"
	if gate == "" {
		kind = "preflight"
	}
	return kind + "-" + hex.EncodeToString(sum[:8])
}

// observeJobs returns the Jobs that an install requests, with their results, by name.
func observeJobs(o *v1alpha1.OperatorInstall) map[string]Job {
	if len(o.Spec.Jobs) == 0 {
		return nil
	}
	jobs := make(map[string]Job, len(o.Spec.Jobs))
	for _, requested := range o.Spec.Jobs {
		job := Job{RequestedAt: requested.RequestedAt.Time}
		for _, result := range o.Status.Jobs {
			if result.Name == requested.Name {
				job.State, job.Message = result.State, result.Message
				if result.EndedAt != nil {
					job.EndedAt = result.EndedAt.Time
				}
			}
		}
		jobs[requested.Name] = job
	}
	return jobs
}

// JobsFor returns the Jobs that an install must request: the Job of the action, and the newest Jobs of the same rollout
// that the install already requests. Jobs of other rollouts are dropped. An action without a template requests no Job;
// then requested is returned unchanged.
func JobsFor(ro *v1alpha1.OperatorRollout, a Action, requested []v1alpha1.RequestedJob,
	now time.Time) []v1alpha1.RequestedJob {
	if a.Template == nil {
		return requested
	}
	jobs := slices.DeleteFunc(slices.Clone(requested), func(j v1alpha1.RequestedJob) bool {
		return j.RolloutUID != string(ro.UID)
	})
	if slices.ContainsFunc(jobs, func(j v1alpha1.RequestedJob) bool { return j.Name == a.Job }) {
		return jobs
	}
	// The oldest Jobs are dropped if there are too many.
	slices.SortStableFunc(jobs, func(x, y v1alpha1.RequestedJob) int {
		return x.RequestedAt.Compare(y.RequestedAt.Time)
	})
	if limit := maxJobs - 1; len(jobs) > limit {
		jobs = jobs[len(jobs)-limit:]
	}
	return append(jobs, v1alpha1.RequestedJob{Name: a.Job, RolloutUID: string(ro.UID),
		Version: ro.Spec.Release.Version, RequestedAt: *roundDown(now), Template: *a.Template.DeepCopy()})
}

// listJobRequests returns at most MaxJobRequests actions that request Jobs: the preflight Job on clusters that
// wait only for the preflight Job, and the Jobs of gates after the wave is updated. preflight is nil if there is
// no preflight.
func listJobRequests(ro *v1alpha1.OperatorRollout, preflight *v1alpha1.Preflight, clusters map[string]*Cluster,
	installs map[string]*Install, waves []judgedWave) []Action {
	var actions []Action
	for i := range waves {
		w := &waves[i]
		if preflight != nil {
			actions = append(actions, listPreflightRequests(ro, preflight.Job, w)...)
		}
		actions = append(actions, listGateJobRequests(ro, w, clusters, installs)...)
	}
	return actions[:min(len(actions), MaxJobRequests)]
}

// listPreflightRequests returns actions that request the preflight Job on the clusters of the wave that wait only for
// the preflight Job.
func listPreflightRequests(ro *v1alpha1.OperatorRollout, template *v1alpha1.JobTemplate, w *judgedWave) []Action {
	var actions []Action
	for i := range w.members {
		if m := &w.members[i]; isBlockedByHold(w, m) && m.hold.NeedsJob {
			actions = append(actions, Action{Kind: ActionRunJob, Cluster: m.Cluster, Wave: w.Name,
				Job: buildJobName(ro, "", ""), Template: template})
		}
	}
	return actions
}

// listGateJobRequests returns actions that request the Jobs of a wave's gates, on clusters without such a request that
// are not frozen.
func listGateJobRequests(ro *v1alpha1.OperatorRollout, w *judgedWave, clusters map[string]*Cluster,
	installs map[string]*Install) []Action {
	if !w.reached || w.prior.IsDone() || w.clock.updatedAt == nil || w.isChanging() || w.failedGate != nil {
		return nil
	}
	var actions []Action
	for i, g := range w.Gates {
		if g.Job == nil || !isOpen(g, w.gates[i]) {
			continue
		}
		name := buildJobName(ro, w.Name, g.Name)
		for _, cluster := range selectJobClusters(name, g.Job.Clusters, listEvaluatedClusters(w.members), installs) {
			hold := findHold(ro, clusters[cluster])
			isFrozen := hold != nil && hold.Reason == v1alpha1.ReasonFrozen
			if _, isRequested := installs[cluster].Jobs[name]; !isRequested && !isFrozen {
				actions = append(actions, Action{Kind: ActionRunJob, Cluster: cluster, Wave: w.Name, Gate: g.Name,
					Job: name, Template: &g.Job.JobTemplate})
			}
		}
	}
	return actions
}

// selectJobClusters returns the clusters that run the Job of a gate: all clusters, or at most limit. Clusters for
// which the Job is already requested come first.
func selectJobClusters(name string, limit *int32, clusters []string, installs map[string]*Install) []string {
	if limit == nil || int(*limit) >= len(clusters) {
		return clusters
	}
	sorted := slices.Clone(clusters)
	slices.SortStableFunc(sorted, func(a, b string) int {
		_, isRequestedA := installs[a].Jobs[name]
		_, isRequestedB := installs[b].Jobs[name]
		return cmp.Compare(toInt(isRequestedB), toInt(isRequestedA))
	})
	return sorted[:*limit]
}

// toInt returns 1 for true and 0 for false.
func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// judgeJobGate returns the verdict on a gate by the results of its Job. The gate fails if the Job failed on any cluster
// of the wave, even on a cluster that does not have to run it now. It passes if the Job succeeded on all clusters that
// must run it. It waits while one of these clusters refuses the Job or reports no result.
func judgeJobGate(in gateInput, installs map[string]*Install) v1alpha1.GateStatus {
	name := buildJobName(in.rollout, in.wave.Name, in.gate.Name)
	runners := selectJobClusters(name, in.gate.Job.Clusters, in.clusters, installs)
	var passed, failed, pending []string
	var newest time.Time
	for _, cluster := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(runners, in.clusters)))) {
		job := installs[cluster].Jobs[name]
		isRunner := slices.Contains(runners, cluster)
		switch {
		case job.State == v1alpha1.JobFailed:
			failed = append(failed, cluster+": "+job.Message)
		case isRunner && job.State == v1alpha1.JobSucceeded:
			passed = append(passed, cluster)
		case isRunner:
			pending = append(pending, cluster+": "+explainMissingResult(job))
		}
		if job.EndedAt.After(newest) {
			newest = job.EndedAt
		}
	}
	current := v1alpha1.GateStatus{Name: in.gate.Name, Verdict: v1alpha1.GateWaiting}
	current.Evidence = fmt.Sprintf("the Job succeeded on %d of %s", len(passed), phrase.Count(len(runners), "cluster"))
	switch {
	case len(failed) > 0:
		current.Verdict = v1alpha1.GateFailed
		current.Evidence += "; it failed on " + phrase.First(failed, maxNamed)
	case len(pending) > 0:
		current.Evidence += "; no result of " + phrase.First(pending, maxNamed)
	default:
		current.Verdict = v1alpha1.GatePassed
		current.Evidence += ": " + phrase.First(passed, maxNamed)
	}
	current.Evidence = phrase.Truncate(current.Evidence, maxEvidence)
	if !newest.IsZero() {
		current.Measurement = &v1alpha1.GateMeasurement{At: *roundDown(newest), Value: fmt.Sprint(len(passed)),
			Threshold: fmt.Sprint(len(runners)), Samples: int64(len(passed) + len(failed))}
	}
	return addVerdictTime(in, in.previous, current)
}

// explainMissingResult says why a Job has no result.
func explainMissingResult(j Job) string {
	switch {
	case j.RequestedAt.IsZero():
		return "it was not asked to run yet"
	case j.State == v1alpha1.JobRefused:
		return "refused: " + j.Message
	case j.State == v1alpha1.JobRunning:
		return "running"
	}
	return fmt.Sprintf("the agent has reported nothing since %s", phrase.Time(j.RequestedAt))
}

// validateJob returns the invalid fields of a Job's template.
func validateJob(path *field.Path, t v1alpha1.JobTemplate) field.ErrorList {
	var problems field.ErrorList
	if t.Timeout != nil && (t.Timeout.Duration < minJobTimeout || t.Timeout.Duration > MaxJobTimeout) {
		problems = append(problems, field.Invalid(path.Child("timeout"), t.Timeout.Duration.String(),
			"must be between 1s and 24h"))
	}
	for _, v := range t.Env {
		if strings.HasPrefix(v.Name, "BELLWETHER_") {
			problems = append(problems, field.Invalid(path.Child("env"), v.Name,
				"variables that begin with BELLWETHER_ are set by the agent"))
		}
	}
	return problems
}
