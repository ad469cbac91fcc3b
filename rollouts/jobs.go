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
	"github.com/bellwether-dev/bellwether/phrase"
)

const (
	// DefaultJobTimeout is how long a Job may run where nothing else is said.
	DefaultJobTimeout = 5 * time.Minute
	// MaxJobTimeout is the longest that a Job may run.
	MaxJobTimeout = 24 * time.Hour
	minJobTimeout = time.Second
	// maxJobs is the API's limit of Jobs that one cluster is asked to run.
	maxJobs = 12
)

// Job is one that a cluster was asked to run.
type Job struct {
	RequestedAt time.Time
	// State is empty while the agent has said nothing.
	State   v1alpha1.JobState
	Message string
	EndedAt time.Time
}

// PreflightJob is what has to succeed on a cluster before that is admitted.
type PreflightJob struct {
	Name    string
	Timeout time.Duration
}

// PreflightJobOf returns the preflight Job of a rollout; nil where there is none.
func PreflightJobOf(ro *v1alpha1.OperatorRollout) *PreflightJob {
	if c := ro.Spec.Strategy.Preflight; c == nil || c.Job == nil {
		return nil
	}
	return &PreflightJob{Name: jobName(ro, "", ""),
		Timeout: orValue(ro.Spec.Strategy.Preflight.Job.Timeout, metav1.Duration{Duration: DefaultJobTimeout}).Duration}
}

// jobName identifies a Job of a rollout, that of a gate or the preflight Job. A retry
// has all Jobs run again.
func jobName(ro *v1alpha1.OperatorRollout, wave, gate string) string {
	text := fmt.Sprintf("%s\x00%s\x00%s\x00%d", ro.UID, wave, gate, ro.Spec.Retries)
	sum := sha256.Sum256([]byte(text))
	kind := "gate"
	if gate == "" {
		kind = "preflight"
	}
	return kind + "-" + hex.EncodeToString(sum[:8])
}

// observeJobs returns the Jobs that an install asks for, with their results.
func observeJobs(o *v1alpha1.OperatorInstall) map[string]Job {
	if len(o.Spec.Jobs) == 0 {
		return nil
	}
	jobs := make(map[string]Job, len(o.Spec.Jobs))
	for _, asked := range o.Spec.Jobs {
		job := Job{RequestedAt: asked.RequestedAt.Time}
		for _, result := range o.Status.Jobs {
			if result.Name == asked.Name {
				job.State, job.Message = result.State, result.Message
				if result.EndedAt != nil {
					job.EndedAt = result.EndedAt.Time
				}
			}
		}
		jobs[asked.Name] = job
	}
	return jobs
}

// JobsFor returns what an install is to ask for, so that it asks for the Job of an
// action too: the Jobs of the same rollout stay, those of others go.
func JobsFor(ro *v1alpha1.OperatorRollout, a Action, asked []v1alpha1.RequestedJob,
	now time.Time) []v1alpha1.RequestedJob {
	if a.Template == nil {
		return asked
	}
	jobs := slices.DeleteFunc(slices.Clone(asked), func(j v1alpha1.RequestedJob) bool {
		return j.RolloutUID != string(ro.UID)
	})
	if slices.ContainsFunc(jobs, func(j v1alpha1.RequestedJob) bool { return j.Name == a.Job }) {
		return jobs
	}
	slices.SortStableFunc(jobs, func(x, y v1alpha1.RequestedJob) int {
		return x.RequestedAt.Compare(y.RequestedAt.Time)
	})
	if room := maxJobs - 1; len(jobs) > room {
		jobs = jobs[len(jobs)-room:]
	}
	return append(jobs, v1alpha1.RequestedJob{Name: a.Job, RolloutUID: string(ro.UID),
		Version: ro.Spec.Release.Version, RequestedAt: *stampTime(now), Template: *a.Template.DeepCopy()})
}

// jobRequests are the Jobs to ask for: of clusters that nothing but their preflight
// Job holds back, and of the gates of waves that are updated.
func (p *pass) jobRequests() []Action {
	if p.stopped() || halting(p.prior.Phase) {
		return nil
	}
	var actions []Action
	for i := range p.states {
		s := &p.states[i]
		for _, m := range s.members {
			if s.isHoldingBack(m) && m.hold.NeedsJob && p.strategy.Preflight != nil {
				actions = append(actions, Action{Kind: ActionRunJob, Cluster: m.Cluster, Wave: s.Name,
					Job: jobName(p.in.Rollout, "", ""), Template: p.strategy.Preflight.Job})
			}
		}
		actions = append(actions, p.gateJobRequests(s)...)
	}
	return actions[:min(len(actions), MaxJobRequests)]
}

