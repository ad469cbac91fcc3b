// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"fmt"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

func byCluster(installs []rollouts.Install) map[string]rollouts.Install {
	named := make(map[string]rollouts.Install, len(installs))
	for _, i := range installs {
		named[i.Cluster] = i
	}
	return named
}

// preflight is the hold of a cluster on which a release cannot be installed; nil if
// it can, as far as that is known. What keeps the release from every cluster holds the
// waves up, so that nobody takes a rollout that updated no cluster for a success. A
// cluster that does not fit is deferred.
func preflight(r *v1alpha1.ReleaseRequirements, release string, c rollouts.Cluster, installed string) *rollouts.Hold {
	if r == nil || installed == release {
		return nil
	}
	hold := func(defers bool, format string, args ...any) *rollouts.Hold {
		return &rollouts.Hold{Reason: v1alpha1.ReasonPreflightFailed, Message: fmt.Sprintf(format, args...),
			Defers: defers}
	}
	if r.TooLarge != "" {
		return hold(false, "%s", r.TooLarge)
	}
	if problem, ofAll := kubernetesProblem(r, release, c.Kubernetes); problem != "" {
		return hold(!ofAll, "%s", problem)
	}
	for _, refused := range r.RefusedUpgrades {
		if refused.From == installed {
			return hold(true, "the API server refuses the upgrade from %s: %s", installed, refused.Reason)
		}
	}
	return nil
}

// kubernetesProblem says why a release does not suit the cluster's version of
// Kubernetes; empty if it does. ofAll says that it suits none.
func kubernetesProblem(r *v1alpha1.ReleaseRequirements, release, version string) (problem string, ofAll bool) {
	if r.MinKubeVersion == "" && r.SupportedKubernetes == nil && len(r.RemovedAPIs) == 0 {
		return "", false
	}
	is, err := kubernetesVersion(version)
	if problem, ofAll = KubernetesProblem(r, release, is); ofAll {
		return problem, true
	}
	switch {
	case err != nil:
		return fmt.Sprintf("the Kubernetes version of the cluster is not known (%q), which bundle %s depends on",
			version, release), false
	case problem != "":
		return fmt.Sprintf("the cluster has Kubernetes %s, and %s", is, problem), false
	}
	return "", false
}

// KubernetesProblem says why a bundle does not suit a version of Kubernetes; empty if
// its requirements are met. ofAll says that it suits none.
func KubernetesProblem(r *v1alpha1.ReleaseRequirements, bundle string, version semver.Version) (problem string,
	ofAll bool) {
	// OLM reads minKubeVersion the same way.
	least, err := semver.Parse(strings.TrimPrefix(r.MinKubeVersion, "v"))
	switch {
	case err != nil && r.MinKubeVersion != "":
		return fmt.Sprintf("minKubeVersion %q of bundle %s is no version such as 1.30.0, so OLM installs it nowhere",
			r.MinKubeVersion, bundle), true
	case r.MinKubeVersion != "" && version.LT(least):
		return fmt.Sprintf("bundle %s needs %s or newer (minKubeVersion)", bundle, least), false
	}
	if problem := unsupported(r.SupportedKubernetes, bundle, version); problem != "" {
		return problem, false
	}
	for _, removed := range r.RemovedAPIs {
		in, err := semver.ParseTolerant(removed.RemovedIn)
		if err == nil && version.GTE(in) {
			return fmt.Sprintf("bundle %s uses %s %s (%s), which Kubernetes %s removed", bundle, removed.APIVersion,
				removed.Kind, removed.Name, removed.RemovedIn), false
		}
	}
	return "", false
}

// unsupported says that a version of Kubernetes is outside of the range that the
// catalog gives for a bundle; empty if it is not.
func unsupported(r *v1alpha1.KubernetesRange, bundle string, is semver.Version) string {
	if r == nil {
		return ""
	}
	within := registryv1.KubernetesRange{Min: r.Min, Max: r.Max}
	if within.Contains(is.String()) {
		return ""
	}
	return fmt.Sprintf("bundle %s is supported on Kubernetes %s (%s)", bundle, within, registryv1.PropertySupport)
}

// SupportProblem warns of a bundle that is not supported any more; empty if it is, as
// far as that is known.
func SupportProblem(r *v1alpha1.ReleaseRequirements, bundle string, now time.Time) string {
	if r == nil || !registryv1.SupportEnded(r.EndOfSupport, now) {
		return ""
	}
	return fmt.Sprintf("bundle %s has not been supported since %s (%s)", bundle, r.EndOfSupport,
		registryv1.PropertySupport)
}

// kubernetesVersion reads a version without what distributions append to it, as OLM
// does: v1.30.2-eks-1a2b, v1.30.2+k3s1.
func kubernetesVersion(text string) (semver.Version, error) {
	text, _, _ = strings.Cut(text, "-")
	text, _, _ = strings.Cut(text, "+")
	return semver.ParseTolerant(text)
}

// jobGrace is how long after its timeout a Job may be without a result: the agent
// needs a while to start it and to see its end.
const jobGrace = 2 * time.Minute

// preflightJob is the hold of a cluster on which the preflight Job has not succeeded;
// nil if it has. A cluster whose agent never says what became of the Job is deferred
// in the end, so that it does not keep the others waiting for ever.
func preflightJob(wanted *rollouts.PreflightJob, install rollouts.Install, c rollouts.Cluster,
	now time.Time) *rollouts.Hold {
	if wanted == nil {
		return nil
	}
	job, asked := install.Jobs[wanted.Name]
	pending := rollouts.Hold{Reason: v1alpha1.ReasonPreflightPending, Message: "the preflight Job has not run yet"}
	failed := rollouts.Hold{Reason: v1alpha1.ReasonPreflightFailed, Defers: true}
	end := c.Extend(job.RequestedAt, job.RequestedAt.Add(wanted.Timeout+jobGrace))
	switch {
	case !asked:
		pending.NeedsJob = true
		return &pending
	case job.State == v1alpha1.JobSucceeded:
		return nil
	case job.State == v1alpha1.JobFailed:
		failed.Message = "the preflight Job failed: " + job.Message
	case job.State == v1alpha1.JobRefused:
		failed.Message = "the preflight Job was refused: " + job.Message
	case c.Clock(now).Before(end):
		pending.Until = end
		return &pending
	default:
		failed.Message = fmt.Sprintf("the agent reported no result of the preflight Job in %s",
			wanted.Timeout+jobGrace)
	}
	return &failed
}