func (p *pass) gateJobRequests(s *waveState) []Action {
	if !s.reached || s.prior.IsDone() || s.updatedAt == nil || s.isChanging() || s.failedGate() != nil {
		return nil
	}
	var actions []Action
	for i, g := range s.Gates {
		if g.Job == nil || !isOpen(g, s.gates[i]) {
			continue
		}
		name := jobName(p.in.Rollout, s.Name, g.Name)
		for _, cluster := range p.clustersForJob(s, g) {
			hold := p.hold(p.clusters[cluster])
			isFrozen := hold != nil && hold.Reason == v1alpha1.ReasonFrozen
			if _, asked := p.installs[cluster].Jobs[name]; !asked && !isFrozen {
				actions = append(actions, Action{Kind: ActionRunJob, Cluster: cluster, Wave: s.Name, Gate: g.Name,
					Job: name, Template: &g.Job.JobTemplate})
			}
		}
	}
	return actions
}

// clustersForJob are the clusters of a wave that run the Job of a gate: all that run
// the release and can be seen, or some of them. Those that were asked before come
// first.
func (p *pass) clustersForJob(s *waveState, g v1alpha1.Gate) []string {
	clusters := s.evaluated()
	if g.Job.Clusters == nil || int(*g.Job.Clusters) >= len(clusters) {
		return clusters
	}
	name := jobName(p.in.Rollout, s.Name, g.Name)
	slices.SortStableFunc(clusters, func(a, b string) int {
		_, first := p.installs[a].Jobs[name]
		_, second := p.installs[b].Jobs[name]
		return cmp.Compare(btoi(second), btoi(first))
	})
	return clusters[:*g.Job.Clusters]
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// judgeJobs gives the verdict on a gate by the results of its Job. It fails if the Job
// failed on a cluster of the wave, and passes if it succeeded on all that run it. A
// cluster that refuses the Job, or says nothing, keeps it waiting.
func (p *pass) judgeJobs(s *waveState, g v1alpha1.Gate, clusters []string) v1alpha1.GateStatus {
	name := jobName(p.in.Rollout, s.Name, g.Name)
	run := p.clustersForJob(s, g)
	var passed, failed, open []string
	var newest time.Time
	for _, cluster := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(run, clusters)))) {
		job := p.installs[cluster].Jobs[name]
		isWanted := slices.Contains(run, cluster)
		switch {
		case job.State == v1alpha1.JobFailed:
			failed = append(failed, cluster+": "+job.Message)
		case isWanted && job.State == v1alpha1.JobSucceeded:
			passed = append(passed, cluster)
		case isWanted:
			open = append(open, cluster+": "+explainJob(job))
		}
		if job.EndedAt.After(newest) {
			newest = job.EndedAt
		}
	}
	is := v1alpha1.GateStatus{Name: g.Name, Verdict: v1alpha1.GateWaiting}
	is.Evidence = fmt.Sprintf("the Job succeeded on %d of %s", len(passed), phrase.Count(len(run), "cluster"))
	switch {
	case len(failed) > 0:
		is.Verdict = v1alpha1.GateFailed
		is.Evidence += "; it failed on " + phrase.First(failed, maxNamed)
	case len(open) > 0:
		is.Evidence += "; no result of " + phrase.First(open, maxNamed)
	default:
		is.Verdict = v1alpha1.GatePassed
		is.Evidence += ": " + phrase.First(passed, maxNamed)
	}
	is.Evidence = phrase.Truncate(is.Evidence, maxEvidence)
	if !newest.IsZero() {
		is.Measurement = &v1alpha1.GateMeasurement{At: *stampTime(newest), Value: fmt.Sprint(len(passed)),
			Threshold: fmt.Sprint(len(run)), Samples: int64(len(passed) + len(failed))}
	}
	return p.dated(s, g, priorGate(s.prior, g.Name), is)
}

// explainJob says why there is no result.
func explainJob(j Job) string {
	switch {
	case j.RequestedAt.IsZero():
		return "it was not asked to run yet"
	case j.State == v1alpha1.JobRefused:
		return "refused: " + j.Message
	case j.State == v1alpha1.JobRunning:
		return "running"
	}
	return fmt.Sprintf("the agent has said nothing since %s", phrase.Time(j.RequestedAt))
}

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
